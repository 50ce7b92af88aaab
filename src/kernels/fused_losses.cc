// Fused rounding element by element: what the vectors must equal, and the way where there are none.

#include "kernels/fused_losses.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.h"
#include "base/float_environment.h"
#include "formats/codes.h"
#include "fourpiles/formats.h"
#include "kernels/array_tasks.h"
#include "kernels/fused_tasks.h"
#include "kernels/loss_tasks.h"

namespace fourpiles {
namespace {

constexpr std::int32_t kExponentBits = 0x7f800000;
constexpr std::int32_t kSignBit = std::numeric_limits<std::int32_t>::min();

std::int32_t BitsOf(float value) {
  return std::bit_cast<std::int32_t>(value);
}
float MagnitudeOf(std::int32_t bits) {
  return std::bit_cast<float>(bits);
}

// The value's neighbour among the format's, nearest-even: adding a number whose last place is the
// format's, and taking it off again, rounds in between. With the value's sign, so that the sum
// stays in its binade.
float Rounded(float value, const FusedFormat& format) {
  const std::int32_t bits = BitsOf(value);
  const std::int32_t binade = std::max(bits & kExponentBits, format.smallest_normal);
  const std::int32_t anchor = (binade + ((23 - format.fraction_bits) << 23)) | (bits & kSignBit);
  const float rounded = (value + MagnitudeOf(anchor)) - MagnitudeOf(anchor);
  const float largest = MagnitudeOf(format.largest);
  return std::clamp(rounded, -largest, largest);
}

LossLimits LimitsOf(const FusedFormat& format) {
  return {.largest = MagnitudeOf(format.largest),
          .beyond = MagnitudeOf(format.below_beyond + 1),
          .smallest_normal = MagnitudeOf(format.smallest_normal)};
}

void RoundEach(const FusedBlock& block, const FusedFormat& format, BlockLosses& losses,
               ErrorHistogram& histogram) {
  const float scale = FusedScaleOf(block.facts);
  const LossLimits limits = LimitsOf(format);
  FusedSum errors;
  FusedSum products;
  FusedSum relatives;
  for (std::size_t i = 0; i < block.values.size(); ++i) {
    const float x = block.values[i];
    const float r = Rounded(x, format);
    CountElement(x, r, limits, 1, losses);
    const float error = r - x;
    const float small_error = error * scale;
    const float relative = x == 0 ? 0 : std::abs(error) * (1 / std::abs(x));
    errors.Add(i, small_error * small_error);
    products.Add(i, (x * scale) * small_error);
    relatives.Add(i, relative);
    const double exact = r == 0 && x != 0 ? 1 : relative;  // of what vanished
    if (i < block.sampled && x != 0) {
      histogram.Add(exact, 1);
    }
    if (exact > losses.largest_relative_error) {
      losses.largest_relative_error = exact;
      losses.largest_at = static_cast<std::int64_t>(i);
    }
  }
  FinishFused(block.facts, {errors.Total(), products.Total(), relatives.Total()}, losses);
}

}  // namespace

std::optional<FusedFormat> FusedFormatOf(const NumberFormat& format, const LossLimits& limits) {
  const double smallest_normal = Decode(SmallestNormalCode(format), format);
  if (!format.has_sign || !format.has_subnormals || format.fraction_bits < 1 ||
      format.fraction_bits > 22 || smallest_normal < 0x1p-126) {
    return std::nullopt;
  }
  return FusedFormat{.fraction_bits = format.fraction_bits,
                     .smallest_normal = FloatBitsAtLeast(smallest_normal),
                     .largest = FloatBitsAtMost(limits.largest),
                     .below_beyond = FloatBitsAtLeast(limits.beyond) - 1};
}

bool CanRoundFused(const BlockFacts& facts) {
  // So that no anchor, reciprocal or scale leaves float32's normal numbers.
  return facts.nan == 0 && facts.infinite == 0 && facts.largest < 0x1p100 &&
         (facts.smallest == 0 || facts.smallest >= 0x1p-100);
}

float FusedScaleOf(const BlockFacts& facts) {
  const bool is_ordinary =
      facts.largest == 0 || (facts.largest > 0x1p-20 && facts.largest < 0x1p20);
  return is_ordinary ? 1 : std::ldexp(1.0F, -std::ilogb(facts.largest));
}

void FinishFused(const BlockFacts& facts, const FusedTotals& totals, BlockLosses& losses) {
  const double unit = 1 / static_cast<double>(FusedScaleOf(facts));
  losses.compared = facts.count - facts.zero;
  losses.squared_values = facts.squares;
  losses.squared_errors = totals.errors * (unit * unit);
  losses.error_products = totals.products * (unit * unit);
  losses.relative_errors = totals.relatives;
}

void RoundFused(const FusedBlock& block, std::span<const FusedFormat> formats,
                std::span<BlockLosses> losses, std::span<ErrorHistogram> histograms) {
  CHECK(block.values.size() <= kLossBlock && losses.size() == formats.size() &&
        histograms.size() == formats.size());
  const DefaultFloatEnvironment environment;
  if (HasVectors()) {
    RoundFusedVectors(block, formats, losses, histograms);
    return;
  }
  for (std::size_t i = 0; i < formats.size(); ++i) {
    losses[i] = {};
    RoundEach(block, formats[i], losses[i], histograms[i]);
  }
}

}  // namespace fourpiles
