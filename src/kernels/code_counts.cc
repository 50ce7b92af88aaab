// Counting is bound by its writes, which a core finishes fastest where they go to few cache lines:
// so codes are counted where they stand close, in 8 bits each. A tensor of weights has no code more
// than 255 times in a piece; the sum of the counters tells where one does. That piece is counted
// again in 32 bits, and those behind it too.

#include "kernels/code_counts.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/array_tasks.h"
#include "kernels/count_tasks.h"

namespace fourpiles {
namespace {

constexpr std::size_t kGroup = CodeCounts::kGroup;
constexpr std::size_t kGroups = CodeCounts::kGroups;

// As TakeGroup.
void TakeEach(std::size_t group, std::uint32_t place, CodeCounters& counters, CodeCounts& counts) {
  for (std::size_t code = group * kGroup; code < (group + 1) * kGroup; ++code) {
    if (counters.wide[code] > 0) {
      counts.totals[code] += std::exchange(counters.wide[code], 0);
      counts.firsts[code] = std::min(counts.firsts[code], place);
    }
  }
}

template <class Counter>
bool HasAny(const std::vector<Counter>& counters, std::size_t group) {
  std::array<std::uint64_t, kGroup * sizeof(Counter) / 8> words = {};
  std::memcpy(words.data(), &counters[group * kGroup], sizeof words);
  std::uint64_t any = 0;
  for (const std::uint64_t word : words) {
    any |= word;
  }
  return any != 0;
}

// Adds the groups that narrow has counts of.
void FindGroups(CodeCounters& counters) {
  for (std::size_t group = 0; group < kGroups; ++group) {
    if (!counters.is_known[group] && HasAny(counters.narrow, group)) {
      counters.is_known[group] = true;
      counters.groups.push_back(static_cast<std::uint16_t>(group));
    }
  }
}

// Whether the counters are those of so many codes, not less: none has wrapped. Where the known
// groups have them all, no other group has any.
bool HaveAll(std::size_t codes, CodeCounters& counters) {
  if (SumOfNarrow(counters) == codes) {
    return true;
  }
  FindGroups(counters);
  return SumOfNarrow(counters) == codes;
}

}  // namespace

std::uint16_t CountCodes(std::span<const std::uint16_t> codes, const FiniteCodes& finite,
                         CodeCounters& counters) {
  if (HasVectors()) {
    return counters.is_narrow ? CountNarrow(codes, finite, counters)
                              : CountWide(codes, finite, counters);
  }
  counters.is_narrow = false;
  std::uint16_t largest = 0;
  for (const std::uint16_t code : codes) {
    ++counters.wide[code];
    const auto magnitude = static_cast<std::uint16_t>(code & finite.mask);
    largest = magnitude < finite.limit ? std::max(largest, magnitude) : largest;
  }
  return largest;
}

void EndPiece(std::span<const std::uint16_t> piece, CodeCounters& counters) {
  if (!counters.is_narrow) {
    return;
  }
  if (HaveAll(piece.size(), counters)) {
    AddNarrow(counters);
    return;
  }
  std::ranges::fill(counters.narrow, std::uint8_t{0});
  counters.is_narrow = false;
  CountCodes(piece, {}, counters);
}

void TakeCounts(std::uint32_t place, CodeCounters& counters, CodeCounts& counts) {
  for (std::size_t group = 0; group < kGroups; ++group) {
    if (counters.is_narrow && !counters.is_known[group]) {
      continue;
    }
    if (HasAny(counters.wide, group)) {
      counts.used[group] = true;
      HasVectors() ? TakeGroup(group, place, counters, counts)
                   : TakeEach(group, place, counters, counts);
    }
  }
  counters.is_narrow = true;
}

void MoveCounts(CodeCounts& from, CodeCounts& to) {
  for (std::size_t group = 0; group < kGroups; ++group) {
    if (from.used[group]) {
      to.used[group] = true;
      for (std::size_t code = group * kGroup; code < (group + 1) * kGroup; ++code) {
        to.totals[code] += from.totals[code];
        to.firsts[code] = std::min(to.firsts[code], from.firsts[code]);
      }
    }
  }
  ClearCounts(from);
}

void ClearCounts(CodeCounts& counts) {
  for (std::size_t group = 0; group < kGroups; ++group) {
    if (counts.used[group]) {
      std::fill_n(&counts.totals[group * kGroup], kGroup, 0);
      std::fill_n(&counts.firsts[group * kGroup], kGroup, CodeCounts::kNowhere);
    }
  }
  counts.used = {};
}

}  // namespace fourpiles
