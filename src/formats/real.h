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

// Encode(double) of number_format.h, for any real number. Stochastic rounding goes by the first 32
// bits cut off as far as the 64 bits here have them: all of them for up to 31 fraction bits.
Encoded Encode(const Real& value, const NumberFormat& format, const Conversion& conversion,
               std::uint64_t index = 0);
Encoded Encode(const Real& value, const NumberFormat& format, Overflow overflow = Overflow::kIeee);

// Whether the value, other than zero, is smaller than the smallest normal one of a format that has
// subnormals.
bool IsSubnormal(const Real& value, const NumberFormat& format);

// What a value becomes that is not zero but taken for it.
Encoded FlushedToZero(bool negative, const NumberFormat& format);

}  // namespace fourpiles
