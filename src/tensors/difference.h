#pragma once

// What two checkpoints have not in common, as far as headers say: names, shapes, formats.

#include <cstdint>
#include <string>
#include <vector>

#include "tensors/inventory.h"

namespace fourpiles {

struct ChangedGroup {
  std::string name = {};  // "model.layers.{0..31}.mlp.down_proj.weight"
  std::int64_t count = 0;
  std::string format[2] = {};
  std::vector<std::int64_t> shape[2] = {};
  TensorTotal total[2] = {};
};

struct CheckpointDifference {
  std::int64_t alike = 0;                    // rows of the same name, shape and format
  std::vector<InventoryGroup> only[2] = {};  // labels are those of each side's inventory
  std::vector<ChangedGroup> changed = {};
};

// Rows are told apart by name; both inventories must outlive the difference.
CheckpointDifference DifferenceOf(const Inventory& first, const Inventory& second);

}  // namespace fourpiles
