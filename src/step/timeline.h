#pragma once

// What is alive at every moment of a play.

#include <array>
#include <vector>

#include "step/tape.h"

namespace fourpiles {

inline constexpr std::size_t kPileCount = std::size(kPiles);

struct TimelinePoint {
  Bytes bytes = Bytes(0);                    // alive, overhead left out, as PeakOf counts
  std::array<Bytes, kPileCount> piles = {};  // in the order of kPiles
};

// One for each of the tape's moments.
std::vector<TimelinePoint> TimelineOf(const Tape& tape, Place place);

}  // namespace fourpiles
