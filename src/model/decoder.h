#pragma once

// What the decoder-only families have in common: the sizes in a config.json under the names that
// Llama gave them, which layers see only a window, and the frame around the layers.

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/flow.h"
#include "model/parts.h"
#include "model/record.h"

namespace fourpiles {

// A network with more layers is a mistake; and it bounds the work for a hostile file.
inline constexpr Range kLayers = {1, 1 << 12};
// Experts of one layer.
inline constexpr Range kExperts = {1, 1 << 16};

// Heads and head sizes that are multiplied with a third such number.
inline constexpr Range kFactors = {1, 1 << 16};

struct Decoder {
  Heads heads = {};
  std::int64_t num_hidden_layers = 1;
  std::int64_t vocab_size = 1;
  bool tie_word_embeddings = false;
};

// What a config.json without tie_word_embeddings means: the default of the family's configuration
// class in transformers.
inline constexpr bool kTied = true;
inline constexpr bool kUntied = false;

// What a config.json means that leaves a key out: the defaults of the family's configuration class
// in transformers (src/transformers/models/NAME/configuration_NAME.py). Without one here the key is
// required; but num_key_value_heads is then num_attention_heads, and head_dim is hidden_size /
// num_attention_heads.
struct FamilyDefaults {
  bool tie_word_embeddings = kUntied;
  std::optional<std::int64_t> num_attention_heads = {};
  std::optional<std::int64_t> num_key_value_heads = {};
  std::optional<std::int64_t> head_dim = {};
  std::optional<std::int64_t> vocab_size = {};
  std::optional<std::int64_t> sliding_window = {};
  std::optional<std::int64_t> num_local_experts = {};
};

inline constexpr FamilyDefaults kLlamaDefaults = {};  // and of all that are not below
inline constexpr FamilyDefaults kCohereDefaults = {.tie_word_embeddings = kTied};
inline constexpr FamilyDefaults kCohere2Defaults = {.tie_word_embeddings = kTied,
                                                    .sliding_window = 4096};
inline constexpr FamilyDefaults kErnie45Defaults = {
    .tie_word_embeddings = kTied, .num_key_value_heads = 2, .head_dim = 128};
inline constexpr FamilyDefaults kGemmaDefaults = {.tie_word_embeddings = kTied, .head_dim = 256};
inline constexpr FamilyDefaults kGemma2Defaults = {
    .tie_word_embeddings = kTied, .head_dim = 256, .sliding_window = 4096};
inline constexpr FamilyDefaults kGemma3Defaults = {.tie_word_embeddings = kTied,
                                                   .num_attention_heads = 8,
                                                   .num_key_value_heads = 4,
                                                   .head_dim = 256,
                                                   .vocab_size = 262'208,
                                                   .sliding_window = 4096};
inline constexpr FamilyDefaults kGemma4Defaults = {.tie_word_embeddings = kTied};
inline constexpr FamilyDefaults kGptOssDefaults = {
    .head_dim = 64, .sliding_window = 128, .num_local_experts = 128};
inline constexpr FamilyDefaults kJambaDefaults = {.num_key_value_heads = 8};
inline constexpr FamilyDefaults kLfm2Defaults = {.tie_word_embeddings = kTied,
                                                 .num_key_value_heads = 8};
inline constexpr FamilyDefaults kMixtralDefaults = {.num_local_experts = 8};
inline constexpr FamilyDefaults kMllamaDefaults = {
    .num_attention_heads = 32, .num_key_value_heads = 8, .vocab_size = 128'256};
inline constexpr FamilyDefaults kOlmo3Defaults = {.sliding_window = 4096};
inline constexpr FamilyDefaults kQwen3Defaults = {.head_dim = 128};
inline constexpr FamilyDefaults kSeedOssDefaults = {.head_dim = 128};
inline constexpr FamilyDefaults kSmolLm3Defaults = {.tie_word_embeddings = kTied,
                                                    .num_key_value_heads = 4};
inline constexpr FamilyDefaults kStarcoder2Defaults = {.tie_word_embeddings = kTied,
                                                       .num_key_value_heads = 2};

// The count under `key`, else the family's default, else a refusal.
std::int64_t CountOrDefault(Record& config, std::string_view key,
                            std::optional<std::int64_t> otherwise, Range range = kCounts);

Decoder ReadDecoder(Record& config, const FamilyDefaults& defaults = kLlamaDefaults);

// Refuses `key`, of value `part`, where it does not divide the whole.
struct Whole {
  std::string_view key;
  std::int64_t value;
};
void RequireDivisor(Record& config, std::string_view key, std::int64_t part, const Whole& whole,
                    std::string_view hint = {});

// The heads alone.
Heads ReadHeads(Record& config, const FamilyDefaults& defaults = kLlamaDefaults);

// Some of the layers: those that see a window when there are no layer_types.
using LayerRule = std::function<bool(std::int64_t layer)>;
bool EveryOtherLayer(std::int64_t layer);    // 0, 2, 4 …
bool AllButEveryFourth(std::int64_t layer);  // not 3, 7, 11 …

// The key that has the length of the windows, and what it is without that key.
struct WindowKey {
  std::string_view key = "sliding_window";
  std::optional<std::int64_t> otherwise = {};
};

// For each layer its window, in tokens: by layer_types, else where the rule says so.
using Windows = std::vector<std::optional<std::int64_t>>;
Windows ReadWindows(Record& config, std::int64_t num_hidden_layers, const LayerRule& slides,
                    const WindowKey& length = {});

// sliding_window in every layer, where the config has it; none where it has not.
Windows WindowsWhereGiven(Record& config, std::int64_t num_hidden_layers);

// The kinds of layers that a family may name in layer_types.
inline constexpr std::array<std::string_view, 4> kAttentionTypes = {
    "full_attention", "sliding_attention", "chunked_attention", "linear_attention"};

// For each layer its kind: by layer_types, else what `kind_of` says.
std::vector<std::string> ReadLayerTypes(
    Record& config, std::int64_t num_hidden_layers,
    const std::function<std::string(std::int64_t layer)>& kind_of,
    std::span<const std::string_view> known = kAttentionTypes);

// What stands before and after the layers.
struct Frame {
  std::string embedding = "model.embed_tokens";
  std::string layers = "model.layers.{}";
  std::string norm = "model.norm";
  std::string head = "lm_head";
  bool norm_bias = false;
  bool head_bias = false;
  NormForm norm_form = NormForm::kPlain;
  bool scaled_embedding = false;  // the words are multiplied by a number
  bool scaled_logits = false;
  bool softcap = false;  // of the logits
};

// The loss of predicting the next token, as the last operator of a block: of the head, whose output
// layer it is, or of any other, where the output layer is the embedding of the words, block 0.
std::vector<Operator> WithLoss(Flow& flow, Value x, const Decoder& decoder, const Frame& frame);

// The whole network. Tied, the head has no tensor of its own.
Network DecoderNetwork(const Decoder& decoder, const Frame& frame,
                       const std::function<Layer(std::int64_t number)>& layer);

// Notes that the checkpoint has layers that predict further tokens, which a budget leaves out.
void LeaveOutPredictionLayers(Network& network, std::int64_t count);

}  // namespace fourpiles
