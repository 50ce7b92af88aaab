// What float32 values lose, a vector at a time.

#include <bit>
#include <cmath>
#include <cstring>

#include "kernels/loss_tasks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/loss_kernels.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/sums-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fourpiles::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR  // not called: see HasVectors
BlockLosses CountFloatLosses(std::span<const float> /*values*/, std::span<const float> /*rounded*/,
                             const LossLimits& /*limits*/, std::size_t /*sampled*/,
                             ErrorHistogram& /*histogram*/) {
  return {};
}
BlockFacts FloatFacts(std::span<const float> /*values*/) {
  return {};
}
Extremes FloatExtremes(std::span<const float> /*values*/) {
  return {};
}
void ZeroSpecials(std::span<float> /*values*/) {}
std::size_t FirstIn(std::span<const std::uint16_t> /*codes*/, const CodeRange& /*range*/) {
  return 0;
}
#else

constexpr std::size_t kLanes = HWY_LANES(float);

HWY_INLINE CodeVector BitsAt(const float* from) {
  return hn::BitCast(Codes32(), hn::LoadU(Floats(), from));
}

// Which lanes of a group that begins at lane 0 are no padding.
HWY_INLINE CodeMaskVector Real(std::size_t lane, std::size_t count) {
  const Codes32 d;
  const auto left = static_cast<std::int32_t>(count) - static_cast<std::int32_t>(lane);
  return hn::Lt(hn::Iota(d, 0), hn::Set(d, left));
}

// Calls group(at, count) over whole groups where they lie, and over the rest in a padded copy.
template <std::size_t kArrays, class Group>
HWY_INLINE void ForGroups(const std::array<const float*, kArrays>& arrays, std::size_t count,
                          const Group& group) {
  std::size_t i = 0;
  std::array<const float*, kArrays> at = arrays;
  for (; i + kSummed <= count; i += kSummed) {
    group(at, i, kSummed);
    for (const float*& array : at) {
      array += kSummed;
    }
  }
  if (i < count) {
    HWY_ALIGN float padded[kArrays][kSummed] = {};
    for (std::size_t array = 0; array < kArrays; ++array) {
      std::memcpy(padded[array], at[array], (count - i) * sizeof(float));
      at[array] = padded[array];
    }
    group(at, i, count - i);
  }
}

// --- Losses ---

// Limits as float32 bits: a magnitude is beyond one where its bits are more.
struct LossBits {
  std::int32_t largest = 0;
  std::int32_t below_beyond = 0;
  std::int32_t smallest_normal = 0;
};

struct LossSums {
  DoubleSums squares;
  DoubleSums errors;
  DoubleSums products;
  DoubleSums relatives;
};

struct LossCounts {
  BlockLosses losses;
  CodeVector best;     // largest relative errors, as bits
  CodeVector best_at;  // the elements that have them
};

struct Pair {
  CodeVector before;
  CodeVector after;
};

// Takes lanes that are not finite before and after, or padding, out of the comparison. They are
// rare.
HWY_NOINLINE Pair WithoutSpecials(Pair pair, CodeMaskVector real, const LossBits& limits,
                                  BlockLosses& losses) {
  const Codes32 d;
  const CodeVector mask = hn::Set(d, kMagnitudeMask);
  const CodeVector infinity = hn::Set(d, kInfiniteMagnitude);
  const CodeVector magnitude = hn::And(pair.before, mask);
  const auto was_finite = hn::And(real, hn::Lt(magnitude, infinity));
  const auto is_finite = hn::Lt(hn::And(pair.after, mask), infinity);
  const auto lost = hn::AndNot(is_finite, was_finite);
  losses.overflow += CountOf(lost);
  losses.changed += CountOf(lost);
  losses.saturated += CountOf(hn::And(lost, hn::Gt(magnitude, hn::Set(d, limits.largest))));
  const auto both = hn::And(was_finite, is_finite);
  return {hn::IfThenElseZero(both, pair.before), hn::IfThenElseZero(both, pair.after)};
}

HWY_INLINE void CountBeyond(CodeVector magnitude, const LossBits& limits, BlockLosses& losses) {
  const Codes32 d;
  const auto larger = hn::Gt(magnitude, hn::Set(d, limits.largest));
  if (HWY_UNLIKELY(!hn::AllFalse(d, larger))) {
    losses.saturated += CountOf(larger);
    losses.overflow += CountOf(hn::Gt(magnitude, hn::Set(d, limits.below_beyond)));
  }
}

struct LossGroup {
  LossBits limits;
  std::size_t sampled;
  std::uint64_t* histogram;

