#pragma once

// A job becomes parts, one for each kind of rank: sharding cuts what a rank holds, and everything
// else is an order of play.

#include <vector>

#include "plan/job.h"
#include "step/play.h"

namespace fourpiles {

// Of layers alike most are played once, for all of them; or each for itself, to be looked at.
enum class LayersPlayed { kAlikeOnce, kEach };

// The parts of a training step, or of an evaluation: weights and a forward pass. Error: bytes past
// 2^53.
Result<std::vector<Part>> SplitTraining(const Job& job,
                                        LayersPlayed layers = LayersPlayed::kAlikeOnce);

// Of the rank that has most: weights, gradients and optimizer state at full size.
Result<Bytes> LargestState(const Job& job);

}  // namespace fourpiles
