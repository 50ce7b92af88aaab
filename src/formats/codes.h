#pragma once

// Where the special codes of a format lie. All follow from its record.

#include <cstdint>

#include "fourpiles/formats.h"

namespace fourpiles {

constexpr int MagnitudeBits(const NumberFormat& f) {
  return f.exponent_bits + f.fraction_bits;
}

constexpr std::uint64_t MagnitudeMask(const NumberFormat& f) {
  return (std::uint64_t{1} << MagnitudeBits(f)) - 1;
}

constexpr std::uint64_t SignCode(bool negative, const NumberFormat& f) {
  return negative && f.has_sign ? std::uint64_t{1} << MagnitudeBits(f) : 0;
}

constexpr std::uint64_t CodeMask(const NumberFormat& f) {
  return MagnitudeMask(f) | SignCode(true, f);
}

// The code of the largest finite value.
constexpr std::uint64_t LargestCode(const NumberFormat& f) {
  switch (f.specials) {
    case Specials::kIeee:
      return MagnitudeMask(f) - (std::uint64_t{1} << f.fraction_bits);
    case Specials::kNanAtTop:
      return MagnitudeMask(f) - 1;
    case Specials::kP3109Extended:
      return MagnitudeMask(f) - (f.has_sign ? 1 : 2);
    case Specials::kNanAtZero:
    case Specials::kNone:
      break;
  }
  return MagnitudeMask(f);
}

constexpr bool HasInfinity(const NumberFormat& f) {
  return f.specials == Specials::kIeee || f.specials == Specials::kP3109Extended;
}

// The code of +infinity, where there is one.
constexpr std::uint64_t InfinityCode(const NumberFormat& f) {
  return LargestCode(f) + 1;
}

constexpr bool HasNan(const NumberFormat& f) {
  return f.specials != Specials::kNone;
}

// Without one, the code 0 is the smallest value (float8_e8m0fnu).
constexpr bool HasZero(const NumberFormat& f) {
  return f.has_subnormals;
}

constexpr std::uint64_t SmallestNormalCode(const NumberFormat& f) {
  return f.has_subnormals ? std::uint64_t{1} << f.fraction_bits : 0;
}

constexpr bool HasNegativeZero(const NumberFormat& f) {
  return f.has_sign && f.specials != Specials::kNanAtZero && f.specials != Specials::kP3109Extended;
}

// The NaN that conversion produces: quiet, and without a sign where a format has several
// (IEEE 754-2019 §6.2.1: the first fraction bit set). −0 where there is no NaN (ml_dtypes).
constexpr std::uint64_t NanCode(const NumberFormat& f) {
  switch (f.specials) {
    case Specials::kIeee:
      return InfinityCode(f) | (std::uint64_t{1} << (f.fraction_bits - 1));
    case Specials::kNanAtTop:
      return MagnitudeMask(f);
    case Specials::kP3109Extended:
      return f.has_sign ? SignCode(true, f) : MagnitudeMask(f);
    case Specials::kNanAtZero:
    case Specials::kNone:
      break;
  }
  return SignCode(true, f);
}

constexpr bool IsNanCode(std::uint64_t code, const NumberFormat& f) {
  switch (f.specials) {
    case Specials::kIeee:
      return (code & MagnitudeMask(f)) > InfinityCode(f);
    case Specials::kNanAtTop:
      return (code & MagnitudeMask(f)) == MagnitudeMask(f);
    case Specials::kNanAtZero:
    case Specials::kP3109Extended:
      return code == NanCode(f);
    case Specials::kNone:
      break;
  }
  return false;
}

// The exponents of the smallest and the largest binade of normal numbers.
constexpr int LowestExponent(const NumberFormat& f) {
  return (f.has_subnormals ? 1 : 0) - f.bias;
}
constexpr int HighestExponent(const NumberFormat& f) {
  return static_cast<int>(LargestCode(f) >> f.fraction_bits) - f.bias;
}

}  // namespace fourpiles
