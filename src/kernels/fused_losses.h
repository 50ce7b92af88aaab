#pragma once

// Rounding of float32 into narrower floating-point formats and counting what that loses, fused:
// fast enough to audit a file against several formats while it is read.
//
// A block is taken whose values are finite and not extreme (CanRoundFused); values are rounded to
// nearest-even and saturate. Sums are made in float32 over 256 elements, of values divided by a
// power of two near the block's largest where that is far from 1, and then in float64: right to
// 2^−20, and in the same order on every instruction set.

#include <cstdint>
#include <optional>
#include <span>

#include "fourpiles/number_format.h"
#include "kernels/losses.h"

namespace fourpiles {

// A format that has the multiples of one power of two in each binade. Values as float32 bits.
struct FusedFormat {
  int fraction_bits = 0;
  std::int32_t smallest_normal = 0;
  std::int32_t largest = 0;
  std::int32_t below_beyond = 0;  // the largest magnitude that does not round past it
};

// Nothing of formats without a sign or subnormals, or with smaller normal numbers or more fraction
// bits than float32.
std::optional<FusedFormat> FusedFormatOf(const NumberFormat& format, const LossLimits& limits);

// Whether a block with these facts may be rounded so.
bool CanRoundFused(const BlockFacts& facts);

struct FusedBlock {
  std::span<const float> values = {};  // at most kLossBlock
  BlockFacts facts = {};               // of them
  std::size_t sampled = 0;  // relative errors of so many first elements go into histograms
};

// What each of the formats loses of the block. As many losses and histograms as formats.
void RoundFused(const FusedBlock& block, std::span<const FusedFormat> formats,
                std::span<BlockLosses> losses, std::span<ErrorHistogram> histograms);

}  // namespace fourpiles
