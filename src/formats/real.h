#pragma once

// A real number as far as rounding can tell it from its neighbours: 64 leading bits, and whether
// anything other than zero was cut off behind them. Any format of up to 62 significant bits is
// rounded from it correctly, in one step.

#include <cstdint>

#include "fourpiles/formats.h"

namespace fourpiles {

struct Real {
  enum class Kind { kZero, kFinite, kInfinite, kNan };
  Kind kind = Kind::kZero;
  bool negative = false;
  std::uint64_t significand = 0;  // bit 63 is set when kFinite
  int exponent = 0;               // magnitude = significand × 2^exponent …
  bool more = false;              // … plus something less than 2^exponent
};

// Exactly the double.
Real RealOf(double value);

// a + b for finite a and b, without a rounding in between.
Real Sum(double a, double b);

// Encode(double) of formats.h, for any real number.
Encoded Encode(const Real& value, const NumberFormat& format, Overflow overflow = Overflow::kIeee);

}  // namespace fourpiles