  // Relative errors of a vector; those of x = 0 are 0.
  HWY_INLINE CodeVector Compare(const Pair& pair, CodeVector error, LossCounts& counts) const {
    const Codes32 d;
    const Floats df;
    const CodeVector zero = hn::Zero(d);
    const CodeVector mask = hn::Set(d, kMagnitudeMask);
    const CodeVector magnitude = hn::And(pair.before, mask);
    const CodeVector after = hn::And(pair.after, mask);
    BlockLosses& losses = counts.losses;
    CountBeyond(magnitude, limits, losses);
    const auto was_zero = hn::Eq(magnitude, zero);
    const auto is_zero = hn::Eq(after, zero);
    losses.compared += static_cast<std::int64_t>(kLanes) - CountOf(was_zero);
    losses.underflow += CountOf(hn::AndNot(was_zero, is_zero));
    losses.subnormal +=
        CountOf(hn::AndNot(is_zero, hn::Lt(after, hn::Set(d, limits.smallest_normal))));
    const CodeVector size = hn::And(error, mask);
    losses.changed += static_cast<std::int64_t>(kLanes) - CountOf(hn::Eq(size, zero));
    const auto one = hn::BitCast(d, hn::Set(df, 1));
    const auto divisor = hn::BitCast(df, hn::IfThenElse(was_zero, one, magnitude));
    const auto relative = hn::BitCast(d, hn::Div(hn::BitCast(df, size), divisor));
    return hn::IfThenZeroElse(was_zero, relative);
  }

  HWY_INLINE void Rank(CodeVector relative, std::size_t first, LossCounts& counts) const {
    const Codes32 d;
    const auto larger = hn::Gt(relative, counts.best);
    const CodeVector at = hn::Iota(d, static_cast<std::int32_t>(first));
    counts.best = hn::IfThenElse(larger, relative, counts.best);
    counts.best_at = hn::IfThenElse(larger, at, counts.best_at);
  }

  // `compared`: lanes that belong into the histogram.
  HWY_INLINE void Sort(CodeVector relative, CodeMaskVector compared) const {
    const Codes32 d;
    const CodeVector from = hn::Set(d, ErrorHistogram::kFirstBits);
    const CodeVector last = hn::Set(d, ErrorHistogram::kBuckets - 1);
    const CodeVector bucket =
        hn::Min(hn::Max(hn::Sub(ShiftDown(relative, 16), from), hn::Zero(d)), last);
    HWY_ALIGN std::int32_t buckets[kLanes];
    hn::Store(hn::Compress(bucket, compared), d, buckets);
    const std::size_t count = hn::CountTrue(d, compared);
    for (std::size_t i = 0; i < count; ++i) {
      ++histogram[buckets[i]];
    }
  }

  HWY_INLINE void operator()(const std::array<const float*, 2>& at, std::size_t first,
                             std::size_t count, LossCounts& counts, LossSums& sums) const {
    const Codes32 d;
    const Floats df;
    HWY_ALIGN float before[kSummed];
    HWY_ALIGN float errors[kSummed];
    HWY_ALIGN float relatives[kSummed];
    for (std::size_t i = 0; i < kSummed; i += kLanes) {
      Pair pair = {BitsAt(at[0] + i), BitsAt(at[1] + i)};
      const CodeVector exponents = hn::Set(d, kInfiniteMagnitude);
      const auto special = hn::Or(hn::Eq(hn::And(pair.before, exponents), exponents),
                                  hn::Eq(hn::And(pair.after, exponents), exponents));
      if (HWY_UNLIKELY(!hn::AllFalse(d, special) || count < kSummed)) {
        pair = WithoutSpecials(pair, Real(i, count), limits, counts.losses);
      }
      const auto error = hn::Sub(hn::BitCast(df, pair.after), hn::BitCast(df, pair.before));
      const CodeVector relative = Compare(pair, hn::BitCast(d, error), counts);
      Rank(relative, first + i, counts);
      if (first + i < sampled) {
        const auto compared = hn::Ne(hn::And(pair.before, hn::Set(d, kMagnitudeMask)), hn::Zero(d));
        Sort(relative, hn::And(compared, Real(first + i, sampled)));
      }
      hn::Store(hn::BitCast(df, pair.before), df, before + i);
      hn::Store(error, df, errors + i);
      hn::Store(hn::BitCast(df, relative), df, relatives + i);
    }
    for (std::size_t i = 0; i < kSummed; i += kDoubles) {
      const std::size_t part = i / kDoubles % kSumVectors;
      const DoubleVector x = DoublesAt(before + i);
      const DoubleVector e = DoublesAt(errors + i);
      sums.squares[part] = hn::Add(sums.squares[part], hn::Mul(x, x));
      sums.errors[part] = hn::Add(sums.errors[part], hn::Mul(e, e));
      sums.products[part] = hn::Add(sums.products[part], hn::Mul(x, e));
      sums.relatives[part] = hn::Add(sums.relatives[part], DoublesAt(relatives + i));
    }
  }
};

