#pragma once

// A job becomes parts, one for each kind of rank: sharding cuts what a rank holds, and everything
// else is an order of play.

#include <vector>

#include "plan/job.h"
#include "step/play.h"
#include "step/state.h"

namespace fourpiles {

// Over how many ranks ZeRO divides each pile: stage 1 the optimizer state, 2 the gradients too, 3
// the weights too (Rajbhandari et al. 2020, arXiv 1910.02054, section 5).
Shares SharesOf(const Job& job);

// Of layers alike most are played once, for all of them; or each for itself, to be looked at.
enum class LayersPlayed { kAlikeOnce, kEach };

// The parts of a training step, or of an evaluation: weights and a forward pass. Error: bytes past
// 2^53.
Result<std::vector<Part>> SplitTraining(const Job& job,
                                        LayersPlayed layers = LayersPlayed::kAlikeOnce);

}  // namespace fourpiles
