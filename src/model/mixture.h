#pragma once

// Feed-forward parts with routed experts that several families share.

#include <cstdint>

#include "model/llama.h"

namespace fourpiles {

// Whether each expert has tensors of its own in the checkpoint, or all are stacked in one.
enum class ExpertStorage {
  kSeparate,
  kStackedOut,  // (experts, out, in)
  kStackedIn,   // (experts, in, out)
};

// Gated experts in two tensors, gate_up_proj and down_proj.
Parameters StackedGatedExperts(std::int64_t experts, std::int64_t hidden_size,
                               std::int64_t intermediate_size, ExpertStorage storage);

// Qwen's: a router, routed experts, and where shared_expert_intermediate_size stands an expert
// that every token takes, with a gate; mlp_only_layers and decoder_sparse_step say which layers
// have a plain part instead.
FeedForward QwenExperts(Record& config, std::int64_t hidden_size, ExpertStorage storage);

}  // namespace fourpiles
