#include "kernels/conversion_plan.h"

#include <bit>
#include <cmath>

#include "formats/codes.h"

namespace fourpiles {
namespace {

constexpr int kFloatFraction = 23;
constexpr int kFloatBias = 127;

std::uint32_t Low32(std::uint64_t code) {
  return static_cast<std::uint32_t>(code);
}

std::uint32_t MagnitudeOf(double value) {
  return std::bit_cast<std::uint32_t>(static_cast<float>(std::abs(value)));
}

// Subnormals lie where float32's do.
bool SharesSubnormals(const NumberFormat& format) {
  return format.bias == kFloatBias;
}

// The code is what a float32 begins with.
bool IsShortFloat(const NumberFormat& format) {
  return format.exponent_bits == 8 && format.bias == kFloatBias &&
         format.specials == Specials::kIeee;
}

// Whether what is past the largest value is the code that `plan` caps with, the sign apart.
bool Caps(const EncodePlan& plan, const NumberFormat& format) {
  const auto sign = static_cast<std::uint32_t>(SignCode(true, format));
  return plan.overflow_negative == (plan.overflow_positive | sign) &&
         (plan.overflow_positive == plan.largest || plan.overflow_positive == plan.largest + 1);
}

bool IsHalf(const NumberFormat& format) {
  return format.exponent_bits == 5 && format.fraction_bits == 10 && format.bias == 15 &&
         format.specials == Specials::kIeee && format.unused_bits == 0;
}

void PlanDirections(EncodePlan& plan, RoundingMode rounding) {
  constexpr std::uint32_t kAlways = 0xffffffff;  // carries unless nothing was cut off
  constexpr std::uint32_t kHalf = 0x80000000;
  switch (rounding) {
    case RoundingMode::kNearestEven:
      plan.addend_positive = plan.addend_negative = kHalf - 1;
      plan.addend_odd = 1;
      break;
    case RoundingMode::kNearestAway:
      plan.addend_positive = plan.addend_negative = kHalf;
      break;
    case RoundingMode::kUp:
      plan.addend_positive = kAlways;
      break;
    case RoundingMode::kDown:
      plan.addend_negative = kAlways;
      break;
    case RoundingMode::kToOdd:
      plan.to_odd = true;
      break;
    case RoundingMode::kStochastic:
      plan.stochastic = true;
      break;
    case RoundingMode::kTowardZero:
      break;
  }
}

}  // namespace

bool HasPlan(const NumberFormat& format) {
  return format.has_sign && format.has_subnormals && format.fraction_bits >= 1 &&
         format.fraction_bits < kFloatFraction && HighestExponent(format) <= kFloatBias &&
         LowestExponent(format) - format.fraction_bits >= -149 && format.bias <= kFloatBias &&
         StorageBits(format) <= 32;
}

EncodePlan PlanEncode(const NumberFormat& format, const Conversion& conversion,
                      const NumberFormat& source) {
  EncodePlan plan;
  const int fraction = format.fraction_bits;
  plan.is_nearest_even = conversion.rounding == RoundingMode::kNearestEven &&
                         conversion.subnormals == Subnormals::kKept;
  const bool is_ieee = plan.is_nearest_even && format.specials == Specials::kIeee &&
                       conversion.overflow == Overflow::kIeee &&
                       conversion.infinities == Overflow::kIeee;
  plan.is_ieee_half = is_ieee && IsHalf(format);
  plan.is_short_float = is_ieee && IsShortFloat(format);
  plan.shift = kFloatFraction - fraction;
  plan.rebias = static_cast<std::uint32_t>(kFloatBias - format.bias) << fraction;
  plan.smallest_normal = MagnitudeOf(SmallestNormal(format));
  plan.shares_subnormals = SharesSubnormals(format);
  if (!plan.shares_subnormals) {
    plan.subnormal_anchor = std::ldexp(1.0F, kFloatFraction + LowestExponent(format) - fraction);
  }
  plan.exponent_offset = format.bias - kFloatBias;
  plan.fraction_bits = fraction;
  PlanDirections(plan, conversion.rounding);
  if (conversion.subnormals == Subnormals::kFlushedOnInput) {
    plan.flush_input_below = MagnitudeOf(SmallestNormal(source));
  } else if (conversion.subnormals == Subnormals::kFlushedOnOutput) {
    plan.flush_output_below = Low32(SmallestNormalCode(format));
  }
  const double huge = std::ldexp(1.0, 200);  // past every such format, by more than any rounding
  plan.largest = Low32(LargestCode(format));
  plan.overflow_positive = Low32(Encode(huge, format, conversion).code);
  plan.overflow_negative = Low32(Encode(-huge, format, conversion).code);
  plan.caps = Caps(plan, format);
  plan.cap = plan.overflow_positive;
  plan.infinity_positive = Low32(Encode(HUGE_VAL, format, conversion).code);
  plan.infinity_negative = Low32(Encode(-HUGE_VAL, format, conversion).code);
  plan.nan_positive = Low32(Encode(std::nan(""), format, conversion).code);
  plan.nan_negative = Low32(Encode(-std::nan(""), format, conversion).code);
  plan.sign_shift = 31 - MagnitudeBits(format);
  plan.has_negative_zero = HasNegativeZero(format);
  plan.unused_bits = format.unused_bits;
  return plan;
}

DecodePlan PlanDecode(const NumberFormat& format) {
  DecodePlan plan;
  plan.is_ieee_half = IsHalf(format);
  plan.is_bfloat = IsShortFloat(format) && format.fraction_bits == 7 && format.unused_bits == 0;
  plan.shift = kFloatFraction - format.fraction_bits;
  plan.rebias = static_cast<std::uint32_t>(kFloatBias - format.bias) << kFloatFraction;
  if (!SharesSubnormals(format)) {
    plan.smallest_normal_code = Low32(SmallestNormalCode(format));
    plan.subnormal_step = static_cast<float>(SmallestPositive(format));
  }
  plan.magnitude_mask = Low32(MagnitudeMask(format));
  plan.largest = Low32(LargestCode(format));
  plan.nan_is_negative_zero = IsNanCode(SignCode(true, format), format);
  plan.has_specials = plan.nan_is_negative_zero || plan.largest < plan.magnitude_mask;
  const bool has_infinity = Infinities(format) > 0;
  plan.infinity = has_infinity ? plan.largest + 1 : plan.magnitude_mask + 1;
  plan.sign_shift = 31 - MagnitudeBits(format);
  plan.unused_bits = format.unused_bits;
  return plan;
}

}  // namespace fourpiles
