// Rounding float32 into a format and reading its codes, a vector at a time. Included once for each
// instruction set.

#include "kernels/conversion_plan.h"

// clang-format off: Highway's guard, which is switched for each instruction set
#if defined(FOURPILES_KERNELS_ROUNDING_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOURPILES_KERNELS_ROUNDING_INL_H_
#undef FOURPILES_KERNELS_ROUNDING_INL_H_
#else
#define FOURPILES_KERNELS_ROUNDING_INL_H_
#endif
// clang-format on

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace fourpiles::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Codes32 = hn::ScalableTag<std::int32_t>;  // signed comparison is the cheaper one
using Bits32 = hn::ScalableTag<std::uint32_t>;
using FloatVector = hn::Vec<Floats>;
using CodeVector = hn::Vec<Codes32>;
using CodeMaskVector = hn::Mask<Codes32>;

inline constexpr std::int32_t kInfiniteMagnitude = 0x7f800000;
inline constexpr std::int32_t kMagnitudeMask = 0x7fffffff;

HWY_INLINE CodeVector SetCode(std::uint32_t code) {
  return hn::Set(Codes32(), static_cast<std::int32_t>(code));
}

// Shifts right without copies of the sign.
HWY_INLINE CodeVector ShiftDown(CodeVector v, int bits) {
  return hn::BitCast(Codes32(), hn::ShiftRightSame(hn::BitCast(Bits32(), v), bits));
}

struct Rounded {
  CodeVector code;
  CodeMaskVector beyond;  // finite inputs whose rounded value lies past the largest
};

// What NaN and infinity become, in the lanes that have them.
HWY_INLINE CodeVector WithSpecials(CodeVector code, CodeVector bits, const EncodePlan& plan) {
  const Codes32 d;
  const CodeVector magnitude = hn::And(bits, hn::Set(d, kMagnitudeMask));
  const auto negative = hn::Lt(bits, hn::Zero(d));
  const auto pick = [&](std::uint32_t positive_code, std::uint32_t negative_code) {
    return hn::IfThenElse(negative, SetCode(negative_code), SetCode(positive_code));
  };
  const CodeVector infinity = hn::Set(d, kInfiniteMagnitude);
  code = hn::IfThenElse(hn::Eq(magnitude, infinity),
                        pick(plan.infinity_positive, plan.infinity_negative), code);
  return hn::IfThenElse(hn::Gt(magnitude, infinity), pick(plan.nan_positive, plan.nan_negative),
                        code);
}

// The code of a magnitude's rounded value, put in place of what is past the largest, given its
// sign.
HWY_INLINE Rounded Finish(CodeVector magnitude_code, CodeVector bits, const EncodePlan& plan) {
  const Codes32 d;
  const auto beyond = hn::Gt(magnitude_code, SetCode(plan.largest));
  CodeVector code = hn::Min(magnitude_code, SetCode(plan.cap));
  if (!plan.caps) {
    const CodeVector past =
        hn::IfThenElse(hn::Lt(bits, hn::Zero(d)), SetCode(plan.overflow_negative),
                       SetCode(plan.overflow_positive));
    code = hn::IfThenElse(beyond, past, magnitude_code);
  }
  const CodeVector sign_bit = SetCode(0x80000000U >> plan.sign_shift);
  CodeVector whole = hn::OrAnd(code, ShiftDown(bits, plan.sign_shift), sign_bit);
  if (!plan.has_negative_zero) {
    whole = hn::IfThenZeroElse(hn::Eq(code, hn::Zero(d)), whole);
  }
  return {whole, beyond};
}

// Infinity and NaN, or neither.
HWY_INLINE CodeMaskVector IsSpecial(CodeVector bits) {
  const Codes32 d;
  const CodeVector magnitude = hn::And(bits, hn::Set(d, kMagnitudeMask));
  return hn::Gt(magnitude, hn::Set(d, kInfiniteMagnitude - 1));
}

