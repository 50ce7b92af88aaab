#pragma once

// One value in one format, with everything that tells why it became what it became.

#include <optional>

#include "formats/typed_number.h"

namespace fourpiles {

// How a typed number is rounded.
struct TypedConversion {
  Conversion conversion = {};
  // The format that it is taken from: what is subnormal there is zero, if flushed on input.
  // Nothing: float64.
  std::optional<NumberFormat> from = {};
};

struct Rounding {
  TypedNumber input;
  NumberFormat format;
  RoundingMode mode = RoundingMode::kNearestEven;
  Encoded encoded;
  bool flushed = false;         // zero for being subnormal
  double value = 0;             // of the code
  std::optional<double> below;  // the format's next value under the input, infinity included
  std::optional<double> above;  // the next one over it
  // value − input, where both are finite; |error| in gaps between the two values around the input.
  std::optional<double> error = {};
  std::optional<double> error_in_ulps = {};
  bool tie = false;  // the input lies exactly halfway between them
};

// The neighbours bracket the input strictly: for an exact value they are the values before and
// after it. `index` is the number's place among others, for stochastic rounding.
Rounding RoundTyped(const TypedNumber& input, const NumberFormat& format,
                    const TypedConversion& how, std::uint64_t index = 0);

// The next value of the format over or under `value`, which is one of its values; infinity where
// the format has it. Nothing past the ends.
std::optional<double> NextAbove(double value, const NumberFormat& format);
std::optional<double> NextBelow(double value, const NumberFormat& format);

}  // namespace fourpiles
