#include "plan/reserved.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>
#include <vector>

namespace fourpiles {
namespace {

// Measured runs whose steps are alike, of torchtitan, torchao, PEFT, fsdp_qlora and transformers,
// lie between these of the replay (docs/RESERVED.md).
constexpr double kLow = 0.889;
constexpr double kHigh = 1.2;

Bytes Times(Bytes bytes, double factor) {
  return Bytes(std::llround(static_cast<double>(bytes.value()) * factor));
}

using Steps = std::vector<const AllocatorRun*>;

// Fisher and Yates; std::shuffle differs from one standard library to another.
void Shuffle(std::span<const AllocatorRun*> steps, std::mt19937_64& random) {
  for (std::size_t left = steps.size(); left > 1; --left) {
    std::swap(steps[left - 1], steps[random() % left]);
  }
}

// Reserved at most; without a limit where the memory is too small for what is alive.
template <class Run>
AllocatorPeaks PeaksOf(const Run& run, AllocatorSettings settings) {
  const AllocatorPeaks peaks = ReplayAllocator(run, settings);
  if (!peaks.out_of_memory) {
    return peaks;
  }
  settings.memory.reset();
  return ReplayAllocator(run, settings);
}

AllocatorPeaks MedianOfOrders(std::span<const AllocatorRun> runs,
                              const AllocatorSettings& settings) {
  Steps steps;
  steps.reserve(runs.size());
  for (const AllocatorRun& run : runs) {
    steps.push_back(&run);
  }
  std::mt19937_64 random(1);  // any number: the same answer every time
  std::vector<AllocatorPeaks> peaks;
  peaks.reserve(kOrdersOfSteps);
  for (int order = 0; order < kOrdersOfSteps; ++order) {
    // The first stays: it is the shortest, and no other runs without the optimizer's states.
    Shuffle(std::span(steps).subspan(1), random);
    peaks.push_back(PeaksOf(std::span<const AllocatorRun* const>(steps), settings));
  }
  const auto median = peaks.begin() + kOrdersOfSteps / 2;
  std::ranges::nth_element(peaks, median, {}, &AllocatorPeaks::reserved);
  return *median;
}

}  // namespace

Band ReservedBand(std::span<const AllocatorRun> runs, const AllocatorSettings& settings) {
  const AllocatorPeaks peaks =
      runs.size() == 1 ? PeaksOf(runs.front(), settings) : MedianOfOrders(runs, settings);
  return {std::max(peaks.allocated, Times(peaks.reserved, kLow)), peaks.reserved,
          Times(peaks.reserved, kHigh)};
}

}  // namespace fourpiles
