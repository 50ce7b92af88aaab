// Fused rounding and counting, a vector at a time.

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "kernels/fused_tasks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/fused_kernels.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/sums-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fourpiles::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR  // not called: see HasVectors
void RoundFusedVectors(const FusedBlock& /*block*/, std::span<const FusedFormat> /*formats*/,
                       std::span<BlockLosses> /*losses*/,
                       std::span<ErrorHistogram> /*histograms*/) {}
#else

constexpr std::size_t kLanes = HWY_LANES(float);
static_assert(kLanes <= kFusedParts);
constexpr std::size_t kVectors = kFusedParts / kLanes;  // that hold the parts of a sum
constexpr std::size_t kRunsAtOnce = 8;  // what is common to formats stands in the first-level cache

using FusedVectors = FloatVector[kVectors];

struct RunSums {
  FusedVectors errors;
  FusedVectors products;
  FusedVectors relatives;
  FloatVector largest;  // relative errors
};

HWY_INLINE void Clear(RunSums& sums) {
  const FloatVector zero = hn::Zero(Floats());
  for (FusedVectors* const each : {&sums.errors, &sums.products, &sums.relatives}) {
    for (FloatVector& part : *each) {
      part = zero;
    }
  }
  sums.largest = zero;
}

// Of a block in one format.
struct FusedState {
  std::int64_t zero = 0;   // results
  std::int64_t small = 0;  // results below the smallest normal number, zeros too
  BlockLosses losses;
  std::array<double, kFusedParts> errors = {};
  std::array<double, kFusedParts> products = {};
  std::array<double, kFusedParts> relatives = {};
};

HWY_INLINE void AddWide(const FusedVectors& parts, std::array<double, kFusedParts>& wide) {
  HWY_ALIGN float narrow[kFusedParts];
  for (std::size_t i = 0; i < kVectors; ++i) {
    hn::Store(parts[i], Floats(), narrow + i * kLanes);
  }
  const hn::ScalableTag<double> d;
  constexpr std::size_t kWide = HWY_LANES(double);
  for (std::size_t i = 0; i < kFusedParts; i += kWide) {
    const auto terms = hn::PromoteTo(d, hn::LoadU(hn::Rebind<float, decltype(d)>(), narrow + i));
    hn::StoreU(hn::Add(hn::LoadU(d, wide.data() + i), terms), d, wide.data() + i);
  }
}

// 1 ÷ |x|, and 0 for 0.
HWY_INLINE void StoreReciprocals(const float* values, std::size_t count, float* reciprocals) {
  const Floats d;
  for (std::size_t i = 0; i < count; i += kLanes) {
    const FloatVector magnitude = hn::Abs(hn::LoadU(d, values + i));
    const auto is_zero = hn::Eq(magnitude, hn::Zero(d));
    const FloatVector reciprocal = hn::Div(hn::Set(d, 1), magnitude);
    hn::Store(hn::IfThenZeroElse(is_zero, reciprocal), d, reciprocals + i);
  }
}

// Runs of values and what they have in common for all formats.
struct FusedRuns {
  const float* values = nullptr;
  const float* reciprocals = nullptr;
  std::size_t first = 0;    // element of the block
  std::size_t runs = 0;     // of 256
  std::size_t sampled = 0;  // elements of the block
  float scale = 1;
};

// kSaturates: some values are larger than the format's largest. kScales: the scale is not 1.
template <bool kSaturates, bool kScales>
struct RunRounder {
  FusedFormat format;
  FloatVector scale;

  HWY_INLINE FloatVector Round(FloatVector x) const {
    const Codes32 d;
    const Floats df;
    const CodeVector bits = hn::BitCast(d, x);
    const CodeVector binade =
        hn::Max(hn::And(bits, hn::Set(d, kInfiniteMagnitude)), hn::Set(d, format.smallest_normal));
    const CodeVector magnitude = hn::Add(binade, hn::Set(d, (23 - format.fraction_bits) << 23));
    const FloatVector anchor = hn::CopySignToAbs(hn::BitCast(df, magnitude), x);
    FloatVector rounded = hn::Sub(hn::Add(x, anchor), anchor);
    if constexpr (kSaturates) {
      const FloatVector largest = hn::BitCast(df, hn::Set(d, format.largest));
      rounded = hn::Min(hn::Max(rounded, hn::Neg(largest)), largest);
    }
    return rounded;
  }

