#pragma once

// A network of which no more is known than its tensors.

#include <string_view>
#include <vector>

#include "model/compare_tensors.h"
#include "model/network.h"

namespace fourpiles {

// One parameter a tensor, layers by the first number in a name; those that are alike stand once.
// Nothing is said of what the layers compute and of what serving keeps. `where` names the file in
// errors (kInput): no tensors, or more than 2^53 elements.
Result<Network> NetworkFromTensors(const std::vector<LogicalTensor>& tensors,
                                   std::string_view where);

}  // namespace fourpiles
