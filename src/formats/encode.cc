// Encoding and decoding: the meaning of every scalar format. One rounding, in integers, so the
// processor's rounding mode and its flush-to-zero bits change nothing.

#include <cmath>

#include "formats/codes.h"
#include "formats/real.h"

namespace fourpiles {
namespace {

RoundingStatus StatusOf(std::uint64_t magnitude, bool exact, const NumberFormat& format) {
  if (magnitude == 0 && format.has_subnormals && !exact) {
    return RoundingStatus::kUnderflow;
  }
  if (magnitude != 0 && format.has_subnormals && magnitude < SmallestNormalCode(format)) {
    return RoundingStatus::kSubnormal;
  }
  return exact ? RoundingStatus::kExact : RoundingStatus::kRounded;
}

// Where there is no NaN, one becomes −0, and a negative one 0 (ml_dtypes).
Encoded Nan(const Real& value, const NumberFormat& format, bool exact) {
  const bool becomes_zero = format.specials == Specials::kNone && value.negative;
  return {becomes_zero ? 0 : NanCode(format), RoundingStatus::kNan, exact};
}

// What stands for a value past the largest, infinity included.
Encoded OutOfRange(const Real& value, const NumberFormat& format, Overflow overflow) {
  const std::uint64_t sign = SignCode(value.negative, format);
  if (overflow == Overflow::kIeee && format.specials == Specials::kIeee) {
    const bool exact = value.kind == Real::Kind::kInfinite;
    return {sign | (LargestCode(format) + 1),
            exact ? RoundingStatus::kExact : RoundingStatus::kOverflow, exact};
  }
  const bool unending_scale = value.kind == Real::Kind::kInfinite && !format.has_sign;
  if ((overflow != Overflow::kSaturate || unending_scale) && format.specials != Specials::kNone) {
    const bool finite = value.kind == Real::Kind::kFinite;  // keeps its sign, as in ml_dtypes
    return {NanCode(format) | (finite ? sign : 0), RoundingStatus::kNan, false};
  }
  return {sign | LargestCode(format), RoundingStatus::kSaturated, false};
}

Encoded Zero(bool negative, const NumberFormat& format) {
  const bool exact = format.has_subnormals;  // else the code 0 is the smallest value
  return {SignCode(negative && HasNegativeZero(format), format),
          exact ? RoundingStatus::kExact : RoundingStatus::kRounded, exact};
}

// The magnitude's code before any overflow, and whether nothing was rounded away.
struct Magnitude {
  std::uint64_t code = 0;
  bool exact = true;
};

Magnitude RoundedMagnitude(const Real& value, const NumberFormat& format) {
  const int lowest = LowestExponent(format);
  const int exponent = value.exponent + 63;  // floor(log2 |value|)
  if (exponent < lowest && !format.has_subnormals) {
    return {0, false};
  }
  const int binade = std::max(exponent, lowest);
  const int cut =
      binade - format.fraction_bits - value.exponent;  // bits that do not fit, 11 or more
  if (cut > 64) {
    return {0, false};
  }
  const std::uint64_t kept = cut == 64 ? 0 : value.significand >> cut;
  const std::uint64_t rest =
      cut == 64 ? value.significand : value.significand & ((std::uint64_t{1} << cut) - 1);
  const std::uint64_t half = std::uint64_t{1} << (cut - 1);
  // A carry out of the fraction moves into the exponent field: the next code is the next value.
  std::uint64_t code = (static_cast<std::uint64_t>(binade - lowest) << format.fraction_bits) + kept;
  if (!format.has_subnormals) {
    code -= std::uint64_t{1} << format.fraction_bits;
  }
  const bool odd = (code & 1) != 0;
  if (rest > half || (rest == half && (value.more || odd))) {
    ++code;
  }
  return {code, rest == 0 && !value.more};
}

}  // namespace

Encoded Encode(const Real& value, const NumberFormat& format, Overflow overflow) {
  if (value.kind == Real::Kind::kNan) {
    return Nan(value, format, format.specials != Specials::kNone);
  }
  if (value.kind == Real::Kind::kZero) {
    return Zero(value.negative, format);
  }
  if (value.negative && !format.has_sign) {
    return Nan(value, format, false);
  }
  if (value.kind == Real::Kind::kInfinite || value.exponent + 63 > HighestExponent(format)) {
    return OutOfRange(value, format, overflow);
  }
  const Magnitude magnitude = RoundedMagnitude(value, format);
  if (magnitude.code > LargestCode(format)) {
    return OutOfRange(value, format, overflow);
  }
  const bool negative = value.negative && (magnitude.code != 0 || HasNegativeZero(format));
  return {SignCode(negative, format) | magnitude.code,
          StatusOf(magnitude.code, magnitude.exact, format), magnitude.exact};
}

Encoded Encode(double value, const NumberFormat& format, Overflow overflow) {
  return Encode(RealOf(value), format, overflow);
}

double Decode(std::uint64_t code, const NumberFormat& format) {
  code &= CodeMask(format);
  const std::uint64_t magnitude = code & MagnitudeMask(format);
  const bool negative = magnitude != code;
  if (IsNanCode(code, format)) {
    return std::nan("");
  }
  const double sign = negative ? -1.0 : 1.0;
  if (format.specials == Specials::kIeee && magnitude > LargestCode(format)) {
    return sign * HUGE_VAL;
  }
  const auto field = static_cast<int>(magnitude >> format.fraction_bits);
  const std::uint64_t hidden = std::uint64_t{1} << format.fraction_bits;
  const std::uint64_t fraction = magnitude & (hidden - 1);
  const bool subnormal = field == 0 && format.has_subnormals;
  const std::uint64_t significand = subnormal ? fraction : fraction | hidden;
  const int binade = LowestExponent(format) + std::max(0, field - (format.has_subnormals ? 1 : 0));
  return sign * std::ldexp(static_cast<double>(significand), binade - format.fraction_bits);
}

double Round(double value, const NumberFormat& format, Overflow overflow) {
  return Decode(Encode(value, format, overflow).code, format);
}

}  // namespace fourpiles