// Rounds any vector: those with infinity or NaN in them are rare and put right afterwards.
template <class Rounder>
HWY_INLINE Rounded RoundAny(const Rounder& rounder, CodeVector bits, CodeVector random,
                            const EncodePlan& plan) {
  const Rounded rounded = rounder(bits, random, plan);
  const CodeMaskVector special = IsSpecial(bits);
  if (HWY_UNLIKELY(!hn::AllFalse(Codes32(), special))) {
    return {WithSpecials(rounded.code, bits, plan), hn::AndNot(special, rounded.beyond)};
  }
  return rounded;
}

// The rounders take finite numbers; RoundAny others too.

// Nearest-even with subnormals kept. Normal numbers: half a place less one, and one more where the
// kept code is odd, carry into the code. Subnormals: adding a power of two whose last place is the
// smallest subnormal leaves the code in the low bits, rounded by the addition itself.
struct NearestEven {
  HWY_INLINE Rounded operator()(CodeVector bits, CodeVector /*random*/,
                                const EncodePlan& plan) const {
    const Codes32 d;
    const CodeVector one = hn::Set(d, 1);
    const CodeVector magnitude = hn::And(bits, hn::Set(d, kMagnitudeMask));
    const CodeVector odd = hn::And(ShiftDown(magnitude, plan.shift), one);
    const CodeVector below_half = hn::Set(d, (1 << (plan.shift - 1)) - 1);
    const CodeVector carried = hn::Add(magnitude, hn::Add(odd, below_half));
    CodeVector code = hn::Sub(ShiftDown(carried, plan.shift), SetCode(plan.rebias));
    if (!plan.shares_subnormals) {
      const Floats df;
      const FloatVector anchor = hn::Set(df, plan.subnormal_anchor);
      const FloatVector moved = hn::Add(hn::BitCast(df, magnitude), anchor);
      const CodeVector subnormal = hn::Sub(hn::BitCast(d, moved), hn::BitCast(d, anchor));
      code = hn::IfThenElse(hn::Lt(magnitude, SetCode(plan.smallest_normal)), subnormal, code);
    }
    return Finish(code, bits, plan);
  }
};

// Any rounding. The significand is kept above `cut` bits; the first 32 bits cut off, and what the
// mode adds to them, carry or not. `scale` is a power of two that the values are divided by.
struct AnyRounding {
  CodeVector scale;

