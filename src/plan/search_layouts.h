#pragma once

// Which settings and layouts of a job fit its devices, and which of those are worth choosing: each
// saves at least a hundredth of the device's memory against every faster one that fits. Memory is
// exactly that of PlayedBudget; time is an estimate (step_time.h).

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/budget.h"
#include "plan/layout_choices.h"
#include "plan/step_time.h"

namespace fourpiles {

struct PlanRequest {
  std::string model = {};
  Settings settings = {};                    // every one of them stays
  std::optional<std::int64_t> samples = {};  // of a step; else one a device
  std::optional<std::int64_t> nodes = {};    // of --devices-per-host devices each
  GivenRates rates = {};
  std::int64_t others = 0;  // of the fastest that are not on the front, so many are kept
};

struct LayoutPlan {
  Job job = {};
  std::string command = {};  // that prints the same numbers
  std::int64_t samples = 1;  // of a step
  Bytes peak = Bytes(0);
  Band total = {};
  Bytes headroom = Bytes(0);
  Fit verdict = Fit::kFits;
  StepTime time = {};
  double seconds = 0;      // of a step
  double utilization = 0;  // model FLOPs of the peak's
  bool on_front = true;
};

// What became of the layouts that were looked at: each counts in one of the four.
struct SearchCounts {
  std::int64_t state_too_large = 0;  // what is there before the step does not fit
  std::int64_t too_large = 0;        // the peak, or what is around it, does not
  std::int64_t worse = 0;            // another that fits is as fast and no larger, or hardly
  std::int64_t fit = 0;
  std::int64_t plays = 0;  // that it took
};
std::int64_t Tried(const SearchCounts& counts);

struct PlanAnswer {
  Job job = {};  // before a layout is chosen, with its defaults
  MachineReading reading = {};
  std::optional<std::int64_t> samples = {};  // of a step; nothing: --gradient-accumulation says
  std::vector<LayoutPlan> plans = {};        // the fastest first
  SearchCounts counts = {};
  std::optional<Budget> closest = {};  // where none fits: the one with the least peak
  std::string closest_command = {};
  std::vector<std::string> warnings = {};
};

// Errors: kUsage for settings that are wrong, or that no layout has; kInput for files.
Result<PlanAnswer> SearchLayouts(const PlanRequest& request);

}  // namespace fourpiles