// The largest relative error of all lanes and the first element that has it.
void TakeLargest(const LossCounts& counts, BlockLosses& losses) {
  const Codes32 d;
  HWY_ALIGN std::int32_t best[kLanes];
  HWY_ALIGN std::int32_t at[kLanes];
  hn::Store(counts.best, d, best);
  hn::Store(counts.best_at, d, at);
  std::int32_t largest = 0;
  std::int32_t where = -1;
  for (std::size_t i = 0; i < kLanes; ++i) {
    if (best[i] > largest || (best[i] == largest && largest > 0 && at[i] < where)) {
      largest = best[i];
      where = at[i];
    }
  }
  losses.largest_relative_error = static_cast<double>(std::bit_cast<float>(largest));
  losses.largest_at = where;
}

BlockLosses CountFloatLosses(std::span<const float> values, std::span<const float> rounded,
                             const LossLimits& limits, std::size_t sampled,
                             ErrorHistogram& histogram) {
  const Codes32 d;
  const LossGroup group = {.limits = {.largest = FloatBitsAtMost(limits.largest),
                                      .below_beyond = FloatBitsAtLeast(limits.beyond) - 1,
                                      .smallest_normal = FloatBitsAtLeast(limits.smallest_normal)},
                           .sampled = sampled,
                           .histogram = histogram.Counts()};
  LossCounts counts = {{}, hn::Zero(d), hn::Zero(d)};
  LossSums sums;
  for (DoubleSums* const each : {&sums.squares, &sums.errors, &sums.products, &sums.relatives}) {
    Clear(*each);
  }
  ForGroups<2>({values.data(), rounded.data()}, values.size(),
               [&](const std::array<const float*, 2>& at, std::size_t first, std::size_t count) {
                 group(at, first, count, counts, sums);
               });
  BlockLosses losses = counts.losses;
  TakeLargest(counts, losses);
  losses.squared_values = Total(sums.squares);
  losses.squared_errors = Total(sums.errors);
  losses.error_products = Total(sums.products);
  losses.relative_errors = Total(sums.relatives);
  return losses;
}

// --- What values are ---

struct Magnitudes {
  CodeVector largest;   // magnitudes of finite values
  CodeVector smallest;  // … less one, as unsigned numbers: zero is the largest of all
};

// Counts what is not finite, and makes it zero.
HWY_NOINLINE CodeVector CountSpecials(CodeVector bits, CodeMaskVector real, BlockFacts& facts) {
  const Codes32 d;
  const CodeVector magnitude = hn::And(bits, hn::Set(d, kMagnitudeMask));
  const CodeVector infinity = hn::Set(d, kInfiniteMagnitude);
  facts.nan += CountOf(hn::And(real, hn::Gt(magnitude, infinity)));
  facts.infinite += CountOf(hn::And(real, hn::Eq(magnitude, infinity)));
  return hn::IfThenElseZero(hn::And(real, hn::Lt(magnitude, infinity)), bits);
}

BlockFacts FloatFacts(std::span<const float> values) {
  const Codes32 d;
  const Floats df;
  const Bits32 du;
  BlockFacts facts;
  DoubleSums powers[4];
  for (DoubleSums& sums : powers) {
    Clear(sums);
  }
  Magnitudes extremes = {hn::Zero(d), hn::Set(d, -1)};
  std::int64_t zeros = 0;  // padding and what is not finite included
  ForGroups<1>(
      {values.data()}, values.size(),
      [&](const std::array<const float*, 1>& at, std::size_t /*first*/, std::size_t count) {
        HWY_ALIGN float finite[kSummed];
        for (std::size_t i = 0; i < kSummed; i += kLanes) {
          CodeVector bits = BitsAt(at[0] + i);
          if (HWY_UNLIKELY(!hn::AllFalse(d, IsSpecial(bits)) || count < kSummed)) {
            bits = CountSpecials(bits, Real(i, count), facts);
          }
          const CodeVector magnitude = hn::And(bits, hn::Set(d, kMagnitudeMask));
          zeros += CountOf(hn::Eq(magnitude, hn::Zero(d)));
          extremes.largest = hn::Max(extremes.largest, magnitude);
          const auto less = hn::BitCast(du, hn::Sub(magnitude, hn::Set(d, 1)));
          extremes.smallest = hn::BitCast(d, hn::Min(hn::BitCast(du, extremes.smallest), less));
          hn::Store(hn::BitCast(df, bits), df, finite + i);
        }
        for (std::size_t i = 0; i < kSummed; i += kDoubles) {
          const std::size_t part = i / kDoubles % kSumVectors;
          const DoubleVector x = DoublesAt(finite + i);
          const DoubleVector square = hn::Mul(x, x);
          powers[0][part] = hn::Add(powers[0][part], x);
          powers[1][part] = hn::Add(powers[1][part], square);
          powers[2][part] = hn::Add(powers[2][part], hn::Mul(square, x));
          powers[3][part] = hn::Add(powers[3][part], hn::Mul(square, square));
        }
      });
  facts.count = static_cast<std::int64_t>(values.size());
  const auto groups = static_cast<std::int64_t>((values.size() + kSummed - 1) / kSummed * kSummed);
  facts.zero = zeros - (groups - facts.count) - facts.nan - facts.infinite;
  facts.largest =
      static_cast<double>(std::bit_cast<float>(hn::GetLane(hn::MaxOfLanes(d, extremes.largest))));
  const std::uint32_t smallest =
      hn::GetLane(hn::MinOfLanes(du, hn::BitCast(du, extremes.smallest)));
  facts.smallest = static_cast<double>(std::bit_cast<float>(smallest + 1));  // nothing but zeros: 0
  for (std::size_t power = 0; power < facts.powers.size(); ++power) {
    facts.powers[power] = Total(powers[power]);
  }
  return facts;
}