  HWY_INLINE Rounded operator()(CodeVector bits, CodeVector random, const EncodePlan& plan) const {
    const Codes32 d;
    const Bits32 du;
    const CodeVector zero = hn::Zero(d);
    CodeVector magnitude = hn::And(bits, hn::Set(d, kMagnitudeMask));
    magnitude = hn::IfThenZeroElse(hn::Lt(magnitude, SetCode(plan.flush_input_below)), magnitude);
    const CodeVector field = ShiftDown(magnitude, 23);
    const CodeVector fraction = hn::And(magnitude, hn::Set(d, 0x7fffff));
    const CodeVector hidden = hn::IfThenZeroElse(hn::Eq(field, zero), hn::Set(d, 0x800000));
    const CodeVector significand = hn::Or(fraction, hidden);

    // The exponent field in the format, and how far below its lowest binade the value lies.
    const CodeVector exponent = hn::Sub(hn::Max(field, hn::Set(d, 1)), scale);
    const CodeVector target = hn::Add(exponent, hn::Set(d, plan.exponent_offset - 1));
    const CodeVector depth = hn::Max(hn::Neg(target), zero);
    const CodeVector cut = hn::Add(depth, hn::Set(d, plan.shift));

    // Up to 31 bits are cut by shifts; from 32 on nothing is kept.
    const CodeVector most = hn::Set(d, 31);
    const auto deep = hn::Gt(cut, most);
    const auto cut_bits = hn::BitCast(du, hn::Min(cut, most));
    const auto left = hn::BitCast(du, significand);
    const CodeVector kept = hn::IfThenZeroElse(deep, hn::BitCast(d, hn::Shr(left, cut_bits)));
    const auto shallow_rest =
        hn::Shl(left, hn::Sub(hn::Set(du, 32), hn::Max(cut_bits, hn::Set(du, 1))));
    auto deep_rest = left;  // other than zero is all that matters …
    if (plan.stochastic) {  // … but here
      const CodeVector further = hn::Min(hn::Max(hn::Sub(cut, hn::Set(d, 32)), zero), most);
      deep_rest = hn::Shr(left, hn::BitCast(du, further));
    }
    const auto rest = hn::IfThenElse(hn::RebindMask(du, deep), deep_rest, shallow_rest);

    const CodeVector base = hn::ShiftLeftSame(hn::Max(target, zero), plan.fraction_bits);
    CodeVector code = hn::Add(base, kept);
    if (plan.to_odd) {
      const CodeVector inexact =
          hn::IfThenZeroElse(hn::Eq(hn::BitCast(d, rest), zero), hn::Set(d, 1));
      code = hn::Or(code, inexact);
    } else {
      const auto negative = hn::Lt(bits, zero);
      CodeVector addend =
          hn::IfThenElse(negative, SetCode(plan.addend_negative), SetCode(plan.addend_positive));
      addend = hn::Add(addend, hn::And(code, SetCode(plan.addend_odd)));
      if (plan.stochastic) {
        addend = random;
      }
      const auto sum = hn::Add(rest, hn::BitCast(du, addend));
      const auto carries = hn::RebindMask(d, hn::Lt(sum, rest));
      code = hn::Sub(code, hn::VecFromMask(d, carries));
    }
    code = hn::IfThenZeroElse(hn::Lt(code, SetCode(plan.flush_output_below)), code);
    return Finish(code, bits, plan);
  }
};

// The float32 of a code.
HWY_INLINE FloatVector DecodeVector(CodeVector code, const DecodePlan& plan) {
  const Codes32 d;
  const Floats df;
  const CodeVector magnitude = hn::And(code, SetCode(plan.magnitude_mask));
  const CodeVector sign =
      hn::AndNot(hn::Set(d, kMagnitudeMask), hn::ShiftLeftSame(code, plan.sign_shift));
  CodeVector bits = hn::Add(hn::ShiftLeftSame(magnitude, plan.shift), SetCode(plan.rebias));
  if (plan.smallest_normal_code != 0) {
    const FloatVector subnormal =
        hn::Mul(hn::ConvertTo(df, magnitude), hn::Set(df, plan.subnormal_step));
    bits = hn::IfThenElse(hn::Lt(magnitude, SetCode(plan.smallest_normal_code)),
                          hn::BitCast(d, subnormal), bits);
  }
  bits = hn::Or(bits, sign);
  if (!plan.has_specials) {
    return hn::BitCast(df, bits);
  }
  auto special = hn::Gt(magnitude, SetCode(plan.largest));
  auto nan = hn::And(special, hn::Ne(magnitude, SetCode(plan.infinity)));
  if (plan.nan_is_negative_zero) {
    const auto negative_zero = hn::And(hn::Eq(magnitude, hn::Zero(d)), hn::Ne(sign, hn::Zero(d)));
    special = hn::Or(special, negative_zero);
    nan = hn::Or(nan, negative_zero);
  }
  if (HWY_UNLIKELY(!hn::AllFalse(d, special))) {
    bits = hn::IfThenElse(special, hn::Or(sign, hn::Set(d, kInfiniteMagnitude)), bits);
    bits = hn::IfThenElse(nan, hn::Set(d, 0x7fc00000), bits);
  }
  return hn::BitCast(df, bits);
}

#endif  // HWY_SCALAR

}  // namespace fourpiles::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // FOURPILES_KERNELS_ROUNDING_INL_H_
