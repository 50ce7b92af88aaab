#pragma once

// What PyTorch's caching allocator has reserved for a rank at most, from a replay of its steps.

#include <span>

#include "fourpiles/units.h"
#include "step/caching_allocator.h"
#include "step/storage.h"

namespace fourpiles {

// In how many orders steps that are not alike are played; odd, so that one of them is the median.
inline constexpr int kOrdersOfSteps = 7;

// `runs`: of steps that are all alike, one; else one of each length that steps have, the shortest
// first, which come as often as each other: once each. How much lies in pieces that fit nothing
// depends on the order in which they come, which nobody knows: several orders are played, of which
// expected is the median.
//
// Low and high are what measured runs were of the replay, low never below what the tensors' blocks
// have. Where settings.memory would end, segments that are free go back before.
Band ReservedBand(std::span<const AllocatorRun> runs, const AllocatorSettings& settings);

}  // namespace fourpiles
