#include "step/schedule.h"

#include <algorithm>

#include <fmt/format.h>

namespace fourpiles {
namespace {

std::vector<Action> Layers(const Network& network, ActionKind kind, std::int64_t micro_batch) {
  std::vector<Action> actions;
  for (std::size_t block = 0; block < network.blocks.size(); ++block) {
    for (std::int64_t layer = 0; layer < network.blocks[block].repeat; ++layer) {
      actions.push_back({kind, static_cast<std::int64_t>(block), layer, micro_batch});
    }
  }
  if (kind == ActionKind::kBackward) {
    std::ranges::reverse(actions);
  }
  return actions;
}

}  // namespace

std::vector<Action> TrainingSchedule(const Network& network, std::int64_t micro_batches) {
  constexpr std::int64_t kDistinct = 3;
  std::vector<Action> schedule;
  for (std::int64_t i = 0; i < std::min(micro_batches, kDistinct); ++i) {
    for (const ActionKind kind : {ActionKind::kForward, ActionKind::kBackward}) {
      std::ranges::copy(Layers(network, kind, i), std::back_inserter(schedule));
    }
  }
  schedule.push_back({.kind = ActionKind::kStep});
  return schedule;
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

std::string MomentName(const Action& action, const Network& network) {
  if (action.kind == ActionKind::kStep) {
    return "optimizer step";
  }
  if (action.kind == ActionKind::kServe) {
    return "serving";
  }
  const Block& block = network.blocks[static_cast<std::size_t>(action.block)];
  return fmt::format("{} of {}", action.kind == ActionKind::kForward ? "forward" : "backward",
                     LayerName(block, action.layer));
}

}  // namespace fourpiles
