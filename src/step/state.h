#pragma once

// The three piles that grow with the parameters: weights, gradients, optimizer state. There before
// the first action of a step and after the last.

#include <vector>

#include "model/network.h"
#include "step/optimizer.h"
#include "step/play.h"
#include "step/recipe.h"

namespace fourpiles {

// Over how many ranks a pile is divided: that of routed experts over fewer, where they are spread
// over ranks already. A divided pile is flattened and padded to equal shares, as DeepSpeed and FSDP
// do, so that all ranks are alike.
struct ShardRanks {
  std::int64_t dense = 1;
  std::int64_t experts = 1;
};
// The same of each pile.
struct Shares {
  ShardRanks weights = {};
  ShardRanks gradients = {};
  ShardRanks optimizer_state = {};
};

// Errors: all of them when bytes pass 2^53.

// The parameters in one format, a storage for each tensor of each run of alike layers; divided, one
// storage.
Result<Resident> WeightStorages(const Network& network, const NumberFormat& format,
                                const ShardRanks& ranks = {});

// The network's buffers.
Result<Resident> BufferStorages(const Network& network, const NumberFormat& format);

// What a recipe keeps besides: float8 copies of the layers' matrices, their histories and scales,
// and the scaler of the loss.
Result<Resident> ScalingStorages(const Network& network, const Recipe& recipe);

// The gradients of all trainable parameters, at full size.
Result<Resident> GradientStorage(const Network& network, const Recipe& recipe,
                                 const ShardRanks& ranks = {});

// The master copy, where the recipe has one, and the optimizer's states; its step counters, which
// stand on the host.
Result<Resident> OptimizerStorages(const Network& network, const Recipe& recipe,
                                   const Optimizer& optimizer, const ShardRanks& ranks = {});

// What every micro-batch is given; a part of the activations.
Result<Resident> BatchStorages(const Network& network, const Batch& batch,
                               const NumberFormat& format);

// How an optimizer runs over the parameters: one after the other, over all of them kernel by
// kernel, or in one kernel that needs nothing besides (torch/optim/optimizer.py, foreach, fused);
// or over each as soon as its gradient is there, which is then let go of (PyTorch tutorials, How to
// save memory by fusing the optimizer step into the backward pass).
enum class StepKernels { kLoop, kForeach, kFused, kInBackward };
std::string_view Name(StepKernels kernels);  // "foreach"

// What the step needs for a moment, in this format: that of the states.
Result<Bytes> StepTemporaries(const Network& network, const Optimizer& optimizer,
                              const NumberFormat& format, StepKernels kernels,
                              const ShardRanks& ranks = {});

}  // namespace fourpiles
