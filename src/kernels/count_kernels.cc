// Counting codes, beside what vectors do meanwhile: a core that counts waits for its writes.

#include <cstring>
#include <utility>

#include "kernels/count_tasks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/count_kernels.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace fourpiles::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR  // not called: see HasVectors
std::uint16_t CountNarrow(std::span<const std::uint16_t> /*codes*/, const FiniteCodes& /*finite*/,
                          CodeCounters& /*counters*/) {
  return 0;
}
std::uint16_t CountWide(std::span<const std::uint16_t> /*codes*/, const FiniteCodes& /*finite*/,
                        CodeCounters& /*counters*/) {
  return 0;
}
std::size_t SumOfNarrow(const CodeCounters& /*counters*/) {
  return 0;
}
void AddNarrow(CodeCounters& /*counters*/) {}
void TakeGroup(std::size_t /*group*/, std::uint32_t /*place*/, CodeCounters& /*counters*/,
               CodeCounts& /*counts*/) {}
#else

namespace hn = hwy::HWY_NAMESPACE;

using Codes = hn::ScalableTag<std::uint16_t>;
using Bytes = hn::ScalableTag<std::uint8_t>;
using Words = hn::Repartition<std::uint32_t, Bytes>;
using Totals = hn::Repartition<std::uint64_t, Bytes>;

constexpr std::size_t kGroup = CodeCounts::kGroup;
constexpr std::size_t kAtOnce = 32;  // codes, counted without a loop

template <class Counter, std::size_t... kEach>
HWY_INLINE void CountEach(const std::uint16_t* codes, Counter* to,
                          std::index_sequence<kEach...> /*each*/) {
  (++to[codes[kEach]], ...);
}

// Adds kAtOnce codes, if they are the same: one by one, each would wait for the one before.
HWY_INLINE bool AddSame(const std::uint16_t* codes, std::uint32_t* to) {
  const Codes d;
  const auto first = hn::Set(d, *codes);
  auto others = hn::Zero(d);
  for (std::size_t lane = 0; lane < kAtOnce; lane += HWY_LANES(std::uint16_t)) {
    others = hn::Or(others, hn::Xor(hn::LoadU(d, codes + lane), first));
  }
  if (!hn::AllTrue(d, hn::Eq(others, hn::Zero(d)))) {
    return false;
  }
  to[*codes] += kAtOnce;
  return true;
}

template <class Counter>
std::uint16_t CountInto(Counter* to, std::span<const std::uint16_t> codes,
                        const FiniteCodes& finite) {
  const Codes d;
  constexpr std::size_t kLanes = HWY_LANES(std::uint16_t);
  constexpr bool kIsWide = sizeof(Counter) > 1;  // has room for many that are the same
  const auto mask = hn::Set(d, finite.mask);
  const auto limit = hn::Set(d, finite.limit);
  auto largest = hn::Zero(d);
  std::size_t i = 0;
  for (; i + kAtOnce <= codes.size(); i += kAtOnce) {
    const std::uint16_t* const from = codes.data() + i;
    for (std::size_t lane = 0; lane < kAtOnce; lane += kLanes) {
      const auto magnitude = hn::And(hn::LoadU(d, from + lane), mask);
      largest = hn::Max(largest, hn::IfThenElseZero(hn::Lt(magnitude, limit), magnitude));
    }
    if constexpr (kIsWide) {
      if (AddSame(from, to)) {
        continue;
      }
    }
    CountEach(from, to, std::make_index_sequence<kAtOnce>());
  }
  std::uint16_t most = hn::GetLane(hn::MaxOfLanes(d, largest));
  for (; i < codes.size(); ++i) {
    ++to[codes[i]];
    const auto magnitude = static_cast<std::uint16_t>(codes[i] & finite.mask);
    most = magnitude < finite.limit && magnitude > most ? magnitude : most;
  }
  return most;
}

std::uint16_t CountNarrow(std::span<const std::uint16_t> codes, const FiniteCodes& finite,
                          CodeCounters& counters) {
  return CountInto(counters.narrow.data(), codes, finite);
}

