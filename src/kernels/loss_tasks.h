#pragma once

// The kernels behind losses.h, and the order in which they add. Internal to this folder.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/losses.h"

namespace fourpiles {

// A sum in eight parts, element i of a block in the part i % 8, then neighbours, then pairs of
// them.
class PartialSum {
 public:
  void Add(std::size_t i, double term) { parts_[i % parts_.size()] += term; }
  double Total() const {
    const auto& p = parts_;
    return ((p[0] + p[1]) + (p[2] + p[3])) + ((p[4] + p[5]) + (p[6] + p[7]));
  }

 private:
  std::array<double, 8> parts_ = {};
};

// The bits of the largest float32 that is at most the limit, which is positive: of the largest
// finite one where it is infinite.
std::int32_t FloatBitsAtMost(double limit);
// … and of the smallest that is at least the limit: those of infinity where it is larger than all.
std::int32_t FloatBitsAtLeast(double limit);

BlockLosses CountFloatLosses(std::span<const float> values, std::span<const float> rounded,
                             const LossLimits& limits, std::size_t sampled,
                             ErrorHistogram& histogram);
BlockLosses CountCountedLosses(const CountedValues& values, const LossLimits& limits,
                               std::span<double> relatives);
BlockFacts FloatFacts(std::span<const float> values);
Extremes FloatExtremes(std::span<const float> values);
void ZeroSpecials(std::span<float> values);
std::size_t FirstIn(std::span<const std::uint16_t> codes, const CodeRange& range);
float LargestFinite(const float* values, std::size_t count);

}  // namespace fourpiles
