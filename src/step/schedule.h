#pragma once

// The order in which a rank does its work. Sharding cuts shapes; prefetching, pipelines and offload
// are other orders of these actions.

#include <cstdint>
#include <string>
#include <vector>

#include "model/network.h"

namespace fourpiles {

enum class ActionKind {
  kForward,
  kRecompute,  // a forward pass run again, inside the backward pass
  kBackward,
  kStep,  // of the optimizer
  kServe,
};

struct Action {
  ActionKind kind = ActionKind::kForward;
  std::int64_t block = 0;        // index into Network::blocks
  std::int64_t layer = 0;        // which of the block's alike layers, from 0
  std::int64_t layers = 1;       // stands for so many of them, one after the other
  std::int64_t micro_batch = 0;  // from 0
};

struct ScheduleStyle {
  std::int64_t micro_batches = 1;
  // Of more than four layers alike one action stands for all but the first two and the last.
  // From one layer to the next memory grows or falls by the same amount, so the largest sum is in a
  // layer that has an action of its own. True: every layer has one.
  bool every_layer = false;
};

// Forward and backward of every micro-batch, then the optimizer's step. Micro-batches between the
// first and the last are alike, so of more than three the first, one between and the last are
// played.
std::vector<Action> TrainingSchedule(const Network& network, const ScheduleStyle& style);

// A forward pass of one micro-batch that keeps nothing.
std::vector<Action> EvaluationSchedule(const Network& network, bool every_layer = false);

// Serving holds what it holds: one moment.
std::vector<Action> ServingSchedule();

// "model.layers.3"; of a block without a name, its first parameter's.
std::string LayerName(const Block& block, std::int64_t layer);

}  // namespace fourpiles
