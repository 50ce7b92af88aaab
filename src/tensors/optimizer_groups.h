#pragma once

// The settings of an optimizer that a checkpoint of PyTorch has beside its tensors: the
// "param_groups" of its state_dict().

#include <optional>
#include <string_view>
#include <vector>

#include "base/byte_source.h"

namespace fourpiles {

// Of a group that has betas: an optimizer of the Adam family. What is no number is left out, such
// as a learning rate that is a tensor.
struct OptimizerGroup {
  std::optional<double> learning_rate = {};
  std::optional<double> beta1 = {};
  std::optional<double> beta2 = {};
  std::optional<double> epsilon = {};
  std::optional<double> weight_decay = {};
  // Whether the decay is AdamW's; PyTorch says so since 2.7. Before, a state of Adam and one of
  // AdamW look the same.
  std::optional<bool> decoupled = {};
};

// All groups of a checkpoint, `format` being that of its reading ("torch-zip", "torch-legacy"). No
// groups: it has none, is of another format, or cannot be read.
std::vector<OptimizerGroup> OptimizerGroupsOf(const ByteSource& source, std::string_view format);

}  // namespace fourpiles
