#pragma once

// What is right by the format of the file and yet surprises who loads it.

#include <string>
#include <vector>

#include "tensors/inventory.h"

namespace fourpiles {

// One sentence each: matrices in float32 within a bfloat16 model, tied weights that are stored
// twice, a config.json that names another format than the weights have, declared totals that are
// not the tensors'.
std::vector<std::string> Surprises(const Checkpoint& checkpoint, const Inventory& inventory);

}  // namespace fourpiles
