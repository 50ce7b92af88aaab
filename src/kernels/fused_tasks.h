#pragma once

// The kernel behind fused_losses.h, and the order in which it adds. Internal to this folder.

#include <array>
#include <cstddef>
#include <span>

#include "kernels/fused_losses.h"

namespace fourpiles {

// Element i of a block is added to part i % 16 in float32; every 256 elements the parts are added
// to parts of float64, which in the end are added as a tree.
inline constexpr std::size_t kFusedParts = 16;
inline constexpr std::size_t kFusedRun = 256;

inline double TotalOf(const std::array<double, kFusedParts>& parts) {
  std::array<double, kFusedParts> sums = parts;
  for (std::size_t width = kFusedParts / 2; width > 0; width /= 2) {
    for (std::size_t i = 0; i < width; ++i) {
      sums[i] = sums[2 * i] + sums[2 * i + 1];
    }
  }
  return sums[0];
}

class FusedSum {
 public:
  void Add(std::size_t i, float term) {
    if (i % kFusedRun == 0) {
      Flush();
    }
    parts_[i % kFusedParts] += term;
  }
  double Total() {
    Flush();
    return TotalOf(wide_);
  }

 private:
  void Flush() {
    for (std::size_t i = 0; i < kFusedParts; ++i) {
      wide_[i] += static_cast<double>(parts_[i]);
      parts_[i] = 0;
    }
  }
  std::array<float, kFusedParts> parts_ = {};
  std::array<double, kFusedParts> wide_ = {};
};

struct FusedTotals {
  double errors = 0;    // of scaled values …
  double products = 0;  // … too
  double relatives = 0;
};

// The power of two that a block's values are multiplied with.
float FusedScaleOf(const BlockFacts& facts);
// Writes the sums of a block.
void FinishFused(const BlockFacts& facts, const FusedTotals& totals, BlockLosses& losses);

void RoundFusedVectors(const FusedBlock& block, std::span<const FusedFormat> formats,
                       std::span<BlockLosses> losses, std::span<ErrorHistogram> histograms);

}  // namespace fourpiles
