// Integers that share a scale, a byte a code, as src/formats/block_integer.cc has them.

#include <bit>
#include <cstring>
#include <span>

#include "formats/float32.h"
#include "kernels/block_tasks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/integer_kernels.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/bytes-inl.h"
#include "kernels/largest-inl.h"
#include "kernels/rounding-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fourpiles::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR  // not called: see HasVectors
ValueRange FindRange(const float* /*values*/, std::size_t /*count*/, Subnormals /*subnormals*/) {
  return {};
}
void FindIntegerScales(const IntegerRuns& /*runs*/, IntegerScales& /*scales*/) {}
void EncodeIntegerRuns(const IntegerRuns& /*runs*/, const IntegerScales& /*scales*/,
                       std::byte* /*codes*/) {}
void DecodeIntegerRuns(const IntegerDecodeTask& /*task*/, const IntegerScales& /*scales*/) {}
#else

constexpr std::size_t kLanes = HWY_LANES(float);

// Scales so far inside float32's range that nothing below is subnormal that matters, or infinite.
// Others go the scalar way; zero and NaN too.
HWY_INLINE bool IsPlain(float scale) {
  return scale >= 0x1p-60F && scale <= 0x1p60F;
}

// A divisor, its inverse, and its first and last twelve bits.
struct Divisor {
  FloatVector inverse;
  FloatVector high;
  FloatVector low;
  HWY_INLINE explicit Divisor(FloatVector by) {
    const Codes32 d;
    const Floats df;
    inverse = hn::Div(hn::Set(df, 1), by);
    high = hn::BitCast(df, hn::And(hn::BitCast(d, by), hn::Set(d, ~0xfff)));
    low = hn::Sub(by, high);
  }
};

// The quotient rounded to the nearest whole number, ties to even, decided without error for
// quotients below 512. With n the whole number below the quotient as far as a product tells, twice
// the value is compared with the middle 2n + 1 times the divisor, whose two halves have exact
// products. Near the middle the subtraction is exact (Sterbenz); farther off its rounding does not
// change which side of the second product, 4096 times smaller, it is on. Where the product is just
// on the wrong side of a whole number, n is one off, and so is the middle: the result is the same.
HWY_INLINE CodeVector ExactQuotient(FloatVector value, FloatVector about, const Divisor& by) {
  const Codes32 d;
  const Floats df;
  const FloatVector below = hn::Floor(about);
  const FloatVector middle = hn::Add(hn::Add(below, below), hn::Set(df, 1));
  const FloatVector rest = hn::Sub(hn::Add(value, value), hn::Mul(middle, by.high));
  const FloatVector bound = hn::Mul(middle, by.low);
  const CodeVector number = hn::ConvertTo(d, below);
  const auto above = hn::RebindMask(d, hn::Gt(rest, bound));
  const auto tie = hn::RebindMask(d, hn::Eq(rest, bound));
  const CodeVector odd = hn::And(number, hn::Set(d, 1));
  return hn::Add(number, hn::IfThenElse(above, hn::Set(d, 1), hn::IfThenElseZero(tie, odd)));
}

// The same. Inverse and product are each half a place off at most, together 2^−14 below 512: only
// where the product is that near a tie is there anything to decide.
HWY_INLINE CodeVector NearestQuotient(FloatVector value, const Divisor& by) {
  const Floats df;
  const FloatVector about = hn::Mul(value, by.inverse);
  const CodeVector nearest = hn::NearestInt(about);
  const FloatVector off = hn::Abs(hn::Sub(about, hn::ConvertTo(df, nearest)));
  if (HWY_UNLIKELY(!hn::AllFalse(df, hn::Gt(off, hn::Set(df, 0.5F - 0x1p-13F))))) {
    return ExactQuotient(value, about, by);
  }
  return nearest;
}

