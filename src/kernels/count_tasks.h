#pragma once

// The kernels behind code_counts.h. Internal to this folder.

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/code_counts.h"

namespace fourpiles {

// Adds one to the counter of each code, narrow or wide; see CountCodes.
std::uint16_t CountNarrow(std::span<const std::uint16_t> codes, const FiniteCodes& finite,
                          CodeCounters& counters);
std::uint16_t CountWide(std::span<const std::uint16_t> codes, const FiniteCodes& finite,
                        CodeCounters& counters);
// Of the narrow counters of the known groups.
std::size_t SumOfNarrow(const CodeCounters& counters);
// Adds them to the wide ones, and makes them 0.
void AddNarrow(CodeCounters& counters);
// Adds the wide counters of a group to the counts, and makes them 0.
void TakeGroup(std::size_t group, std::uint32_t place, CodeCounters& counters, CodeCounts& counts);

}  // namespace fourpiles
