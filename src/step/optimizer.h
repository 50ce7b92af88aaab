#pragma once

// An optimizer, as far as memory is concerned, is the list of tensors it keeps for every parameter.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "fourpiles/formats.h"
#include "model/names.h"

namespace fourpiles {

// One element for each element of a parameter.
struct OptimizerState {
  std::string name = {};                    // "exp_avg"
  std::optional<NumberFormat> format = {};  // without one: as the recipe has it
};

struct Optimizer {
  Names names = {};
  std::string summary = {};
  std::vector<OptimizerState> states = {};
  // float32 numbers it keeps for every tensor on the host: its step counter.
  std::int64_t scalars = 0;
  // What a step needs for a moment: so many copies of the largest tensor when it takes one after
  // the other; of all tensors when it runs kernel by kernel over all (foreach). Adam's is the root
  // of its second moment (torch/optim/adam.py, _multi_tensor_adam, since 2.0).
  std::int64_t loop_temporaries = 0;
  std::int64_t foreach_temporaries = 0;
  std::string source = {};
  std::string checked = {};  // the day, as 2026-11-29
};

// The record of one optimizer; `where` names it in errors.
Result<Optimizer> OptimizerFromJson(const Json& json, std::string_view where);

// The catalogue, in the order of data/optimizers.json.
std::vector<Optimizer> Optimizers();

// The catalogue's optimizer of that id or alias, or the one in a file that ends in ".json".
Result<Optimizer> FindOptimizer(std::string_view name, std::string_view where = "--optimizer");

}  // namespace fourpiles
