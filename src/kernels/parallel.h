#pragma once

#include <algorithm>
#include <cstddef>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

#include "base/float_environment.h"

namespace fourpiles {

// Calls work(begin, end) over 0 … count in up to `threads` contiguous ranges that begin at
// multiples of `unit`, the first of them on this thread, each in the default floating-point
// environment. A thread that the system does not give has its range done here. What a range throws
// is thrown here, when all have ended.
template <class Work>
void ForRanges(std::size_t count, std::size_t unit, int threads, const Work& work) {
  constexpr std::size_t kMost = 256;
  const std::size_t units = (count + unit - 1) / unit;
  const std::size_t ranges = std::clamp<std::size_t>(static_cast<std::size_t>(std::max(threads, 1)),
                                                     1, std::clamp<std::size_t>(units, 1, kMost));
  std::vector<std::exception_ptr> failures(ranges);
  const auto run = [&](std::size_t range) {
    const DefaultFloatEnvironment environment;
    try {
      work(std::min(count, units * range / ranges * unit),
           std::min(count, units * (range + 1) / ranges * unit));
    } catch (...) {
      failures[range] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    others.reserve(ranges - 1);
    for (std::size_t range = 1; range < ranges; ++range) {
      try {
        others.emplace_back(run, range);
      } catch (const std::system_error&) {
        run(range);
      }
    }
    run(0);
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure) {
      std::rethrow_exception(failure);
    }
  }
}

}  // namespace fourpiles
