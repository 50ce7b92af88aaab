#pragma once

// Searches over whole numbers for something that is true up to some value and false beyond it.

#include <cstdint>
#include <optional>

namespace fourpiles {

// The last value of low … high for which it holds; it does for `low` and does not for `high`.
template <class Holds>
std::int64_t LastThatHolds(std::int64_t low, std::int64_t high, Holds holds) {
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (holds(middle) ? low : high) = middle;
  }
  return low;
}

// The same, where it may hold everywhere: nothing then. Doubles from `low`, for which it holds, so
// that a small answer takes few questions.
template <class Holds>
std::optional<std::int64_t> LastFrom(std::int64_t low, std::int64_t high, Holds holds) {
  std::int64_t next = low;
  while (holds(next)) {
    if (next == high) {
      return std::nullopt;
    }
    low = next;
    next = next > high / 2 ? high : 2 * next;
  }
  return LastThatHolds(low, next, holds);
}

}  // namespace fourpiles