// What RangeOf says of magnitudes of either sign.
HWY_INLINE ValueRange RangeOfEnds(float below, float above, Subnormals subnormals) {
  const float ends[] = {-below, above};
  return RangeOf(ends, subnormals);
}

ValueRange FindRange(const float* values, std::size_t count, Subnormals subnormals) {
  const Codes32 d;
  const CodeVector sign = hn::Set(d, ~kMagnitudeMask);
  CodeVector above = hn::Zero(d);  // bits as integers: those of the other sign are below zero
  CodeVector below = hn::Zero(d);
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const CodeVector bits = hn::BitCast(d, hn::LoadU(Floats(), values + i));
    above = hn::Max(above, bits);
    below = hn::Max(below, hn::Xor(bits, sign));
  }
  const auto largest = [&](CodeVector v) {
    return std::bit_cast<float>(hn::GetLane(hn::MaxOfLanes(d, v)));
  };
  return Union(RangeOfEnds(largest(below), largest(above), subnormals),
               RangeOf(std::span(values + i, count - i), subnormals));
}

// What the runs reach on either side; of symmetric codes the magnitude on both.
struct Ends {
  HWY_ALIGN std::int32_t below[kMostRuns];
  HWY_ALIGN std::int32_t above[kMostRuns];
};

HWY_INLINE void FindEnds(const IntegerRuns& runs, bool asymmetric, Ends& ends) {
  const Blocks blocks = {runs.values, runs.runs, runs.run_elements};
  if (!asymmetric) {
    StoreLargestMagnitudes(blocks, ends.above);
    std::memcpy(ends.below, ends.above, sizeof ends.below);
    return;
  }
  StoreLargestOfSigns(blocks, ends.above, ends.below);
}

void FindIntegerScales(const IntegerRuns& runs, IntegerScales& scales) {
  const Codes32 d;
  const Floats df;
  Ends ends = {};
  const IntegerCodes codes = scales.codes;
  FindEnds(runs, codes.asymmetric, ends);
  const int levels = codes.asymmetric ? (1 << codes.bits) - 1 : LargestCode(codes);
  for (std::size_t b = 0; b < runs.runs; b += kLanes) {
    const FloatVector below = hn::BitCast(df, hn::Load(d, ends.below + b));
    const FloatVector above = hn::BitCast(df, hn::Load(d, ends.above + b));
    const FloatVector whole = codes.asymmetric ? hn::Add(above, below) : above;
    const FloatVector scale = hn::Div(whole, hn::Set(df, static_cast<float>(levels)));
    hn::Store(scale, df, scales.scales + b);
    if (codes.asymmetric) {
      const CodeVector steps = NearestQuotient(below, Divisor(scale));
      const CodeVector zero = hn::Add(steps, hn::Set(d, SmallestCode(codes)));
      hn::Store(hn::Min(zero, hn::Set(d, LargestCode(codes))), d, scales.zero_points + b);
    }
  }
  for (std::size_t b = 0; b < runs.runs; ++b) {
    if (HWY_UNLIKELY(!IsPlain(scales.scales[b]))) {
      const ValueRange range = RangeOfEnds(std::bit_cast<float>(ends.below[b]),
                                           std::bit_cast<float>(ends.above[b]), runs.subnormals);
      const IntegerScale scale = IntegerScaleOf(range, codes);
      scales.scales[b] = scale.scale;
      scales.zero_points[b] = scale.zero_point;
    }
  }
}

HWY_INLINE IntegerScale ScaleAt(const IntegerScales& scales, std::size_t b) {
  return {scales.codes, scales.scales[b], scales.zero_points[b]};
}

