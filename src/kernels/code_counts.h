#pragma once

// How often each code of 16 bits occurs, and in which place first: of tensors whose places several
// threads count.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace fourpiles {

struct CodeCounts {
  static constexpr std::size_t kCodes = 65536;
  static constexpr std::size_t kGroup = 64;
  static constexpr std::uint32_t kNowhere = 0xffffffff;

  std::vector<std::uint64_t> totals = std::vector<std::uint64_t>(kCodes);
  std::vector<std::uint32_t> firsts = std::vector<std::uint32_t>(kCodes, kNowhere);
  std::array<bool, kCodes / kGroup> used = {};  // groups of codes, any of which occurs
};

// Adds one to recent[code] for each code of a place. There are 65,536 of them; what one has no room
// for is added to the counts.
void CountCodes(std::span<const std::uint16_t> codes, std::uint32_t place,
                std::span<std::uint16_t> recent, CodeCounts& counts);
// At the end of a place: adds to the counts what `recent` holds, and makes it 0.
void TakeCounts(std::span<std::uint16_t> recent, std::uint32_t place, CodeCounts& counts);
// Adds the counts of other places, and makes them empty.
void MoveCounts(CodeCounts& from, CodeCounts& to);
void ClearCounts(CodeCounts& counts);

}  // namespace fourpiles