  HWY_INLINE void Count(FloatVector x, FloatVector r, FusedState& state) const {
    const Codes32 d;
    const Floats df;
    if constexpr (kSaturates) {
      const CodeVector magnitude = hn::BitCast(d, hn::Abs(x));
      state.losses.saturated += CountOf(hn::Gt(magnitude, hn::Set(d, format.largest)));
      state.losses.overflow += CountOf(hn::Gt(magnitude, hn::Set(d, format.below_beyond)));
    }
    const CodeVector size = hn::BitCast(d, hn::Abs(r));
    state.zero += CountOf(hn::RebindMask(d, hn::Eq(r, hn::Zero(df))));
    state.small += CountOf(hn::Lt(size, hn::Set(d, format.smallest_normal)));
    state.losses.changed += CountOf(hn::RebindMask(d, hn::Ne(r, x)));
  }

  // Adds the vectors of a run, from `values` on, that go into the same part of a sum.
  HWY_INLINE void Add(const float* values, const float* reciprocals, FusedState& state,
                      RunSums& sums, std::size_t part) const {
    const Floats df;
    FloatVector x = hn::LoadU(df, values);
    const FloatVector r = Round(x);
    Count(x, r, state);
    FloatVector error = hn::Sub(r, x);
    const FloatVector relative = hn::Mul(hn::Abs(error), hn::LoadU(df, reciprocals));
    if constexpr (kScales) {
      x = hn::Mul(x, scale);
      error = hn::Mul(error, scale);
    }
    // A product and a sum, each rounded: a fused one would be another number.
    sums.errors[part] = hn::Add(sums.errors[part], hn::Mul(error, error));
    sums.products[part] = hn::Add(sums.products[part], hn::Mul(x, error));
    sums.relatives[part] = hn::Add(sums.relatives[part], relative);
    sums.largest = hn::Max(sums.largest, relative);
  }

  // Relative errors of a run, those of what vanished 1.
  HWY_NOINLINE void StoreRelatives(const float* values, const float* reciprocals,
                                   float* relatives) const {
    const Floats df;
    for (std::size_t i = 0; i < kFusedRun; i += kLanes) {
      const FloatVector x = hn::LoadU(df, values + i);
      const FloatVector r = Round(x);
      const auto vanished = hn::AndNot(hn::Eq(x, hn::Zero(df)), hn::Eq(r, hn::Zero(df)));
      const FloatVector relative = hn::Mul(hn::Abs(hn::Sub(r, x)), hn::LoadU(df, reciprocals + i));
      hn::StoreU(hn::IfThenElse(vanished, hn::Set(df, 1), relative), df, relatives + i);
    }
  }
};

// The largest of a run's relative errors, where it is larger than that of the runs before.
void TakeLargest(const float* relatives, std::size_t first, BlockLosses& losses) {
  for (std::size_t i = 0; i < kFusedRun; ++i) {
    if (static_cast<double>(relatives[i]) > losses.largest_relative_error) {
      losses.largest_relative_error = static_cast<double>(relatives[i]);
      losses.largest_at = static_cast<std::int64_t>(first + i);
    }
  }
}

// The relative errors of values other than zero.
void AddToHistogram(const float* relatives, const float* values, std::size_t count,
                    ErrorHistogram& histogram) {
  const Codes32 d;
  const CodeVector last = hn::Set(d, ErrorHistogram::kBuckets - 1);
  HWY_ALIGN std::int32_t buckets[kFusedRun];
  for (std::size_t i = 0; i < kFusedRun; i += kLanes) {
    const CodeVector bits = hn::BitCast(d, hn::LoadU(Floats(), relatives + i));
    const CodeVector bucket = hn::Sub(ShiftDown(bits, 16), hn::Set(d, ErrorHistogram::kFirstBits));
    hn::Store(hn::Min(hn::Max(bucket, hn::Zero(d)), last), d, buckets + i);
  }
  std::uint64_t* const counts = histogram.Counts();
  for (std::size_t i = 0; i < count; ++i) {
    counts[buckets[i]] += values[i] != 0 ? 1 : 0;
  }
}

