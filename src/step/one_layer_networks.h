#pragma once

// Networks of one layer, whose figures were measured alone: 8 tokens, 24 inputs, 40 outputs.

#include "model/network.h"

namespace fourpiles::one_layer {

inline constexpr std::int64_t kTokens = 8;
inline constexpr std::int64_t kIn = 24;
inline constexpr std::int64_t kOut = 40;

// What comes in is the batch itself, and needs a gradient or not.
Network OneLinear(bool bias, bool needs_gradient);
// Two heads of 12, without a mask.
Network OneAttention(std::int64_t key_value_heads, bool needs_gradient);
// Of 40 classes, and the loss.
Network OneOutputLayer(bool needs_gradient);
// A vocabulary of 30.
Network OneEmbedding();
Network EmbeddingAndLinear();

}  // namespace fourpiles::one_layer
