#pragma once

// One serving job on every engine: what each makes of it, and in which allocations they differ.

#include <string>
#include <string_view>
#include <vector>

#include "plan/budget.h"
#include "step/lines.h"

namespace fourpiles {

// What --engine takes for all of them.
inline constexpr std::string_view kEveryEngine = "all";

// KV cache of the load on all devices and the host together.
struct CacheSize {
  Bytes as_allocated = Bytes(0);
  Bytes of_tokens = Bytes(0);  // the requests' own tokens and states in the same formats
};

struct EngineAnswer {
  std::string engine = {};
  Result<Budget> budget = {};  // or why the engine cannot do the job
  CacheSize cache = {};        // with a budget whose shapes are known
};

// An allocation of a pile in which the engines differ (not of the weights), on the worst device.
struct EngineDifference {
  std::vector<std::string> engines = {};  // which have this very one
  Line line = {};
};

struct EngineComparison {
  std::vector<EngineAnswer> answers = {};          // in the order of the catalogue
  std::vector<EngineDifference> differences = {};  // by pile; of each engine the largest
};

// The job of these settings on each engine of the catalogue, solved where asked; the setting
// "engine" is not looked at. Error: no engine can do it, the model cannot be opened.
Result<EngineComparison> CompareEngines(std::string_view model, const Settings& settings);

}  // namespace fourpiles
