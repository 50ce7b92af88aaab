#pragma once

// Feed-forward parts with routed experts that several families share.

#include <cstdint>
#include <optional>
#include <string>

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

// What a router and its experts compute.
struct RoutedExperts {
  std::string router = {};   // the full name of its linear layer: "mlp.gate"
  std::string experts = {};  // "mlp.experts"
  std::int64_t hidden_size = 1;
  std::int64_t intermediate_size = 1;
  std::int64_t count = 1;
  std::int64_t per_token = 1;
  std::optional<Activation> activation = Activation::kSilu;
  Routing routing = Routing::kSoftmax;
  bool normalized = true;
  bool float32 = false;  // router and sum
};
// num_experts_per_tok, of at most `experts`.
std::int64_t ReadExpertsPerToken(Record& config, std::int64_t otherwise, std::int64_t experts);
// Experts with tensors of their own.
PartFlow FlowOfExperts(const RoutedExperts& experts, const GatedMlpStyle& style = {});
// Those of StackedGatedExperts().
PartFlow FlowOfStackedExperts(const RoutedExperts& experts);

// Two parts that read the same input; their outputs are added.
PartFlow SumOf(PartFlow first, PartFlow second);

// Qwen's: a router, routed experts, and where shared_expert_intermediate_size stands an expert
// that every token takes, with a gate; mlp_only_layers and decoder_sparse_step say which layers
// have a plain part instead.
struct QwenRouter {  // what a config.json means that leaves its keys out
  std::int64_t per_token = 8;
  bool normalized = false;
};
FeedForward QwenExperts(Record& config, const Decoder& decoder, ExpertStorage storage,
                        const QwenRouter& router = {});

}  // namespace fourpiles