std::uint16_t CountWide(std::span<const std::uint16_t> codes, const FiniteCodes& finite,
                        CodeCounters& counters) {
  return CountInto(counters.wide.data(), codes, finite);
}

std::size_t SumOfNarrow(const CodeCounters& counters) {
  const Bytes d;
  auto sums = hn::Zero(Totals());
  for (const std::size_t group : counters.groups) {
    const std::uint8_t* const narrow = counters.narrow.data() + group * kGroup;
    for (std::size_t lane = 0; lane < kGroup; lane += hn::Lanes(d)) {
      sums = hn::Add(sums, hn::SumsOf8(hn::LoadU(d, narrow + lane)));
    }
  }
  return hn::GetLane(hn::SumOfLanes(Totals(), sums));
}

void AddNarrow(CodeCounters& counters) {
  const Words d;
  for (const std::size_t group : counters.groups) {
    std::uint8_t* const narrow = counters.narrow.data() + group * kGroup;
    std::uint32_t* const wide = counters.wide.data() + group * kGroup;
    for (std::size_t lane = 0; lane < kGroup; lane += hn::Lanes(d)) {
      const auto more =
          hn::PromoteTo(d, hn::LoadU(hn::Rebind<std::uint8_t, Words>(), narrow + lane));
      hn::StoreU(hn::Add(hn::LoadU(d, wide + lane), more), d, wide + lane);
    }
    std::memset(narrow, 0, kGroup);
  }
}

void TakeGroup(std::size_t group, std::uint32_t place, CodeCounters& counters, CodeCounts& counts) {
  const Words d;
  const Totals totals;
  std::uint32_t* const wide = counters.wide.data() + group * kGroup;
  for (std::size_t lane = 0; lane < kGroup; lane += hn::Lanes(totals)) {
    const auto more = hn::LoadU(hn::Rebind<std::uint32_t, Totals>(), wide + lane);
    std::uint64_t* const to = counts.totals.data() + group * kGroup + lane;
    hn::StoreU(hn::Add(hn::LoadU(totals, to), hn::PromoteTo(totals, more)), totals, to);
  }
  for (std::size_t lane = 0; lane < kGroup; lane += hn::Lanes(d)) {
    std::uint32_t* const first = counts.firsts.data() + group * kGroup + lane;
    const auto occurs = hn::Ne(hn::LoadU(d, wide + lane), hn::Zero(d));
    const auto here = hn::IfThenElse(occurs, hn::Set(d, place), hn::Set(d, CodeCounts::kNowhere));
    hn::StoreU(hn::Min(hn::LoadU(d, first), here), d, first);
    hn::StoreU(hn::Zero(d), d, wide + lane);
  }
}

#endif  // HWY_SCALAR

}  // namespace fourpiles::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fourpiles {
HWY_EXPORT(CountNarrow);
HWY_EXPORT(CountWide);
HWY_EXPORT(SumOfNarrow);
HWY_EXPORT(AddNarrow);
HWY_EXPORT(TakeGroup);

std::uint16_t CountNarrow(std::span<const std::uint16_t> codes, const FiniteCodes& finite,
                          CodeCounters& counters) {
  return HWY_DYNAMIC_DISPATCH(CountNarrow)(codes, finite, counters);
}

std::uint16_t CountWide(std::span<const std::uint16_t> codes, const FiniteCodes& finite,
                        CodeCounters& counters) {
  return HWY_DYNAMIC_DISPATCH(CountWide)(codes, finite, counters);
}

std::size_t SumOfNarrow(const CodeCounters& counters) {
  return HWY_DYNAMIC_DISPATCH(SumOfNarrow)(counters);
}

void AddNarrow(CodeCounters& counters) {
  HWY_DYNAMIC_DISPATCH(AddNarrow)(counters);
}

void TakeGroup(std::size_t group, std::uint32_t place, CodeCounters& counters, CodeCounts& counts) {
  HWY_DYNAMIC_DISPATCH(TakeGroup)(group, place, counters, counts);
}
}  // namespace fourpiles
#endif
