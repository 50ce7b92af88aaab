// The numbers of Adam: given, else what the checkpoint's optimizer says, else PyTorch's defaults.

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "audit/step_parts.h"
#include "audit/storage_cache.h"
#include "base/try.h"
#include "tensors/optimizer_groups.h"

namespace fourpiles {
namespace {

constexpr std::string_view kGiven = "given";
constexpr std::string_view kCheckpoint = "the checkpoint";
constexpr std::string_view kDefault = "default of torch.optim.Adam";
constexpr std::string_view kUntold =
    "not taken: the checkpoint does not tell AdamW's decay, which is apart from the moments";

// A setting: who may say it, and the values that it may have.
struct Setting {
  std::string_view name = {};
  std::string_view option = {};
  std::optional<double> StepOptions::*given = nullptr;
  std::optional<double> OptimizerGroup::*group = nullptr;
  double below = HUGE_VAL;  // and 0 or more
};
constexpr std::array kSettings = std::to_array<Setting>({
    {"learning_rate", "--learning-rate", &StepOptions::learning_rate,
     &OptimizerGroup::learning_rate},
    {"beta1", "--beta1", &StepOptions::beta1, &OptimizerGroup::beta1, 1},
    {"beta2", "--beta2", &StepOptions::beta2, &OptimizerGroup::beta2, 1},
    {"epsilon", "--epsilon", &StepOptions::epsilon, &OptimizerGroup::epsilon},
    {"weight_decay", "--weight-decay", &StepOptions::weight_decay, &OptimizerGroup::weight_decay},
});

std::string Expected(const Setting& setting) {
  return setting.below == 1 ? "expected a number from 0 up to, but not including, 1"
                            : "expected a number from 0 on";
}

bool IsAllowed(double value, const Setting& setting) {
  return value >= 0 && value < setting.below;
}

// What all groups say; nothing where none does.
Result<std::optional<double>> OfGroups(const std::vector<OptimizerGroup>& groups,
                                       const Setting& setting, const std::string& where) {
  std::optional<double> value;
  for (const OptimizerGroup& group : groups) {
    const std::optional<double> next = group.*setting.group;
    if (next && value && *next != *value) {
      return WrongUsage(
          {.where = std::string(setting.option),
           .found = fmt::format("{} and {} in groups of the optimizer", *value, *next),
           .expected = "expected one value for all of them",
           .hint = "give the one to audit"});
    }
    value = next ? next : value;
  }
  if (value && !IsAllowed(*value, setting)) {
    return BadInput({.where = where,
                     .found = fmt::format("the optimizer's {} {}", setting.name, *value),
                     .expected = Expected(setting),
                     .hint = fmt::format("{} gives another one", setting.option)});
  }
  return value;
}

std::vector<OptimizerGroup> GroupsOf(const Checkpoint& checkpoint) {
  for (std::size_t i = 0; i < checkpoint.files.size(); ++i) {
    if (!checkpoint.files[i].format.starts_with("torch-")) {
      continue;
    }
    const auto source = SourceOf(checkpoint, static_cast<std::int32_t>(i));
    if (!source) {
      continue;
    }
    auto groups = OptimizerGroupsOf(**source, checkpoint.files[i].format);
    if (!groups.empty()) {
      return groups;
    }
  }
  return {};
}

// Adam's decay is in the moments. AdamW's counts where the checkpoint tells that it is that, and
// all groups have the same. True: some decay was left out.
bool LeaveOutDecay(std::vector<OptimizerGroup>& groups) {
  const auto is_usable = [&](const OptimizerGroup& group) {
    const double decay = group.weight_decay.value_or(0);
    const bool is_same = decay == groups.front().weight_decay.value_or(0);
    return is_same && (decay == 0 || group.decoupled.value_or(false));
  };
  if (std::ranges::all_of(groups, is_usable)) {
    return false;
  }
  bool any = false;
  for (OptimizerGroup& group : groups) {
    const bool is_coupled = group.decoupled.has_value() && !*group.decoupled;
    any = any || (group.weight_decay.value_or(0) != 0 && !is_coupled);
    group.weight_decay.reset();
  }
  return any;
}

Result<void> CheckGiven(const StepOptions& options) {
  for (const Setting& setting : kSettings) {
    const std::optional<double> value = options.*setting.given;
    if (value && !IsAllowed(*value, setting)) {
      return WrongUsage({.where = std::string(setting.option),
                         .found = fmt::format("{}", *value),
                         .expected = Expected(setting)});
    }
  }
  if (options.step && !(*options.step >= 1 && std::isfinite(*options.step))) {
    return WrongUsage({.where = "--step",
                       .found = fmt::format("{}", *options.step),
                       .expected = "expected a number of steps from 1 on"});
  }
  return {};
}

}  // namespace

Result<StepSettings> ChooseSettings(const Checkpoint& state, const StepOptions& options) {
  TRY_VOID(CheckGiven(options));
  std::vector<OptimizerGroup> groups = GroupsOf(state);
  const bool is_untold = LeaveOutDecay(groups);
  const AdamSettings defaults;
  const std::array<std::optional<double>, kSettings.size()> usual = {
      std::nullopt, defaults.beta1, defaults.beta2, defaults.epsilon, defaults.decoupled_decay};
  StepSettings chosen;
  for (std::size_t i = 0; i < kSettings.size(); ++i) {
    const Setting& setting = kSettings[i];
    std::optional<double> value = options.*setting.given;
    std::string_view from = kGiven;
    if (!value) {
      TRY(value, OfGroups(groups, setting, state.path));
      from = kCheckpoint;
    }
    if (!value) {
      value = usual[i];
      from = setting.name == "weight_decay" && is_untold ? kUntold : kDefault;
    }
    if (!value) {
      return chosen;  // no learning rate
    }
    chosen.used.push_back({setting.name, *value, from});
  }
  chosen.adam = AdamSettings{.learning_rate = chosen.used[0].value,
                             .beta1 = chosen.used[1].value,
                             .beta2 = chosen.used[2].value,
                             .epsilon = chosen.used[3].value,
                             .decoupled_decay = chosen.used[4].value};
  return chosen;
}

}  // namespace fourpiles
