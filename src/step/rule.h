#pragma once

// A rule says what one operator leaves in memory. A profile says which rule each kind of operator
// follows; a new kernel is a new rule, a new framework a new profile.

#include <string>
#include <string_view>
#include <vector>

#include "base/checked.h"
#include "fourpiles/formats.h"
#include "model/network.h"

namespace fourpiles {

// What an operator is asked with.
struct OperatorShapes {
  std::int64_t micro_batch_size = 1;
  std::int64_t sequence_length = 1;
  NumberFormat activation_format = {};
};

// A tensor that an operator keeps for its backward pass.
struct SavedTensor {
  std::string what = {};
  Checked elements = 0;
  NumberFormat format = {};
  std::string formula = {};
  std::string source = {};
};

using Rule = std::vector<SavedTensor> (*)(const Operator& op, const OperatorShapes& shapes);

struct Profile {
  std::string_view name;
  Rule layer = nullptr;  // for OperatorKind::kLayer

  Rule RuleOf(OperatorKind kind) const;
};

// The least that any implementation keeps: of each layer its output, (tokens, hidden_size). Inputs,
// activation gradients and workspace are not counted.
extern const Profile kLowerBound;  // NOLINT(readability-identifier-naming): a constant

}  // namespace fourpiles
