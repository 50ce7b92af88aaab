#pragma once

// The order in which a rank does its work. Sharding cuts shapes; prefetching, pipelines and offload
// are other orders of these actions.

#include <cstdint>
#include <string>
#include <vector>

#include "model/network.h"

namespace fourpiles {

enum class ActionKind { kForward, kBackward, kStep, kServe };

struct Action {
  ActionKind kind = ActionKind::kForward;
  std::int64_t block = 0;        // index into Network::blocks
  std::int64_t layer = 0;        // which of the block's alike layers, from 0
  std::int64_t micro_batch = 0;  // from 0
};

// Forward and backward of every micro-batch, then the optimizer's step. Micro-batches between the
// first and the last are alike, so of more than three the first, one between and the last are
// played.
std::vector<Action> TrainingSchedule(const Network& network, std::int64_t micro_batches);

// Serving holds what it holds: one moment.
std::vector<Action> ServingSchedule();

// "model.layers.3"; of a block without a name, its first parameter's.
std::string LayerName(const Block& block, std::int64_t layer);

// "backward of model.layers.3".
std::string MomentName(const Action& action, const Network& network);

}  // namespace fourpiles
