#pragma once

// The whole numbers that a setting or a field may take.

#include <cstdint>
#include <string>

#include "base/checked.h"

namespace fourpiles {

// Both ends included, both within ±2^53.
struct Range {
  std::int64_t least = 0;
  std::int64_t most = kLargestAmount;

  constexpr bool Holds(std::int64_t value) const { return least <= value && value <= most; }
};

// "expected a whole number from 1 to 1048576", for error messages. 2^53 is written as a power.
std::string ExpectedWholeNumber(Range range);

}  // namespace fourpiles
