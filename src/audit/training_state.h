#pragma once

// What an optimizer of the Adam family keeps of each weight, found in a checkpoint by the names
// that trainers give it.

#include <cstdint>
#include <optional>
#include <vector>

#include "audit/moment_names.h"
#include "tensors/open_checkpoint.h"

namespace fourpiles {

struct WeightState {
  std::int32_t weight = 0;  // of the checkpoint with the weights
  std::int32_t first = 0;   // of the checkpoint with the state
  std::int32_t second = 0;
  std::int32_t step = -1;  // a tensor of one element with the step; -1: there is none
};

struct TrainingState {
  std::vector<WeightState> weights = {};         // in the order of the weights
  std::int32_t step = -1;                        // a step for those that have none of their own
  std::vector<std::int32_t> without_state = {};  // weights; second names of others are left out
};

// Joins the weights of one checkpoint with the state of another, or of the same one. Names that are
// known: PyTorch's numbered state and the state by names (tensors/piles.h); a moment's word before
// or behind the weight's name: "exp_avg.NAME", "NAME.exp_avg", "adam_m/NAME",
// "opt_state/0/mu/NAME". Where there are no weights, the optimizer's float32 copies are taken for
// them: "optimizer.state.NAME.master". Errors (kInput): no state, with what was looked for; one
// that does not match the weights: a moment of another shape, one without the other, moments that
// belong to no weight.
Result<TrainingState> FindTrainingState(const Checkpoint& weights, const Checkpoint& state,
                                        const std::optional<MomentPatterns>& patterns = {});

}  // namespace fourpiles
