#pragma once

// The piles of training that a checkpoint of a trainer holds: weights, moving averages of them,
// gradients, what the optimizer keeps of each, and the rest (random generators, schedules). Told by
// names, as trainers of PyTorch write them: "model.0.weight", "ema.0.weight",
// "optimizer.state.0.exp_avg", "rng_state".

#include <cstdint>
#include <string_view>
#include <vector>

#include "tensors/open_checkpoint.h"

namespace fourpiles {

enum class TensorPile { kWeights, kAverages, kGradients, kOptimizer, kOther };

// "weights", "ema", "gradients", "optimizer", "other"
std::string_view Name(TensorPile pile);

// Where a tensor belongs.
struct PiledTensor {
  TensorPile pile = TensorPile::kWeights;
  std::string_view moment = {};  // of optimizer state: "exp_avg"; of the tensor's name
  // Of averages, optimizer state and gradients: the weight that they are of, as an index of
  // tensors; -1: not known.
  std::int32_t weight = -1;
};

// Of each tensor, in their order. Averages are of weights that stand beside them: where there are
// none, the averages are the weights. The optimizer of PyTorch numbers its parameters through its
// groups in the order in which it got them; each group is held to keep the order of the weights,
// and a number gets the next weight of the shape of its moments. Where shapes do not fit, no weight
// of that optimizer is named at all.
std::vector<PiledTensor> TensorPilesOf(const std::vector<FileTensor>& tensors);

// Leaves of files of PyTorch the weights alone, tied ones once, under their first name; a master
// copy that the optimizer keeps by name counts, under that name, where the weight has no other.
// Tensors of other files stay.
void KeepWeightsAlone(Checkpoint& checkpoint);

}  // namespace fourpiles
