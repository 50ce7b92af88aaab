// float32 to a format and back, alone and with statistics.

#include <cstring>

#include "kernels/array_tasks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/round_kernels.cc"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/sums-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fourpiles::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR  // not called: see HasVectors
void RoundFloats(const RoundTask& /*task*/, const EncodePlan& /*encode*/,
                 const DecodePlan& /*decode*/) {}
RoundingStatistics RoundAndCount(const RoundTask& /*task*/, const EncodePlan& /*encode*/,
                                 const DecodePlan& /*decode*/) {
  return {};
}
RoundingStatistics CompareAndCount(const RoundTask& /*task*/) {
  return {};
}
#else

constexpr std::size_t kLanes = HWY_LANES(float);

HWY_INLINE CodeVector RandomAt(const std::uint32_t* random) {
  return random == nullptr ? hn::Zero(Codes32())
                           : hn::BitCast(Codes32(), hn::LoadU(Bits32(), random));
}

// --- Without statistics ---

template <class Rounder>
struct RoundVector {
  EncodePlan encode;
  DecodePlan decode;
  Rounder rounder;
  HWY_INLINE FloatVector operator()(const float* from, const std::uint32_t* random) const {
    const CodeVector bits = hn::BitCast(Codes32(), hn::LoadU(Floats(), from));
    return DecodeVector(RoundAny(rounder, bits, RandomAt(random), encode).code, decode);
  }
};

template <class Round>
HWY_NOINLINE void RoundPart(const RoundTask& task, std::size_t first, std::size_t count,
                            const Round& round) {
  HWY_ALIGN float values[kLanes] = {};
  HWY_ALIGN std::uint32_t random[kLanes] = {};
  std::memcpy(values, task.values + first, count * sizeof(float));
  if (task.random != nullptr) {
    std::memcpy(random, task.random + first, count * sizeof(std::uint32_t));
  }
  hn::Store(round(values, random), Floats(), values);
  std::memcpy(task.rounded + first, values, count * sizeof(float));
}

template <class Round>
void RoundAll(const RoundTask& task, const Round& round) {
  const Floats df;
  const auto address = reinterpret_cast<std::uintptr_t>(task.rounded);
  const bool streams = task.streams && address % sizeof(float) == 0;
  const std::size_t misplaced = address % sizeof(FloatVector) / sizeof(float);
  std::size_t i = streams && misplaced > 0 ? kLanes - misplaced : 0;
  i = i < task.count ? i : task.count;
  if (i > 0) {
    RoundPart(task, 0, i, round);
  }
  const Round in_registers = round;  // what is stored to may be anything but this
  const auto random_at = [&](std::size_t at) {
    return task.random == nullptr ? nullptr : task.random + at;
  };
  if (streams) {
    for (; i + kLanes <= task.count; i += kLanes) {
      hn::Stream(in_registers(task.values + i, random_at(i)), df, task.rounded + i);
    }
    hwy::FlushStream();
  }
  for (; i + kLanes <= task.count; i += kLanes) {
    hn::StoreU(in_registers(task.values + i, random_at(i)), df, task.rounded + i);
  }
  if (i < task.count) {
    RoundPart(task, i, task.count - i, round);
  }
}

void RoundFloats(const RoundTask& task, const EncodePlan& encode, const DecodePlan& decode) {
  if (encode.is_nearest_even) {
    return RoundAll(task, RoundVector<NearestEven>{encode, decode, {}});
  }
  RoundAll(task, RoundVector<AnyRounding>{encode, decode, {hn::Zero(Codes32())}});
}

// --- With statistics ---

struct PartialSums {
  DoubleSums squares;
  DoubleSums errors;
  DoubleSums rounded;
  DoubleSums products;
};

HWY_INLINE void Clear(PartialSums& sums) {
  for (DoubleSums* const each : {&sums.squares, &sums.errors, &sums.rounded, &sums.products}) {
    Clear(*each);
  }
}

