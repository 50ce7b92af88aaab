// What follows from a format's record.

#include <cmath>

#include "formats/codes.h"

namespace fourpiles {

int Bits(const NumberFormat& format) {
  return MagnitudeBits(format) + (format.has_sign ? 1 : 0);
}

int StorageBits(const NumberFormat& format) {
  return Bits(format) + format.unused_bits;
}

double Largest(const NumberFormat& format) {
  return Decode(LargestCode(format), format);
}

double SmallestNormal(const NumberFormat& format) {
  return std::ldexp(1.0, LowestExponent(format));
}

double SmallestPositive(const NumberFormat& format) {
  return Decode(format.has_subnormals ? 1 : 0, format);
}

double StepNearOne(const NumberFormat& format) {
  return std::ldexp(1.0, -format.fraction_bits);
}

// Halfway to the value that one more binade would bring next: float16 has 65,504 + 32 / 2 = 65,520.
double OverflowThreshold(const NumberFormat& format) {
  const double half_step = std::ldexp(0.5, HighestExponent(format) - format.fraction_bits);
  return Largest(format) + half_step;
}

bool ThresholdOverflows(const NumberFormat& format) {
  return (LargestCode(format) & 1) != 0;
}

std::uint64_t Nans(const NumberFormat& format) {
  const std::uint64_t signs = format.has_sign ? 2 : 1;
  switch (format.specials) {
    case Specials::kIeee:
      return signs * (MagnitudeMask(format) - LargestCode(format) - 1);
    case Specials::kNanAtTop:
      return signs;
    case Specials::kNanAtZero:
    case Specials::kP3109Extended:
      return 1;
    case Specials::kNone:
      break;
  }
  return 0;
}

std::uint64_t Infinities(const NumberFormat& format) {
  return HasInfinity(format) ? (format.has_sign ? 2 : 1) : 0;
}

double DecimalDigits(const NumberFormat& format) {
  return (format.fraction_bits + 1) * std::log10(2.0);
}

}  // namespace fourpiles
