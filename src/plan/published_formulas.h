#pragma once

// What published planners would answer for one training job, each by its own formula and with its
// own mistakes, to be printed beside ours. None of it is how we count.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "fourpiles/units.h"

namespace fourpiles {

enum class DescribedRecompute { kNone, kSelective, kFull };
// Adam and AdamW with both moments in float32; SGD with momentum.
enum class DescribedOptimizer { kAdam, kMomentum, kMuon, kOther };

// What these planners ask of a job, on all devices together. A dense decoder or a mixture of
// experts.
struct TrainingDescription {
  std::int64_t parameters = 0;
  std::int64_t trainable_parameters = 0;  // fewer than all of them: with adapters, frozen parts
  std::int64_t layers = 0;
  std::int64_t hidden_size = 0;
  std::int64_t heads = 0;
  std::int64_t key_value_heads = 0;
  std::int64_t ffn_size = 0;  // of a mixture: of one expert
  std::int64_t experts = 0;   // in each layer; 0: the layers are dense
  std::int64_t vocabulary = 0;
  bool is_gated = true;  // SwiGLU and its like: three matrices, not two
  bool is_tied = false;  // the output layer is the embedding
  std::int64_t sequence_length = 1;
  std::int64_t micro_batch_size = 1;
  std::int64_t micro_batches = 1;  // of a step: what a pipeline has to do
  std::int64_t devices = 1;
  std::int64_t tensor_parallel = 1;
  bool is_sequence_parallel = false;
  std::int64_t pipeline_parallel = 1;
  std::int64_t virtual_pipeline = 1;
  std::int64_t zero_stage = 0;
  bool has_distributed_optimizer = false;  // Megatron's
  std::int64_t precision_bytes = 2;        // of a number of the forward pass: 2 or 4
  DescribedOptimizer optimizer = DescribedOptimizer::kAdam;
  DescribedRecompute recompute = DescribedRecompute::kNone;
};

// Of the device that the planner takes for the fullest.
struct PublishedEstimate {
  std::string_view name = {};
  std::optional<Bytes> bytes = {};
  std::string_view reason = {};   // why there are none: what the planner cannot express
  std::string_view assumes = {};  // what stands in its bytes
};

// accelerate estimate-memory, DeepSpeed's estimators of ZeRO 2 and 3 (without offloading),
// EleutherAI's calc_transformer_mem.py and Megatron-LM's theoretical_memory_usage.py, in this
// order. Sizes are at least 1, but `experts`.
std::vector<PublishedEstimate> PublishedEstimates(const TrainingDescription& job);

}  // namespace fourpiles
