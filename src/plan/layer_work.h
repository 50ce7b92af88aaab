#pragma once

// What one layer of a rank computes, moves and sends for every token, counted from its operators:
// what an estimate of time needs. Nothing of a device stands here.

#include <cstdint>
#include <optional>

#include "model/network.h"

namespace fourpiles {

// Of the forward pass. "A token" is one of the rank's tokens before tensor parallelism cuts them:
// of micro-batch × sequence ÷ context ranks.
struct LayerWork {
  double matrix_flops = 0;     // products with weights, a token: 2 for each weight
  double matrix_elements = 0;  // weights that those products read, whatever the tokens
  double attention_flops = 0;  // a token, for each token that it sees: 2 × (queries + values)
  double moved_elements = 0;   // read and written by all other operators, a token
  double tensor_elements = 0;  // of whole tokens, gathered or scattered by ranks that cut the layer
  double context_elements = 0;  // keys and values, a token
  double routed_elements = 0;   // sent to experts, a token
};

// How attention sees a sequence of so many tokens.
struct SequenceView {
  std::int64_t tokens = 1;
  std::optional<std::int64_t> window = {};
  bool causal = true;
};
// Tokens that a token sees in the mean: of a causal sequence half.
double MeanTokensSeen(const SequenceView& view);

// Of one layer of a block of a network cut by CutByTensors. `tensor`: ranks that cut it, which cut
// its tokens too.
LayerWork WorkOf(const Network& network, const Block& block, std::int64_t tensor);

// Whether its attention is causal, and the window of its first layer.
SequenceView ViewOf(const Network& network, const Block& block, std::int64_t tokens);

}  // namespace fourpiles
