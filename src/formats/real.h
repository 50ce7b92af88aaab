#pragma once

// A real number as far as rounding can tell it from its neighbours: its leading bits, 122 of them
// at least, and whether anything other than zero was cut off behind them. Any format of float64's
// 53 significant bits or fewer is rounded from it correctly, in one step, and by chance with all of
// the 32 bits behind the last that chance goes by.

#include <cstdint>

#include "fourpiles/formats.h"

namespace fourpiles {

struct Real {
  enum class Kind { kZero, kFinite, kInfinite, kNan };
  Kind kind = Kind::kZero;
  bool negative = false;
  std::uint64_t significand = 0;  // bit 63 is set when kFinite
  std::uint64_t lower = 0;        // the 64 bits behind those; none of a double's
  int exponent = 0;               // magnitude = (significand + lower ÷ 2^64) × 2^exponent …
  bool more = false;              // … plus something behind the first 122 bits
};

// A magnitude as it comes about: value × 2^exponent, and more, something less than 2^exponent. The
// value is 0, or has 122 bits at least where there is more.
struct Magnitude128 {
  __extension__ typedef unsigned __int128 Value;  // NOLINT(modernize-use-using): needs a typedef
  Value value = 0;
  int exponent = 0;
  bool more = false;
};
Real RealOf(const Magnitude128& magnitude, bool negative);

// Exactly the double.
Real RealOf(double value);

// a + b for finite a and b, without a rounding in between.
Real Sum(double a, double b);

// Encode(double) of number_format.h, for any real number.
Encoded Encode(const Real& value, const NumberFormat& format, const Conversion& conversion,
               std::uint64_t index = 0);
Encoded Encode(const Real& value, const NumberFormat& format, Overflow overflow = Overflow::kIeee);

// Whether the value, other than zero, is smaller than the smallest normal one of a format that has
// subnormals.
bool IsSubnormal(const Real& value, const NumberFormat& format);

// What a value becomes that is not zero but taken for it.
Encoded FlushedToZero(bool negative, const NumberFormat& format);

}  // namespace fourpiles
