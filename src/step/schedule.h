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
  kGather,    // of the layers' parameters, from the ranks that have their shares
  kPrefetch,  // of the same, into a buffer that the layer's own parameters are copied from later
  kRelease,   // of what was gathered
  kReduce,    // of their gradients, to the ranks that have the shares
  kStep,      // of the optimizer
  kServe,
};

struct Action {
  ActionKind kind = ActionKind::kForward;
  std::int64_t block = 0;        // index into Network::blocks
  std::int64_t layer = 0;        // which of the block's alike layers, from 0
  std::int64_t layers = 1;       // stands for so many of them, one after the other
  std::int64_t micro_batch = 0;  // the number of its pass, from 0
  // Stands for so many passes alike, which wait side by side between forward and backward.
  std::int64_t micro_batches = 1;
};

// The parameters of a layer are gathered where it runs, from the ranks that have their shares.
struct GatherStyle {
  bool gathers = false;
  bool reshards = true;    // what was gathered is let go of between forward and backward pass
  bool reduces = false;    // gradients are sent to the ranks that have their shares, by layers
  bool root_apart = true;  // embedding and output layer come and go for themselves; else with all
  // What the backward pass begins with stays: the last layer, and what comes behind it.
  bool keeps_last_layer = true;
  bool keeps_head = true;
  // FSDP2: a layer's parameters are copied out of a buffer where it runs, and the next buffer is
  // asked for ahead in the backward pass alone (PyTorch,
  // distributed/fsdp/_fully_shard/_fsdp_param_group.py, wait_for_unshard, _backward_prefetch).
  bool copies_out = false;
};

// Blocks of one chunk of a stage, and the passes of it that wait while one runs.
struct Chunk {
  std::size_t first = 0;
  std::size_t last = 0;  // before this one
  std::int64_t waiting = 0;
};

struct ScheduleStyle {
  std::int64_t micro_batches = 1;
  // Of more than four layers alike one action stands for all but the first two and the last, or the
  // last two where gradients are sent.
  // From one layer to the next memory grows or falls by the same amount, so the largest sum is in a
  // layer that has an action of its own. True: every layer has one.
  bool every_layer = false;
  GatherStyle gather = {};
  std::vector<Chunk> chunks = {};  // of a stage of a pipeline; empty: all blocks
};

// Forward and backward of every micro-batch, then the optimizer's step. Micro-batches between the
// first and the last are alike, so of more than three the first, one between and the last are
// played. In a pipeline passes wait: all but one stand in one action each, and others run forward
// and backward beside them. Which of those that wait comes first makes no difference to memory, so
// the last to come runs backward first.
std::vector<Action> TrainingSchedule(const Network& network, const ScheduleStyle& style);

// A forward pass of one micro-batch that keeps nothing.
std::vector<Action> EvaluationSchedule(const Network& network, const ScheduleStyle& style);

// Serving holds what it holds: one moment.
std::vector<Action> ServingSchedule();

// "model.layers.3"; of a block without a name, its first parameter's.
std::string LayerName(const Block& block, std::int64_t layer);

}  // namespace fourpiles
