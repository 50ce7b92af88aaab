// Counting is bound by its writes. A core does writes to the same cache line together that follow
// each other, so codes are counted where they stand close: in 16 bits each. Weights use a few
// thousand codes, so all that is done once a place looks at groups of them that are used.

#include "kernels/code_counts.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace fourpiles {
namespace {

constexpr std::size_t kCodes = CodeCounts::kCodes;
constexpr std::size_t kGroup = CodeCounts::kGroup;

bool HasAny(std::span<const std::uint16_t> group) {
  std::array<std::uint64_t, kGroup / 4> words = {};
  std::memcpy(words.data(), group.data(), sizeof words);
  std::uint64_t any = 0;
  for (const std::uint64_t word : words) {
    any |= word;
  }
  return any != 0;
}

void AddFullCount(std::uint16_t code, std::uint32_t place, CodeCounts& counts) {
  counts.totals[code] += 65536;
  counts.firsts[code] = std::min(counts.firsts[code], place);
  counts.used[code / kGroup] = true;
}

}  // namespace

void CountCodes(std::span<const std::uint16_t> codes, std::uint32_t place,
                std::span<std::uint16_t> recent, CodeCounts& counts) {
  CHECK(recent.size() == kCodes);
  std::uint16_t* const to = recent.data();
  const auto count = [&](std::uint16_t code) {
    if (++to[code] == 0) [[unlikely]] {
      AddFullCount(code, place, counts);
    }
  };
  std::size_t i = 0;
  for (; i + 4 <= codes.size(); i += 4) {
    const std::uint16_t* const four = codes.data() + i;
    count(four[0]);
    count(four[1]);
    count(four[2]);
    count(four[3]);
  }
  for (; i < codes.size(); ++i) {
    count(codes[i]);
  }
}

void TakeCounts(std::span<std::uint16_t> recent, std::uint32_t place, CodeCounts& counts) {
  CHECK(recent.size() == kCodes);
  for (std::size_t begin = 0; begin < kCodes; begin += kGroup) {
    const std::span<std::uint16_t> group = recent.subspan(begin, kGroup);
    if (!HasAny(group)) {
      continue;
    }
    counts.used[begin / kGroup] = true;
    std::uint64_t* const totals = &counts.totals[begin];
    std::uint32_t* const firsts = &counts.firsts[begin];
    for (std::size_t i = 0; i < kGroup; ++i) {
      totals[i] += group[i];
      firsts[i] = std::min(firsts[i], group[i] > 0 ? place : CodeCounts::kNowhere);
    }
    std::ranges::fill(group, std::uint16_t{0});
  }
}

void MoveCounts(CodeCounts& from, CodeCounts& to) {
  for (std::size_t group = 0; group < from.used.size(); ++group) {
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
  for (std::size_t group = 0; group < counts.used.size(); ++group) {
    if (counts.used[group]) {
      std::fill_n(&counts.totals[group * kGroup], kGroup, 0);
      std::fill_n(&counts.firsts[group * kGroup], kGroup, CodeCounts::kNowhere);
    }
  }
  counts.used = {};
}

}  // namespace fourpiles