template <bool kSaturates, bool kScales>
HWY_NOINLINE void RoundRuns(const FusedRuns& block, const FusedFormat& format, FusedState& state,
                            ErrorHistogram& histogram) {
  const RunRounder<kSaturates, kScales> rounder = {format, hn::Set(Floats(), block.scale)};
  for (std::size_t place = 0; place < block.runs * kFusedRun; place += kFusedRun) {
    const float* const values = block.values + place;
    const float* const reciprocals = block.reciprocals + place;
    RunSums sums;
    Clear(sums);
    FusedState counts;
    for (std::size_t i = 0; i < kFusedRun; i += kFusedParts) {
      for (std::size_t part = 0; part < kVectors; ++part) {
        const std::size_t at = i + part * kLanes;
        rounder.Add(values + at, reciprocals + at, counts, sums, part);
      }
    }
    AddWide(sums.errors, state.errors);
    AddWide(sums.products, state.products);
    AddWide(sums.relatives, state.relatives);
    state.zero += counts.zero;
    state.small += counts.small;
    state.losses.saturated += counts.losses.saturated;
    state.losses.overflow += counts.losses.overflow;
    state.losses.changed += counts.losses.changed;
    const auto largest = static_cast<double>(hn::GetLane(hn::MaxOfLanes(Floats(), sums.largest)));
    const std::size_t at = block.first + place;
    // What vanished is off by 1, but its product with its reciprocal may be less.
    constexpr double kNearlyOne = 1 - 0x1p-23;
    const double best = state.losses.largest_relative_error;
    if (largest > best || (largest >= kNearlyOne && best < 1) || at < block.sampled) {
      HWY_ALIGN float relatives[kFusedRun];
      rounder.StoreRelatives(values, reciprocals, relatives);
      TakeLargest(relatives, at, state.losses);
      if (at < block.sampled) {
        AddToHistogram(relatives, values, std::min(kFusedRun, block.sampled - at), histogram);
      }
    }
  }
}

void RoundRunsOf(const FusedRuns& block, bool saturates, const FusedFormat& format,
                 FusedState& state, ErrorHistogram& histogram) {
  if (block.scale == 1) {
    return saturates ? RoundRuns<true, false>(block, format, state, histogram)
                     : RoundRuns<false, false>(block, format, state, histogram);
  }
  saturates ? RoundRuns<true, true>(block, format, state, histogram)
            : RoundRuns<false, true>(block, format, state, histogram);
}

void RoundFusedVectors(const FusedBlock& block, std::span<const FusedFormat> formats,
                       std::span<BlockLosses> losses, std::span<ErrorHistogram> histograms) {
  constexpr std::size_t kAtOnce = kRunsAtOnce * kFusedRun;
  std::vector<FusedState> states(formats.size());
  HWY_ALIGN float reciprocals[kAtOnce];
  HWY_ALIGN float padded[kAtOnce];
  FusedRuns runs = {
      .reciprocals = reciprocals, .sampled = block.sampled, .scale = FusedScaleOf(block.facts)};
  std::size_t padding = 0;
  for (std::size_t first = 0; first < block.values.size(); first += kAtOnce) {
    const std::size_t count = std::min(kAtOnce, block.values.size() - first);
    runs.values = block.values.data() + first;
    runs.first = first;
    runs.runs = (count + kFusedRun - 1) / kFusedRun;
    padding = runs.runs * kFusedRun - count;
    if (padding > 0) {  // zeros behind change no sum
      std::memcpy(padded, runs.values, count * sizeof(float));
      std::memset(padded + count, 0, padding * sizeof(float));
      runs.values = padded;
    }
    StoreReciprocals(runs.values, runs.runs * kFusedRun, reciprocals);
    for (std::size_t i = 0; i < formats.size(); ++i) {
      const auto largest = static_cast<double>(std::bit_cast<float>(formats[i].largest));
      RoundRunsOf(runs, block.facts.largest > largest, formats[i], states[i], histograms[i]);
    }
  }
  for (std::size_t i = 0; i < formats.size(); ++i) {
    FusedState& state = states[i];
    losses[i] = state.losses;
    losses[i].subnormal = state.small - state.zero;
    losses[i].underflow = state.zero - static_cast<std::int64_t>(padding) - block.facts.zero;
    FinishFused(block.facts,
                {TotalOf(state.errors), TotalOf(state.products), TotalOf(state.relatives)},
                losses[i]);
  }
}

#endif  // HWY_SCALAR

}  // namespace fourpiles::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fourpiles {
HWY_EXPORT(RoundFusedVectors);

void RoundFusedVectors(const FusedBlock& block, std::span<const FusedFormat> formats,
                       std::span<BlockLosses> losses, std::span<ErrorHistogram> histograms) {
  HWY_DYNAMIC_DISPATCH(RoundFusedVectors)(block, formats, losses, histograms);
}
}  // namespace fourpiles
#endif
