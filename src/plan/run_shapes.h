#pragma once

// The shapes of a measured run, its "arch", as a network.

#include <cstdint>
#include <string>

#include "base/json_fields.h"
#include "model/network.h"

namespace fourpiles {

// As the implementation builds it for so many tensor-parallel ranks. Error: what keeps the shapes
// from being expressed.
Result<Network> NetworkOfRun(const Fields& row, const std::string& implementation,
                             std::int64_t tensor);

}  // namespace fourpiles