HWY_INLINE void Add(PartialSums& sums, std::size_t i, DoubleVector x, DoubleVector r) {
  const DoubleVector error = hn::Sub(r, x);
  // A product and a sum, each rounded: a fused one would be another number.
  sums.squares[i] = hn::Add(sums.squares[i], hn::Mul(x, x));
  sums.errors[i] = hn::Add(sums.errors[i], hn::Mul(error, error));
  sums.rounded[i] = hn::Add(sums.rounded[i], hn::Mul(r, r));
  sums.products[i] = hn::Add(sums.products[i], hn::Mul(x, r));
}

struct Counts {
  RoundingStatistics statistics;
  CodeVector largest;   // magnitudes of finite values
  CodeVector smallest;  // … less one, as unsigned numbers: zero is the largest of all
};

struct Lanes {
  CodeVector bits;
  CodeMaskVector counted;  // not padding
  CodeVector result;       // float32 bits of the rounded values
  CodeMaskVector beyond;   // finite inputs whose rounded value lies past the largest
};

// Lanes with NaN or infinity, before or after, and those beyond the largest value: they are rare.
HWY_INLINE void CountSpecials(const Lanes& lanes, RoundingStatistics& to) {
  const Codes32 d;
  const CodeVector infinity = hn::Set(d, kInfiniteMagnitude);
  const CodeVector mask = hn::Set(d, kMagnitudeMask);
  const CodeVector before = hn::And(lanes.bits, mask);
  const CodeVector after = hn::And(lanes.result, mask);
  const auto was_infinite = hn::And(lanes.counted, hn::Eq(before, infinity));
  const auto was_finite = hn::And(lanes.counted, hn::Lt(before, infinity));
  const auto is_finite = hn::Lt(after, infinity);
  to.nan += CountOf(hn::And(lanes.counted, hn::Gt(before, infinity)));
  to.infinite += CountOf(was_infinite);
  to.overflow += CountOf(hn::AndNot(is_finite, was_finite));
  const auto beyond = hn::Or(hn::And(was_finite, lanes.beyond), was_infinite);
  to.saturated += CountOf(hn::And(beyond, is_finite));
}

HWY_INLINE void CountLanes(const Lanes& lanes, std::uint32_t smallest_normal, Counts& counts) {
  const Codes32 d;
  const Floats df;
  RoundingStatistics& to = counts.statistics;
  const CodeVector zero = hn::Zero(d);
  const CodeVector mask = hn::Set(d, kMagnitudeMask);
  const CodeVector infinity = hn::Set(d, kInfiniteMagnitude);
  const CodeVector below_infinity = hn::Set(d, kInfiniteMagnitude - 1);
  const CodeVector above_infinity = hn::Set(d, kInfiniteMagnitude + 1);
  const CodeVector before = hn::And(lanes.bits, mask);
  const CodeVector after = hn::And(lanes.result, mask);
  const auto rare =
      hn::Or(hn::Or(hn::Gt(before, below_infinity), hn::Gt(after, below_infinity)), lanes.beyond);
  if (HWY_UNLIKELY(!hn::AllFalse(d, rare))) {
    CountSpecials(lanes, to);
  }
  const auto number = hn::And(lanes.counted, hn::Lt(before, above_infinity));  // not NaN
  const auto was_zero = hn::Eq(before, zero);
  const auto is_zero = hn::Eq(after, zero);
  to.zero += CountOf(hn::And(lanes.counted, was_zero));
  to.underflow += CountOf(hn::And(hn::AndNot(was_zero, number), is_zero));
  const auto is_small = hn::Lt(after, SetCode(smallest_normal));
  to.subnormal += CountOf(hn::And(hn::AndNot(is_zero, number), is_small));
  // Not equal, also where the result is NaN.
  const auto same = hn::Eq(hn::BitCast(df, lanes.bits), hn::BitCast(df, lanes.result));
  to.changed += CountOf(hn::AndNot(hn::RebindMask(d, same), number));
  const CodeVector finite =
      hn::IfThenElseZero(hn::And(lanes.counted, hn::Lt(before, infinity)), before);
  counts.largest = hn::Max(counts.largest, finite);
  const Bits32 du;
  const auto less_one = hn::BitCast(du, hn::Sub(finite, hn::Set(d, 1)));
  counts.smallest = hn::BitCast(d, hn::Min(hn::BitCast(du, counts.smallest), less_one));
}

