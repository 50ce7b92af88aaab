#include "step/schedule.h"

#include <algorithm>

namespace fourpiles {
namespace {

// Layers alike that have actions of their own: the first two and the last, or the last two where
// the gradients of one are on their way while the one before runs backward.
constexpr std::int64_t kFirst = 2;
std::int64_t LastAlone(const ScheduleStyle& style) {
  return style.gather.gathers ? 2 : 1;
}

void AddLayers(std::vector<Action>& actions, const Block& block, Action action,
               const ScheduleStyle& style) {
  const std::int64_t alone = kFirst + LastAlone(style);
  const bool folded = !style.every_layer && block.repeat > alone + 1;
  for (std::int64_t layer = 0; layer < block.repeat; layer += action.layers) {
    action.layer = layer;
    action.layers = folded && layer == kFirst ? block.repeat - alone : 1;
    actions.push_back(action);
  }
}

// Passes of one chunk that are alike.
struct Passes {
  Chunk chunk = {};
  std::int64_t number = 0;
  std::int64_t count = 1;
  // Of its chunk none runs backward after it: gradients are sent, and what was gathered goes.
  bool is_last = true;
};

// More passes than these are not played for themselves.
constexpr std::int64_t kMostAlone = 32;

// Those that wait while others run; each for itself, where every layer is. The first to come is the
// last to run backward, which stands for itself where gradients are sent then.
std::vector<Passes> PassesThatWait(const std::vector<Chunk>& chunks, const ScheduleStyle& style) {
  std::vector<Passes> passes;
  for (const Chunk& chunk : chunks) {
    std::int64_t at_a_time = 1;
    for (std::int64_t left = chunk.waiting; left > 0; left -= at_a_time) {
      const bool is_first = left == chunk.waiting;
      const bool is_alone = style.every_layer && chunk.waiting - left < kMostAlone;
      const bool sends = is_first && style.gather.gathers;
      at_a_time = is_alone || sends ? 1 : left;
      passes.push_back({chunk, std::ssize(passes), at_a_time, is_first});
    }
  }
  return passes;
}

// Blocks whose parameters another block uses.
std::vector<bool> SharedBlocks(const Network& network) {
  std::vector<bool> shared(network.blocks.size());
  for (const Block& block : network.blocks) {
    for (const Operator& op : block.operators) {
      for (const ParameterUse& use : op.parameters) {
        if (use.block >= 0) {
          shared[static_cast<std::size_t>(use.block)] = true;
        }
      }
    }
  }
  return shared;
}

// Puts together the passes of one rank.
class Scheduler {
 public:
  Scheduler(const Network& network, const ScheduleStyle& style)
      : network_(network), style_(style), shared_(SharedBlocks(network)) {}

  void Forward(const Passes& passes) {
    const std::vector<Action> layers = Layers(passes);
    GatherRoot(layers);
    for (std::size_t i = 0; i < layers.size(); ++i) {
      Gather(layers, i);
      if (!style_.gather.copies_out) {
        Gather(layers, NextUnit(layers, i));
      }
      Add(layers[i], ActionKind::kForward);
      if (IsLetGo(layers, i)) {
        Add(layers[i], ActionKind::kRelease);
      }
    }
  }

  void Backward(const Passes& passes) {
    std::vector<Action> layers = Layers(passes);
    const std::vector<Action> forward = layers;
    std::ranges::reverse(layers);
    for (std::size_t i = 0; i < layers.size(); ++i) {
      Again(forward, layers, i, ActionKind::kGather);
      Again(forward, layers, NextUnit(layers, i),
            style_.gather.copies_out ? ActionKind::kPrefetch : ActionKind::kGather);
      Add(layers[i], ActionKind::kBackward);
      if (LetsGo(passes) && !IsRoot(layers[i])) {
        LetGo(layers[i]);
      }
    }
    for (const Action& layer : layers) {
      if (LetsGo(passes) && IsRoot(layer)) {
        LetGo(layer);
      }
    }
  }

  void Step() { actions_.push_back({.kind = ActionKind::kStep}); }

  std::vector<Action> Take() { return std::move(actions_); }

 private:
  std::vector<Action> Layers(const Passes& passes) const {
    std::vector<Action> layers;
    for (std::size_t block = passes.chunk.first; block < passes.chunk.last; ++block) {
      AddLayers(layers, network_.blocks[block],
                {.block = static_cast<std::int64_t>(block),
                 .micro_batch = passes.number,
                 .micro_batches = passes.count},
                style_);
    }
    return layers;
  }

  void Add(Action action, ActionKind kind) {
    action.kind = kind;
    actions_.push_back(action);
  }

