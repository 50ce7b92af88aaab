#pragma once

// A job becomes parts, one for each kind of rank: sharding cuts what a rank holds, and everything
// else is an order of play.

#include <vector>

#include "plan/job.h"
#include "step/play.h"

namespace fourpiles {

// Of layers alike most are played once, for all of them; or each for itself, to be looked at.
enum class LayersPlayed { kAlikeOnce, kEach };

// One stage of the pipeline, or the whole.
struct RankStage {
  std::int64_t number = 0;
  StageNetwork stage = {};
  bool is_whole = true;
};

// The network that each rank has a stage of: cut by tensor, context and expert parallelism.
Network CutForRanks(const Network& network, const Layout& layout);

// What one stage runs: everything but what is there before the step and after it, and the
// optimizer's temporaries.
Result<Part> PlayedPart(const TrainingJob& training, RankStage stage, LayersPlayed layers);
// That besides: PlayedPart and this together are a part.
Result<Resident> ResidentOf(const TrainingJob& training, const RankStage& stage);
// Bytes that the optimizer's step needs for a moment on the device.
Result<Bytes> TemporariesOf(const TrainingJob& training, const Network& network);
// The part of one stage.
Result<Part> PartOfStage(const TrainingJob& training, const RankStage& stage, LayersPlayed layers);

// The parts of a training step, or of an evaluation: weights and a forward pass. Error: bytes past
// 2^53.
Result<std::vector<Part>> SplitTraining(const Job& job,
                                        LayersPlayed layers = LayersPlayed::kAlikeOnce);

// Of the rank that has most: weights, gradients and optimizer state at full size.
Result<Bytes> LargestState(const Job& job);

}  // namespace fourpiles