// What values became: rounded here …
template <class Rounder>
struct RoundedHere {
  EncodePlan encode;
  DecodePlan decode;
  Rounder rounder;

  HWY_INLINE void operator()(const RoundTask& part, std::size_t i, Lanes& lanes) const {
    const CodeVector random = RandomAt(part.random == nullptr ? nullptr : part.random + i);
    const Rounded rounded = RoundAny(rounder, lanes.bits, random, encode);
    const FloatVector result = DecodeVector(rounded.code, decode);
    lanes.result = hn::BitCast(Codes32(), result);
    lanes.beyond = rounded.beyond;
    if (part.rounded != nullptr) {
      hn::StoreU(result, Floats(), part.rounded + i);
    }
  }
  HWY_INLINE std::uint32_t SmallestNormal() const { return encode.smallest_normal; }
};

// … or before, in a format that nothing more is known of.
struct RoundedBefore {
  HWY_INLINE void operator()(const RoundTask& part, std::size_t i, Lanes& lanes) const {
    lanes.result = hn::BitCast(Codes32(), hn::LoadU(Floats(), part.rounded + i));
    lanes.beyond = hn::Lt(hn::Zero(Codes32()), hn::Zero(Codes32()));  // none
  }
  HWY_INLINE std::uint32_t SmallestNormal() const { return 0; }
};

template <class Became>
struct CountGroup {
  Became became;

  // Counts kSummed values and what they become, of which the first `count` are no padding.
  HWY_INLINE void operator()(const RoundTask& part, Counts& counts, PartialSums& sums) const {
    const Codes32 d;
    const CodeVector infinity = hn::Set(d, kInfiniteMagnitude);
    const CodeVector mask = hn::Set(d, kMagnitudeMask);
    HWY_ALIGN float finite_before[kSummed];
    HWY_ALIGN float finite_after[kSummed];
    for (std::size_t i = 0; i < kSummed; i += kLanes) {
      Lanes lanes;
      lanes.bits = hn::BitCast(d, hn::LoadU(Floats(), part.values + i));
      const auto left = static_cast<std::int32_t>(part.count) - static_cast<std::int32_t>(i);
      lanes.counted = hn::Lt(hn::Iota(d, 0), hn::Set(d, left));
      became(part, i, lanes);
      CountLanes(lanes, became.SmallestNormal(), counts);
      const auto finite = hn::And(hn::Lt(hn::And(lanes.bits, mask), infinity),
                                  hn::Lt(hn::And(lanes.result, mask), infinity));
      hn::Store(hn::BitCast(Floats(), hn::IfThenElseZero(finite, lanes.bits)), Floats(),
                finite_before + i);
      hn::Store(hn::BitCast(Floats(), hn::IfThenElseZero(finite, lanes.result)), Floats(),
                finite_after + i);
    }
    for (std::size_t i = 0; i < kSummed; i += kDoubles) {
      Add(sums, i / kDoubles % kSumVectors, DoublesAt(finite_before + i),
          DoublesAt(finite_after + i));
    }
  }
};

