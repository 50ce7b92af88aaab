#pragma once

// What the decoder-only families have in common: the sizes in a config.json under the names that
// Llama gave them, which layers see only a window, and the frame around the layers.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

Decoder ReadDecoder(Record& config, bool tied);

// Refuses `key`, of value `part`, where it does not divide the whole.
struct Whole {
  std::string_view key;
  std::int64_t value;
};
void RequireDivisor(Record& config, std::string_view key, std::int64_t part, const Whole& whole,
                    std::string_view hint = {});

// The heads alone, where head_dim is hidden_size / num_attention_heads unless it is given.
Heads ReadHeads(Record& config);

// Which layers see a window when there are no layer_types.
using SlidingRule = std::function<bool(std::int64_t layer)>;
bool EveryOtherLayer(std::int64_t layer);  // 0, 2, 4 …

// For each layer its window, in tokens: by layer_types, else where the rule says so. `key` has its
// length.
using Windows = std::vector<std::optional<std::int64_t>>;
Windows ReadWindows(Record& config, std::int64_t num_hidden_layers, const SlidingRule& slides,
                    std::string_view key = "sliding_window");

// sliding_window in every layer, where the config has it; none where it has not.
Windows WindowsWhereGiven(Record& config, std::int64_t num_hidden_layers);

// For each layer its kind, "full_attention", "sliding_attention", "chunked_attention" or
// "linear_attention": by layer_types, else what `kind_of` says.
std::vector<std::string> ReadLayerTypes(
    Record& config, std::int64_t num_hidden_layers,
    const std::function<std::string(std::int64_t layer)>& kind_of);

// What stands before and after the layers.
struct Frame {
  std::string embedding = "model.embed_tokens";
  std::string layers = "model.layers.{}";
  std::string norm = "model.norm";
  std::string head = "lm_head";
  bool norm_bias = false;
  bool head_bias = false;
};

// The whole network. Tied, the head has no tensor of its own.
Network DecoderNetwork(const Decoder& decoder, const Frame& frame,
                       const std::function<Layer(std::int64_t number)>& layer);

// Notes that the checkpoint has layers that predict further tokens, which a budget leaves out.
void LeaveOutPredictionLayers(Network& network, std::int64_t count);

}  // namespace fourpiles
