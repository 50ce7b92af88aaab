#pragma once

// One value in one format, with everything that tells why it became what it became.

#include <optional>

#include "formats/typed_number.h"

namespace fourpiles {

struct Rounding {
  TypedNumber input;
  NumberFormat format;
  Encoded encoded;
  double value = 0;             // of the code
  std::optional<double> below;  // the format's next value under the input, infinity included
  std::optional<double> above;  // the next one over it
  // value − input, where both are finite; |error| in gaps between the two values around the input.
  std::optional<double> error = {};
  std::optional<double> error_in_ulps = {};
  bool tie = false;  // the input lies exactly halfway between them
};

// Rounds to nearest-even. The neighbours bracket the input strictly: for an exact value they are
// the values before and after it.
Rounding RoundTyped(const TypedNumber& input, const NumberFormat& format, Overflow overflow);

// The next value of the format over or under `value`, which is one of its values; infinity where
// the format has it. Nothing past the ends.
std::optional<double> NextAbove(double value, const NumberFormat& format);
std::optional<double> NextBelow(double value, const NumberFormat& format);

}  // namespace fourpiles
