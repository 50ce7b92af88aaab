#pragma once

// The layer that Llama made common, as a description that its descendants vary.

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "model/decoder.h"
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

struct LlamaStyle {
  AttentionStyle attention = {};
  std::span<const std::string_view> norms = kNormsBefore;
};

// What stands after the attention of a layer, with its full names: "mlp.gate_proj.weight".
using FeedForward = std::function<Parameters(std::int64_t layer)>;

Network LlamaNetwork(const Decoder& decoder, const LlamaStyle& style, const Windows& windows,
                     const FeedForward& feed_forward);

// "mlp", the same in every layer, by intermediate_size.
FeedForward DenseMlp(Record& config, const Decoder& decoder, bool bias = false);

// The windows of Qwen 2 and 3: from max_window_layers on, when use_sliding_window says so.
Windows QwenWindows(Record& config, std::int64_t num_hidden_layers);

}  // namespace fourpiles
