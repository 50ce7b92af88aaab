#pragma once

// A job becomes parts, one for each kind of rank: sharding cuts what a rank holds, and everything
// else is an order of play.

#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "plan/job.h"
#include "step/play.h"

namespace fourpiles {

// Of layers alike most are played once, for all of them; or each for itself, to be looked at.
enum class LayersPlayed { kAlikeOnce, kEach };

// One stage of the pipeline, or the whole, as a rank of it has it.
struct RankStage {
  std::int64_t number = 0;
  bool is_whole = true;
  std::shared_ptr<const Network> network = {};
  // Which of its blocks each chunk runs: from the first until before the second number.
  std::vector<std::pair<std::size_t, std::size_t>> chunks = {};
};

// The network that each rank has a stage of: cut by tensor, context and expert parallelism.
Network CutForRanks(const Network& network, const Layout& layout);
// The stage of that number of a network cut so.
RankStage StageOf(const Network& cut, const Layout& layout, std::int64_t number);

// What comes and goes of its parameters, where they are gathered.
Result<GatheredBlocks> GatheredBy(const TrainingJob& training, const RankStage& stage);
// What a stage runs: a part without what is there before the step and after it, and without the
// optimizer's temporaries.
Part PlayedPart(const TrainingJob& training, const RankStage& stage, GatheredBlocks gathered,
                LayersPlayed layers);
// Bytes that the optimizer's step needs for a moment on the device.
Result<Bytes> TemporariesOf(const TrainingJob& training, const Network& network);
// The part of one stage, whole.
Result<Part> PartOfStage(const TrainingJob& training, const RankStage& stage, LayersPlayed layers);

// The parts of a training step, or of an evaluation: weights and a forward pass. Error: bytes past
// 2^53.
Result<std::vector<Part>> SplitTraining(const Job& job,
                                        LayersPlayed layers = LayersPlayed::kAlikeOnce);

// The part of one kind of rank, by its name; one there is.
Result<Part> PartOfRank(const Job& job, std::string_view rank, LayersPlayed layers);

// Of the rank that has most: weights, gradients and optimizer state at full size.
Result<Bytes> LargestState(const Job& job);

}  // namespace fourpiles