// A vector with 0 for what is not finite.
HWY_INLINE FloatVector FiniteAt(const float* from) {
  const CodeVector bits = BitsAt(from);
  return hn::BitCast(Floats(), hn::IfThenZeroElse(IsSpecial(bits), bits));
}

Extremes FloatExtremes(std::span<const float> values) {
  const Floats d;
  FloatVector lowest = hn::Zero(d);
  FloatVector highest = hn::Zero(d);
  ForGroups<1>({values.data()}, values.size(),
               [&](const std::array<const float*, 1>& at, std::size_t, std::size_t) {
                 for (std::size_t i = 0; i < kSummed; i += kLanes) {
                   const FloatVector some = FiniteAt(at[0] + i);
                   lowest = hn::Min(lowest, some);
                   highest = hn::Max(highest, some);
                 }
               });
  return {.lowest = static_cast<double>(hn::GetLane(hn::MinOfLanes(d, lowest))),
          .highest = static_cast<double>(hn::GetLane(hn::MaxOfLanes(d, highest)))};
}

void ZeroSpecials(std::span<float> values) {
  std::size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    hn::StoreU(FiniteAt(&values[i]), Floats(), &values[i]);
  }
  for (; i < values.size(); ++i) {
    values[i] = std::isfinite(values[i]) ? values[i] : 0;
  }
}

std::size_t FirstIn(std::span<const std::uint16_t> codes, const CodeRange& range) {
  const hn::ScalableTag<std::uint16_t> d;
  constexpr std::size_t kCodes = HWY_LANES(std::uint16_t);
  const auto lowest = hn::Set(d, range.lowest);
  const auto width = hn::Set(d, static_cast<std::uint16_t>(range.highest - range.lowest));
  std::size_t i = 0;
  for (; i + kCodes <= codes.size(); i += kCodes) {
    const auto magnitude = hn::And(hn::LoadU(d, codes.data() + i), hn::Set(d, range.mask));
    const auto above = hn::Sub(magnitude, lowest);  // far above, where it is below
    const std::intptr_t first = hn::FindFirstTrue(d, hn::Eq(hn::Min(above, width), above));
    if (first >= 0) {
      return i + static_cast<std::size_t>(first);
    }
  }
  while (i < codes.size() && !range.Has(codes[i])) {
    ++i;
  }
  return i;
}

#endif  // HWY_SCALAR

}  // namespace fourpiles::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fourpiles {
HWY_EXPORT(CountFloatLosses);
HWY_EXPORT(FloatFacts);
HWY_EXPORT(FloatExtremes);
HWY_EXPORT(ZeroSpecials);
HWY_EXPORT(FirstIn);

BlockLosses CountFloatLosses(std::span<const float> values, std::span<const float> rounded,
                             const LossLimits& limits, std::size_t sampled,
                             ErrorHistogram& histogram) {
  return HWY_DYNAMIC_DISPATCH(CountFloatLosses)(values, rounded, limits, sampled, histogram);
}

BlockFacts FloatFacts(std::span<const float> values) {
  return HWY_DYNAMIC_DISPATCH(FloatFacts)(values);
}

Extremes FloatExtremes(std::span<const float> values) {
  return HWY_DYNAMIC_DISPATCH(FloatExtremes)(values);
}

void ZeroSpecials(std::span<float> values) {
  HWY_DYNAMIC_DISPATCH(ZeroSpecials)(values);
}

std::size_t FirstIn(std::span<const std::uint16_t> codes, const CodeRange& range) {
  return HWY_DYNAMIC_DISPATCH(FirstIn)(codes, range);
}
}  // namespace fourpiles
#endif
