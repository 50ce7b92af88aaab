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
  static constexpr std::size_t kGroups = kCodes / kGroup;
  static constexpr std::uint32_t kNowhere = 0xffffffff;

  std::vector<std::uint64_t> totals = std::vector<std::uint64_t>(kCodes);
  std::vector<std::uint32_t> firsts = std::vector<std::uint32_t>(kCodes, kNowhere);
  std::array<bool, kGroups> used = {};  // groups of codes, any of which occurs
};

// What one thread counts in, all 0 between places.
struct CodeCounters {
  std::vector<std::uint8_t> narrow = std::vector<std::uint8_t>(CodeCounts::kCodes);  // modulo 256
  std::vector<std::uint32_t> wide = std::vector<std::uint32_t>(CodeCounts::kCodes);
  bool is_narrow = true;  // counts in narrow
  // Groups of codes that were ever counted in narrow, each once. The next tensor's are the same.
  std::vector<std::uint16_t> groups = {};
  std::array<bool, CodeCounts::kGroups> is_known = {};  // whether a group is among them
};

// Codes of finite numbers: code & mask, which orders them by magnitude, is below the limit.
struct FiniteCodes {
  std::uint16_t mask = 0;
  std::uint16_t limit = 0;
};

// Counts the codes. Returns the largest code & mask of finite ones; 0 where there is none.
std::uint16_t CountCodes(std::span<const std::uint16_t> codes, const FiniteCodes& finite,
                         CodeCounters& counters);
// After a piece: all codes counted since the last one.
void EndPiece(std::span<const std::uint16_t> piece, CodeCounters& counters);
// After the pieces of a place: adds to the counts what the counters hold, and makes them 0.
void TakeCounts(std::uint32_t place, CodeCounters& counters, CodeCounts& counts);
// Adds the counts of other places, and makes them empty.
void MoveCounts(CodeCounts& from, CodeCounts& to);
void ClearCounts(CodeCounts& counts);

}  // namespace fourpiles
