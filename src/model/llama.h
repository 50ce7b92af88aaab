#pragma once

// The layer that Llama made common, as a description that its descendants vary.

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "model/decoder.h"
#include "model/part_flows.h"
#include "model/parts.h"
#include "model/record.h"

namespace fourpiles {

// Where the norms of a layer stand: before each part, around each, or after each.
inline constexpr std::array<std::string_view, 2> kNormsBefore = {"input_layernorm",
                                                                 "post_attention_layernorm"};
inline constexpr std::array<std::string_view, 4> kNormsAround = {
    "input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm",
    "post_feedforward_layernorm"};
inline constexpr std::array<std::string_view, 2> kNormsAfter = {"post_attention_layernorm",
                                                                "post_feedforward_layernorm"};

enum class NormPlace {
  kBefore,
  kAround,
  kAfter,
  kOnce,  // before both parts, which run side by side
};

struct LlamaStyle {
  AttentionStyle attention = {};
  std::span<const std::string_view> norms = kNormsBefore;
  NormPlace place = NormPlace::kBefore;
  NormForm norm_form = NormForm::kPlain;
  AttentionFlow attention_flow = {};
  LayerRule rotates = {};     // layers that know positions; without it all do
  bool scaled_parts = false;  // what a part puts out is multiplied by a number
  Frame frame = {};
};

// What stands after the attention of a layer, with its full names: "mlp.gate_proj.weight".
struct FeedForwardPart {
  Parameters parameters = {};
  PartFlow flow = {};
};
// Parts of equal parameters compute the same.
using FeedForward = std::function<FeedForwardPart(std::int64_t layer)>;

// A layer of attention and a feed-forward part; nothing where one of them is not described.
std::vector<Operator> DescribeLayer(const Parameters& parameters, const LlamaStyle& style,
                                    const PartFlow& attention, const PartFlow& feed_forward);

// Of the attention of a network some of whose layers may see windows.
AttentionFlow ReadAttentionFlow(Record& config, const Windows& windows = {});

Network LlamaNetwork(const Decoder& decoder, const LlamaStyle& style, const Windows& windows,
                     const FeedForward& feed_forward);

// "mlp", the same in every layer, by intermediate_size; the activation is that of the config.
FeedForward DenseMlp(Record& config, const Decoder& decoder, bool bias = false);
FeedForward DenseMlp(Record& config, const Decoder& decoder, bool bias,
                     std::optional<Activation> activation);

// The windows of Qwen 2 and 3: from max_window_layers on, when use_sliding_window says so.
Windows QwenWindows(Record& config, std::int64_t num_hidden_layers);

}  // namespace fourpiles
