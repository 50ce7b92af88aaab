#pragma once

#include <algorithm>
#include <cstddef>
#include <thread>
#include <vector>

#include "base/float_environment.h"

namespace fourpiles {

// Calls work(begin, end) over 0 … count in up to `threads` contiguous ranges that begin at
// multiples of `unit`, one of them on this thread, each in the default floating-point mode.
template <class Work>
void ForRanges(std::size_t count, std::size_t unit, int threads, const Work& work) {
  const std::size_t units = (count + unit - 1) / unit;
  const std::size_t ranges = std::clamp<std::size_t>(static_cast<std::size_t>(std::max(threads, 1)),
                                                     1, std::max<std::size_t>(units, 1));
  const auto run = [&](std::size_t range) {
    const DefaultFloatEnvironment mode;
    work(std::min(count, units * range / ranges * unit),
         std::min(count, units * (range + 1) / ranges * unit));
  };
  std::vector<std::jthread> others;
  others.reserve(ranges - 1);
  for (std::size_t range = 1; range < ranges; ++range) {
    others.emplace_back(run, range);
  }
  run(0);
}

}  // namespace fourpiles