void EncodeIntegerRuns(const IntegerRuns& shared_runs, const IntegerScales& scales,
                       std::byte* codes) {
  const Codes32 d;
  const Floats df;
  const IntegerRuns runs = shared_runs;  // what is stored to may be anything but these
  const CodeVector smallest = hn::Set(d, SmallestCode(scales.codes));
  const CodeVector largest = hn::Set(d, LargestCode(scales.codes));
  const CodeVector mask = hn::Set(d, (1 << scales.codes.bits) - 1);
  for (std::size_t b = 0; b < runs.runs; ++b) {
    const float scale = scales.scales[b];
    std::size_t i = b * runs.run_elements;
    const std::size_t end = i + runs.run_elements;
    if (HWY_LIKELY(IsPlain(scale))) {
      const Divisor divisor(hn::Set(df, scale));
      const CodeVector zero = hn::Set(d, scales.zero_points[b]);
      for (; i + kLanes <= end; i += kLanes) {
        const CodeVector steps = NearestQuotient(hn::LoadU(df, runs.values + i), divisor);
        const CodeVector code = hn::Max(hn::Min(hn::Add(steps, zero), largest), smallest);
        StoreBytes(hn::And(code, mask), codes + i);
      }
    }
    if (HWY_UNLIKELY(i < end)) {
      EncodeIntegers(std::span(runs.values + i, end - i), ScaleAt(scales, b),
                     {.subnormals = runs.subnormals}, 0, std::span(codes + i, end - i));
    }
  }
}

template <bool kStreams>
void DecodeRuns(const IntegerDecodeTask& shared_task, const IntegerScales& scales) {
  const Codes32 d;
  const Floats df;
  const IntegerDecodeTask task = shared_task;
  const int unused = 32 - scales.codes.bits;
  const bool is_signed = scales.codes.is_signed;
  for (std::size_t b = 0; b < task.runs; ++b) {
    std::size_t i = b * task.run_elements;
    const std::size_t end = i + task.run_elements;
    if (HWY_LIKELY(IsFinite(scales.scales[b]))) {
      const FloatVector scale = hn::Set(df, scales.scales[b]);
      const CodeVector zero = hn::Set(d, scales.zero_points[b]);
      for (; i + kLanes <= end; i += kLanes) {
        CodeVector code = LoadBytes(task.codes + i);
        if (is_signed) {
          code = hn::ShiftRightSame(hn::ShiftLeftSame(code, unused), unused);
        }
        const FloatVector steps = hn::ConvertTo(df, hn::Sub(code, zero));
        StoreFloats<kStreams>(hn::Mul(steps, scale), task.values + i);
      }
    }
    if (HWY_UNLIKELY(i < end)) {
      DecodeIntegers(std::span(task.codes + i, end - i), ScaleAt(scales, b),
                     std::span(task.values + i, end - i));
    }
  }
}

void DecodeIntegerRuns(const IntegerDecodeTask& task, const IntegerScales& scales) {
  const bool streams = Streams(task) && (task.runs == 1 || task.run_elements % kLanes == 0);
  streams ? DecodeRuns<true>(task, scales) : DecodeRuns<false>(task, scales);
}

#endif  // HWY_SCALAR

}  // namespace fourpiles::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fourpiles {
HWY_EXPORT(FindRange);
HWY_EXPORT(FindIntegerScales);
HWY_EXPORT(EncodeIntegerRuns);
HWY_EXPORT(DecodeIntegerRuns);

ValueRange FindRange(const float* values, std::size_t count, Subnormals subnormals) {
  return HWY_DYNAMIC_DISPATCH(FindRange)(values, count, subnormals);
}
void FindIntegerScales(const IntegerRuns& runs, IntegerScales& scales) {
  HWY_DYNAMIC_DISPATCH(FindIntegerScales)(runs, scales);
}
void EncodeIntegerRuns(const IntegerRuns& runs, const IntegerScales& scales, std::byte* codes) {
  HWY_DYNAMIC_DISPATCH(EncodeIntegerRuns)(runs, scales, codes);
}
void DecodeIntegerRuns(const IntegerDecodeTask& task, const IntegerScales& scales) {
  HWY_DYNAMIC_DISPATCH(DecodeIntegerRuns)(task, scales);
}
}  // namespace fourpiles
#endif
