// Encoding and decoding: the meaning of every scalar format. One rounding, in integers, so the
// processor's rounding mode and its flush-to-zero bits change nothing.

#include <algorithm>
#include <bit>
#include <cmath>

#include "formats/codes.h"
#include "formats/philox.h"
#include "formats/real.h"

namespace fourpiles {
namespace {

// Subnormals of float64 are below it.
constexpr int kLowestExponentOfFloat64 = -1022;

int LeadingExponent(const Real& value) {  // floor(log2 |value|)
  return value.exponent + 63;
}

RoundingStatus StatusOf(std::uint64_t magnitude, bool exact, const NumberFormat& format) {
  if (magnitude == 0 && HasZero(format) && !exact) {
    return RoundingStatus::kUnderflow;
  }
  if (magnitude != 0 && format.has_subnormals && magnitude < SmallestNormalCode(format)) {
    return RoundingStatus::kSubnormal;
  }
  return exact ? RoundingStatus::kExact : RoundingStatus::kRounded;
}

// Whether the mode keeps a value of that sign from growing away from zero.
bool RoundsInward(RoundingMode rounding, bool negative) {
  switch (rounding) {
    case RoundingMode::kTowardZero:
    case RoundingMode::kToOdd:
      return true;
    case RoundingMode::kUp:
      return negative;
    case RoundingMode::kDown:
      return !negative;
    case RoundingMode::kNearestEven:
    case RoundingMode::kNearestAway:
    case RoundingMode::kStochastic:
      break;
  }
  return false;
}

// Where there is no NaN, one becomes −0, and a negative one 0 (ml_dtypes).
Encoded Nan(bool negative, const NumberFormat& format, bool exact) {
  return {negative && !HasNan(format) ? 0 : NanCode(format), RoundingStatus::kNan, exact};
}

// What stands for a value past the largest, infinity included.
Encoded PastLargest(const Real& value, const NumberFormat& format, Overflow overflow) {
  const std::uint64_t sign = SignCode(value.negative, format);
  const bool infinite = value.kind == Real::Kind::kInfinite;
  if (overflow == Overflow::kIeee && HasInfinity(format)) {
    return {sign | InfinityCode(format),
            infinite ? RoundingStatus::kExact : RoundingStatus::kOverflow, infinite};
  }
  const bool unending_scale = infinite && !HasZero(format);
  if ((overflow != Overflow::kSaturate || unending_scale) && HasNan(format)) {
    // The NaN of a finite value has its sign, as in ml_dtypes. That of an infinite one has none:
    // ml_dtypes 0.5.4 keeps the sign there too, but the reference codes of tests/data/vectors
    // (ref_rne_nosat of encode_*.csv) do not, and they are what is followed.
    return {NanCode(format) | (infinite ? 0 : sign), RoundingStatus::kNan, false};
  }
  return {sign | LargestCode(format), RoundingStatus::kSaturated, false};
}

Encoded Zero(bool negative, const NumberFormat& format) {
  const bool exact = HasZero(format);  // else the code 0 is the smallest value
  return {SignCode(negative && HasNegativeZero(format), format),
          exact ? RoundingStatus::kExact : RoundingStatus::kRounded, exact};
}

// A magnitude between the codes `kept` and `kept` + 1, as far as rounding can tell.
struct Split {
  std::uint64_t kept = 0;
  std::uint32_t fraction = 0;  // of the step between the two: its first 32 bits …
  bool more = false;           // … and whether there is anything behind them
  bool IsExact() const { return fraction == 0 && !more; }
};

// Splits where `cut` bits of the significand, 11 or more, do not fit.
Split CutOff(const Real& value, int cut) {
  const std::uint64_t kept = cut >= 64 ? 0 : value.significand >> cut;
  const std::uint64_t rest = cut >= 64 ? value.significand : value.significand - (kept << cut);
  if (cut < 32) {
    const std::uint64_t fraction = rest << (32 - cut) | value.lower >> (32 + cut);
    return {kept, static_cast<std::uint32_t>(fraction),
            value.more || value.lower << (32 - cut) != 0};
  }
  const int behind = cut - 32;
  const std::uint64_t fraction = behind >= 64 ? 0 : rest >> behind;
  const bool more = behind >= 64 || fraction << behind != rest || value.lower != 0;
  return {kept, static_cast<std::uint32_t>(fraction), value.more || more};
}

// Where a finite value lies among the codes; past the largest by any amount is one code past it.
Split SplitOf(const Real& value, const NumberFormat& format) {
  const int lowest = LowestExponent(format);
  const int exponent = LeadingExponent(value);
  if (exponent > HighestExponent(format)) {
    return {.kept = LargestCode(format) + 1, .more = true};
  }
  const int binade = std::max(exponent, lowest);
  Split split = CutOff(value, binade - format.fraction_bits - value.exponent);
  // The leading bit of `kept` counts as one binade, which a format without subnormals has not.
  split.kept += static_cast<std::uint64_t>(binade - lowest) << format.fraction_bits;
  split.kept -= HasZero(format) ? 0 : std::uint64_t{1} << format.fraction_bits;
  return split;
}

// Whether the magnitude becomes `kept` + 1. A carry out of the fraction moves into the exponent
// field: the next code is the next value.
bool MovesAway(const Split& split, bool negative, const Conversion& conversion,
               std::uint64_t index) {
  constexpr std::uint32_t kHalf = std::uint32_t{1} << 31;
  const bool odd = (split.kept & 1) != 0;
  switch (conversion.rounding) {
    case RoundingMode::kNearestEven:
      return split.fraction > kHalf || (split.fraction == kHalf && (split.more || odd));
    case RoundingMode::kNearestAway:
      return split.fraction >= kHalf;
    case RoundingMode::kTowardZero:
      return false;
    case RoundingMode::kUp:
      return !split.IsExact() && !negative;
    case RoundingMode::kDown:
      return !split.IsExact() && negative;
    case RoundingMode::kToOdd:
      return !split.IsExact() && !odd;
    case RoundingMode::kStochastic:
      break;
  }
  const std::uint64_t sum =
      std::uint64_t{split.fraction} + RandomBits(conversion.seed, conversion.first_index + index);
  return sum >> 32 != 0;
}

// The magnitude's code before any overflow, and whether nothing was rounded away.
struct Magnitude {
  std::uint64_t code = 0;
  bool exact = true;
};

Magnitude RoundedMagnitude(const Real& value, const NumberFormat& format,
                           const Conversion& conversion, std::uint64_t index) {
  const Split split = SplitOf(value, format);
  const bool away = MovesAway(split, value.negative, conversion, index);
  return {split.kept + (away ? 1 : 0), split.IsExact()};
}

// A negative value where there is no sign.
Encoded BelowZero(const Real& value, const NumberFormat& format, const Conversion& conversion,
                  std::uint64_t index) {
  if (!HasZero(format)) {
    return Nan(true, format, false);
  }
  bool kept_at_zero = conversion.infinities == Overflow::kSaturate;
  if (value.kind == Real::Kind::kFinite) {
    if (RoundedMagnitude(value, format, conversion, index).code == 0) {
      return FlushedToZero(true, format);
    }
    kept_at_zero = conversion.overflow == Overflow::kSaturate ||
                   RoundsInward(conversion.rounding, value.negative);
  }
  return kept_at_zero ? Encoded{0, RoundingStatus::kSaturated, false} : Nan(true, format, false);
}

Encoded EncodeFinite(const Real& value, const NumberFormat& format, const Conversion& conversion,
                     std::uint64_t index) {
  if (!HasZero(format) && LeadingExponent(value) < LowestExponent(format)) {
    return Zero(value.negative, format);  // there is nothing below the smallest to go to
  }
  const Magnitude magnitude = RoundedMagnitude(value, format, conversion, index);
  if (magnitude.code > LargestCode(format)) {
    const bool inward = RoundsInward(conversion.rounding, value.negative);
    return PastLargest(value, format, inward ? Overflow::kSaturate : conversion.overflow);
  }
  const RoundingStatus status = StatusOf(magnitude.code, magnitude.exact, format);
  if (status == RoundingStatus::kSubnormal &&
      conversion.subnormals == Subnormals::kFlushedOnOutput) {
    return FlushedToZero(value.negative, format);
  }
  const bool negative = value.negative && (magnitude.code != 0 || HasNegativeZero(format));
  return {SignCode(negative, format) | magnitude.code, status, magnitude.exact};
}

// significand × 2^exponent, which a double holds exactly.
double DoubleOf(std::uint64_t significand, int exponent) {
  if (significand == 0) {
    return 0.0;
  }
  const int shift = std::countl_zero(significand) - 11;  // that puts the leading bit in place
  const int field = exponent - shift + 1075;
  if (field <= 0) {  // a subnormal of float64, in steps of 2^−1074
    return std::bit_cast<double>(significand << (exponent + 1074));
  }
  const std::uint64_t fraction = (significand << shift) & ((std::uint64_t{1} << 52) - 1);
  return std::bit_cast<double>(static_cast<std::uint64_t>(field) << 52 | fraction);
}

}  // namespace

bool IsSubnormal(const Real& value, const NumberFormat& format) {
  return format.has_subnormals && value.kind == Real::Kind::kFinite &&
         LeadingExponent(value) < LowestExponent(format);
}

Encoded FlushedToZero(bool negative, const NumberFormat& format) {
  const std::uint64_t code = Zero(negative, format).code;
  return {code, StatusOf(code & MagnitudeMask(format), false, format), false};
}

Encoded Encode(const Real& value, const NumberFormat& format, const Conversion& conversion,
               std::uint64_t index) {
  if (value.kind == Real::Kind::kNan) {
    return Nan(value.negative, format, HasNan(format));
  }
  if (value.kind == Real::Kind::kZero) {
    return Zero(value.negative, format);
  }
  const bool finite = value.kind == Real::Kind::kFinite;
  if (finite && conversion.subnormals == Subnormals::kFlushedOnInput &&
      LeadingExponent(value) < kLowestExponentOfFloat64) {
    return FlushedToZero(value.negative, format);
  }
  if (value.negative && !format.has_sign) {
    return BelowZero(value, format, conversion, index);
  }
  return finite ? EncodeFinite(value, format, conversion, index)
                : PastLargest(value, format, conversion.infinities);
}

Encoded Encode(const Real& value, const NumberFormat& format, Overflow overflow) {
  return Encode(value, format, NearestEven(overflow));
}

Encoded Encode(double value, const NumberFormat& format, const Conversion& conversion,
               std::uint64_t index) {
  return Encode(RealOf(value), format, conversion, index);
}

Encoded Encode(double value, const NumberFormat& format, Overflow overflow) {
  return Encode(RealOf(value), format, NearestEven(overflow));
}

double FlushSubnormal(double value, const NumberFormat& format) {
  return IsSubnormal(RealOf(value), format) ? std::copysign(0.0, value) : value;
}

double Decode(std::uint64_t code, const NumberFormat& format) {
  code &= CodeMask(format);
  const std::uint64_t magnitude = code & MagnitudeMask(format);
  const double sign = magnitude != code ? -1.0 : 1.0;
  if (IsNanCode(code, format)) {
    return std::nan("");
  }
  if (magnitude > LargestCode(format)) {
    return std::copysign(HUGE_VAL, sign);
  }
  const auto field = static_cast<int>(magnitude >> format.fraction_bits);
  const std::uint64_t hidden = std::uint64_t{1} << format.fraction_bits;
  const std::uint64_t fraction = magnitude & (hidden - 1);
  const bool subnormal = field == 0 && format.has_subnormals;
  const std::uint64_t significand = subnormal ? fraction : fraction | hidden;
  const int binade = LowestExponent(format) + std::max(0, field - (format.has_subnormals ? 1 : 0));
  return std::copysign(DoubleOf(significand, binade - format.fraction_bits), sign);
}

double Round(double value, const NumberFormat& format, const Conversion& conversion,
             std::uint64_t index) {
  return Decode(Encode(value, format, conversion, index).code, format);
}

double Round(double value, const NumberFormat& format, Overflow overflow) {
  return Round(value, format, NearestEven(overflow));
}

}  // namespace fourpiles