template <class Group>
HWY_NOINLINE void CountPart(const RoundTask& task, std::size_t first, const Group& group,
                            Counts& counts, PartialSums& sums) {
  HWY_ALIGN float values[kSummed] = {};
  HWY_ALIGN float rounded[kSummed] = {};
  HWY_ALIGN std::uint32_t random[kSummed] = {};
  const std::size_t count = task.count - first;
  std::memcpy(values, task.values + first, count * sizeof(float));
  if (task.rounded != nullptr) {
    std::memcpy(rounded, task.rounded + first, count * sizeof(float));
  }
  if (task.random != nullptr) {
    std::memcpy(random, task.random + first, count * sizeof(std::uint32_t));
  }
  group({.values = values, .count = count, .random = random, .rounded = rounded}, counts, sums);
  if (task.rounded != nullptr) {
    std::memcpy(task.rounded + first, rounded, count * sizeof(float));
  }
}

RoundingStatistics Merge(const Counts& counts, const PartialSums& sums, std::size_t count) {
  RoundingStatistics statistics = counts.statistics;
  const Bits32 du;
  statistics.count = static_cast<std::int64_t>(count);
  const std::int32_t largest = hn::GetLane(hn::MaxOfLanes(Codes32(), counts.largest));
  const std::uint32_t smallest = hn::GetLane(hn::MinOfLanes(du, hn::BitCast(du, counts.smallest)));
  std::memcpy(&statistics.largest, &largest, sizeof(float));
  const std::uint32_t smallest_bits = smallest + 1;  // nothing but zeros: 0
  std::memcpy(&statistics.smallest, &smallest_bits, sizeof(float));
  statistics.sum_of_squares = Total(sums.squares);
  statistics.sum_of_squared_errors = Total(sums.errors);
  statistics.sum_of_rounded_squares = Total(sums.rounded);
  statistics.sum_of_products = Total(sums.products);
  return statistics;
}

template <class Group>
RoundingStatistics CountAll(const RoundTask& task, const Group& group) {
  PartialSums sums;
  Clear(sums);
  Counts counts{{}, hn::Zero(Codes32()), hn::Set(Codes32(), -1)};
  const Group in_registers = group;
  std::size_t i = 0;
  for (; i + kSummed <= task.count; i += kSummed) {
    in_registers({.values = task.values + i,
                  .count = kSummed,
                  .random = task.random == nullptr ? nullptr : task.random + i,
                  .rounded = task.rounded == nullptr ? nullptr : task.rounded + i},
                 counts, sums);
  }
  if (i < task.count) {
    CountPart(task, i, group, counts, sums);
  }
  return Merge(counts, sums, task.count);
}

template <class Became>
RoundingStatistics CountWith(const RoundTask& task, const Became& became) {
  return CountAll(task, CountGroup<Became>{became});
}

RoundingStatistics RoundAndCount(const RoundTask& task, const EncodePlan& encode,
                                 const DecodePlan& decode) {
  if (encode.is_nearest_even) {
    return CountWith(task, RoundedHere<NearestEven>{encode, decode, {}});
  }
  return CountWith(task, RoundedHere<AnyRounding>{encode, decode, {hn::Zero(Codes32())}});
}

RoundingStatistics CompareAndCount(const RoundTask& task) {
  return CountWith(task, RoundedBefore());
}

#endif  // HWY_SCALAR

}  // namespace fourpiles::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fourpiles {
HWY_EXPORT(RoundFloats);
HWY_EXPORT(RoundAndCount);
HWY_EXPORT(CompareAndCount);

void RoundFloats(const RoundTask& task, const EncodePlan& encode, const DecodePlan& decode) {
  HWY_DYNAMIC_DISPATCH(RoundFloats)(task, encode, decode);
}

RoundingStatistics RoundAndCount(const RoundTask& task, const EncodePlan& encode,
                                 const DecodePlan& decode) {
  return HWY_DYNAMIC_DISPATCH(RoundAndCount)(task, encode, decode);
}

RoundingStatistics CompareAndCount(const RoundTask& task) {
  return HWY_DYNAMIC_DISPATCH(CompareAndCount)(task);
}
}  // namespace fourpiles
#endif
