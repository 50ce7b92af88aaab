#include "step/schedule.h"

#include <algorithm>

namespace fourpiles {
namespace {

// Layers alike that have actions of their own: the first two and the last.
constexpr std::int64_t kFirst = 2;
constexpr std::int64_t kLast = 1;

void AddLayers(std::vector<Action>& actions, const Block& block, Action action, bool every_layer) {
  const bool folded = !every_layer && block.repeat > kFirst + kLast + 1;
  for (std::int64_t layer = 0; layer < block.repeat; layer += action.layers) {
    action.layer = layer;
    action.layers = folded && layer == kFirst ? block.repeat - kFirst - kLast : 1;
    actions.push_back(action);
  }
}

std::vector<Action> Pass(const Network& network, const Action& action, bool every_layer) {
  std::vector<Action> actions;
  for (std::size_t block = 0; block < network.blocks.size(); ++block) {
    Action of_block = action;
    of_block.block = static_cast<std::int64_t>(block);
    AddLayers(actions, network.blocks[block], of_block, every_layer);
  }
  if (action.kind == ActionKind::kBackward) {
    std::ranges::reverse(actions);
  }
  return actions;
}

}  // namespace

std::vector<Action> TrainingSchedule(const Network& network, const ScheduleStyle& style) {
  constexpr std::int64_t kDistinct = 3;
  std::vector<Action> schedule;
  for (std::int64_t i = 0; i < std::min(style.micro_batches, kDistinct); ++i) {
    for (const ActionKind kind : {ActionKind::kForward, ActionKind::kBackward}) {
      std::ranges::copy(Pass(network, {.kind = kind, .micro_batch = i}, style.every_layer),
                        std::back_inserter(schedule));
    }
  }
  schedule.push_back({.kind = ActionKind::kStep});
  return schedule;
}

std::vector<Action> EvaluationSchedule(const Network& network, bool every_layer) {
  return Pass(network, {.kind = ActionKind::kForward}, every_layer);
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