  bool IsLayer(const Action& action) const {
    return IsNumbered(network_.blocks[static_cast<std::size_t>(action.block)]);
  }
  // What is gathered with the whole and stays to the end.
  bool IsRoot(const Action& action) const {
    return (!style_.gather.root_apart && !IsLayer(action)) || IsUsedByOthers(action);
  }
  // A tied embedding is there for the output layer too.
  bool IsUsedByOthers(const Action& action) const {
    return shared_[static_cast<std::size_t>(action.block)];
  }

  // After the last layer nothing is let go of that comes first in the backward pass.
  bool IsLetGo(const std::vector<Action>& layers, std::size_t number) const {
    const bool is_last =
        std::none_of(layers.begin() + static_cast<std::ptrdiff_t>(number) + 1, layers.end(),
                     [&](const Action& action) { return IsLayer(action); });
    const bool stays =
        IsLayer(layers[number]) ? style_.gather.keeps_last_layer : style_.gather.keeps_head;
    return style_.gather.gathers && style_.gather.reshards && !IsRoot(layers[number]) &&
           !(is_last && stays);
  }

  // The next that comes and goes for itself.
  std::size_t NextUnit(const std::vector<Action>& layers, std::size_t number) const {
    do {
      ++number;
    } while (number < layers.size() && IsRoot(layers[number]));
    return number;
  }

  // The parts of the whole that are gathered at its beginning.
  void GatherRoot(const std::vector<Action>& layers) {
    for (const Action& layer : layers) {
      if (style_.gather.gathers && IsRoot(layer)) {
        Add(layer, ActionKind::kGather);
      }
    }
  }
  // The layer, if there is such; it may be there already.
  void Gather(const std::vector<Action>& layers, std::size_t number) {
    if (style_.gather.gathers && number < layers.size() && !IsRoot(layers[number])) {
      Add(layers[number], ActionKind::kGather);
    }
  }
  void Again(const std::vector<Action>& forward, const std::vector<Action>& layers,
             std::size_t number, ActionKind kind) {
    if (number < layers.size() && IsLetGo(forward, forward.size() - 1 - number)) {
      Add(layers[number], kind);
    }
  }

  // FSDP2 lets go of the parameters first, FSDP1 when their gradients were sent.
  // In a pipeline micro-batches leave gradients whole and parameters where they are, but for the
  // last one (PyTorch, distributed/pipelining/stage.py, backward_maybe_with_nosync).
  bool LetsGo(const Passes& passes) const { return style_.gather.gathers && passes.is_last; }

  void LetGo(const Action& layer) {
    if (style_.gather.copies_out) {
      Add(layer, ActionKind::kRelease);
    }
    Reduce(layer);
    if (!style_.gather.copies_out) {
      Add(layer, ActionKind::kRelease);
    }
  }

  void Reduce(const Action& layer) {
    if (style_.gather.reduces) {
      Add(layer, ActionKind::kReduce);
    }
  }

  const Network& network_;
  const ScheduleStyle& style_;
  std::vector<bool> shared_;  // by block
  std::vector<Action> actions_ = {};
};

Chunk AllBlocks(const Network& network) {
  return {.last = network.blocks.size()};
}

}  // namespace

std::vector<Action> TrainingSchedule(const Network& network, const ScheduleStyle& style) {
  constexpr std::int64_t kDistinct = 3;
  Scheduler scheduler(network, style);
  const std::vector<Chunk> chunks =
      style.chunks.empty() ? std::vector<Chunk>{AllBlocks(network)} : style.chunks;
  const std::vector<Passes> waiting = PassesThatWait(chunks, style);
  for (const Passes& passes : waiting) {
    scheduler.Forward(passes);
  }
  std::int64_t number = std::ssize(waiting);
  const std::int64_t played = std::min(style.micro_batches, kDistinct);
  for (std::int64_t i = 1; i <= played; ++i) {
    const bool is_last = style.chunks.empty() || (i == played && chunks.back().waiting == 0);
    scheduler.Forward({chunks.back(), number});
    scheduler.Backward({chunks.back(), number++, 1, is_last});
  }
  // The embedding stands in the first chunk.
  if (chunks.size() > 1) {
    scheduler.Forward({chunks.front(), number});
    scheduler.Backward({chunks.front(), number, 1, chunks.front().waiting == 0});
  }
  for (auto passes = waiting.rbegin(); passes != waiting.rend(); ++passes) {
    scheduler.Backward(*passes);
  }
  scheduler.Step();
  return scheduler.Take();
}

std::vector<Action> EvaluationSchedule(const Network& network, const ScheduleStyle& style) {
  Scheduler scheduler(network, style);
  scheduler.Forward({AllBlocks(network), 0});
  return scheduler.Take();
}

std::vector<Action> ServingSchedule() {
  return {{.kind = ActionKind::kServe}};
}

std::string LayerName(const Block& block, std::int64_t layer) {
  if (block.name.empty() && !block.parameters.empty()) {
    return block.parameters.front().name;
  }
  return WithNumber(block.name, block.first + layer);
}

}  // namespace fourpiles
