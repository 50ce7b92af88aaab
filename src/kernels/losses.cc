// Losses element by element: what the vectors must equal, and the way where there are none; and the
// histogram.

#include "kernels/losses.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <concepts>
#include <numeric>
#include <optional>

#include "base/check.h"
#include "base/float_environment.h"
#include "kernels/array_tasks.h"
#include "kernels/loss_tasks.h"

namespace fourpiles {
namespace {

// The sums of a block, element after element.
struct LossSums {
  PartialSum squares;
  PartialSum errors;
  PartialSum products;
  PartialSum relatives;

  void Finish(BlockLosses& losses) const {
    losses.squared_values = squares.Total();
    losses.squared_errors = errors.Total();
    losses.error_products = products.Total();
    losses.relative_errors = relatives.Total();
  }
};

// Adds an element that is finite before and after. Returns its relative error; nothing of x = 0.
template <std::floating_point T>
std::optional<double> AddElement(std::size_t i, T x, T r, LossSums& sums) {
  const T error = r - x;
  const double wide_x = x;
  const double wide_error = error;
  sums.squares.Add(i, wide_x * wide_x);
  sums.errors.Add(i, wide_error * wide_error);
  sums.products.Add(i, wide_x * wide_error);
  if (x == 0) {
    return std::nullopt;
  }
  const T relative = std::abs(error) / std::abs(x);
  sums.relatives.Add(i, static_cast<double>(relative));
  return static_cast<double>(relative);
}

template <std::floating_point T>
BlockLosses LossesOf(std::span<const T> values, std::span<const T> rounded,
                     const LossLimits& limits, std::size_t sampled, ErrorHistogram& histogram) {
  BlockLosses losses;
  LossSums sums;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const T x = values[i];
    const T r = rounded[i];
    if (!std::isfinite(x)) {
      continue;
    }
    CountElement(x, r, limits, 1, losses);
    const auto relative = std::isfinite(r) ? AddElement(i, x, r, sums) : std::nullopt;
    if (!relative) {
      continue;
    }
    ++losses.compared;
    if (i < sampled) {
      histogram.Add(*relative, 1);
    }
    if (*relative > losses.largest_relative_error) {
      losses.largest_relative_error = *relative;
      losses.largest_at = static_cast<std::int64_t>(i);
    }
  }
  sums.Finish(losses);
  return losses;
}

BlockLosses LossesOfCounted(const CountedValues& all, const LossLimits& limits,
                            std::span<double> relatives) {
  BlockLosses losses;
  LossSums sums;
  for (std::size_t i = 0; i < all.values.size(); ++i) {
    const double x = all.values[i];
    const double r = all.rounded[i];
    const double times = all.counts[i];
    relatives[i] = -1;
    if (!std::isfinite(x)) {
      continue;
    }
    CountElement(x, r, limits, static_cast<std::int64_t>(times), losses);
    if (!std::isfinite(r)) {
      continue;
    }
    const double error = r - x;
    sums.squares.Add(i, times * (x * x));
    sums.errors.Add(i, times * (error * error));
    sums.products.Add(i, times * (x * error));
    if (x == 0) {
      continue;
    }
    relatives[i] = std::abs(error) / std::abs(x);
    losses.compared += static_cast<std::int64_t>(times);
    sums.relatives.Add(i, times * relatives[i]);
    losses.largest_relative_error = std::max(losses.largest_relative_error, relatives[i]);
  }
  sums.Finish(losses);
  return losses;
}

// The first four of the finite values less the pivot, summed.
template <std::floating_point T>
std::array<double, 4> PowersOf(std::span<const T> values, double pivot) {
  std::array<PartialSum, 4> sums;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i])) {
      const double x = static_cast<double>(values[i]) - pivot;
      const double square = x * x;
      sums[0].Add(i, x);
      sums[1].Add(i, square);
      sums[2].Add(i, square * x);
      sums[3].Add(i, square * square);
    }
  }
  return {sums[0].Total(), sums[1].Total(), sums[2].Total(), sums[3].Total()};
}

// Where the mean is ten times the deviation or more, sums are made anew about it: of norms and some
// biases.
template <std::floating_point T>
BlockFacts AboutTheMean(std::span<const T> values, BlockFacts facts) {
  constexpr double kFar = 0.99;  // n × mean² ÷ Σx²
  facts.squares = facts.powers[1];
  const double sum = facts.powers[0];
  const double mean = sum / static_cast<double>(facts.count - facts.nan - facts.infinite);
  if (mean * sum > kFar * facts.squares && std::isfinite(facts.squares)) {
    facts.pivot = mean;
    facts.powers = PowersOf(values, mean);
  }
  return facts;
}

template <std::floating_point T>
BlockFacts FactsOfEach(std::span<const T> values) {
  BlockFacts facts;
  facts.count = static_cast<std::int64_t>(values.size());
  facts.powers = PowersOf(values, 0);
  for (const T value : values) {
    const double x = static_cast<double>(value);
    if (!std::isfinite(x)) {
      ++(std::isnan(x) ? facts.nan : facts.infinite);
      continue;
    }
    const double magnitude = std::abs(x);
    facts.zero += x == 0 ? 1 : 0;
    facts.largest = std::max(facts.largest, magnitude);
    if (x != 0 && (facts.smallest == 0 || magnitude < facts.smallest)) {
      facts.smallest = magnitude;
    }
  }
  return facts;
}

template <std::floating_point T>
Extremes ExtremesOfEach(std::span<const T> values) {
  Extremes extremes;
  for (const T value : values) {
    if (std::isfinite(value)) {
      const auto x = static_cast<double>(value);
      extremes = {std::min(extremes.lowest, x), std::max(extremes.highest, x)};
    }
  }
  return extremes;
}

}  // namespace

std::int32_t FloatBitsAtMost(double limit) {
  const auto largest = static_cast<double>(std::numeric_limits<float>::max());
  const auto nearest = static_cast<float>(std::min(limit, largest));
  const auto bits = std::bit_cast<std::int32_t>(nearest);
  return static_cast<double>(nearest) > limit ? bits - 1 : bits;
}

std::int32_t FloatBitsAtLeast(double limit) {
  const std::int32_t most = FloatBitsAtMost(limit);
  return static_cast<double>(std::bit_cast<float>(most)) < limit ? most + 1 : most;
}

void ErrorHistogram::Add(const ErrorHistogram& other, std::uint64_t times) {
  for (std::size_t i = 0; i < other.used_; ++i) {
    counts_[i] += times * other.counts_[i];
  }
  used_ = std::max(used_, other.used_);
}

void ErrorHistogram::Clear() {
  std::fill_n(counts_.begin(), used_, 0);
  used_ = 0;
}

std::int64_t ErrorHistogram::Total() const {
  return static_cast<std::int64_t>(
      std::accumulate(counts_.begin(), counts_.end(), std::uint64_t{0}));
}

ErrorHistogram::Place ErrorHistogram::QuantilePlace(double quantile, std::int64_t total,
                                                    int highest) const {
  const auto wanted = static_cast<std::int64_t>(std::ceil(quantile * static_cast<double>(total)));
  const auto errors_in = [&](int bucket) {
    return static_cast<std::int64_t>(counts_[static_cast<std::size_t>(bucket)]);
  };
  int bucket = highest;  // usually near: most quantiles asked for are
  std::int64_t below = total - errors_in(bucket);
  while (bucket > 0 && below >= wanted) {
    below -= errors_in(--bucket);
  }
  return {bucket, wanted - below};
}

double ErrorHistogram::Quantile(double quantile) const {
  const int bucket = QuantilePlace(quantile, Total(), kBuckets - 1).bucket;
  const auto leading = static_cast<std::uint32_t>(bucket + 1 + kFirstBits);
  return bucket == 0 ? 0 : std::bit_cast<float>(leading << 16);
}

BlockLosses CountLosses(std::span<const float> values, std::span<const float> rounded,
                        const LossLimits& limits, std::size_t sampled, ErrorHistogram& histogram) {
  CHECK(values.size() == rounded.size() && values.size() <= kLossBlock);
  const DefaultFloatEnvironment environment;
  return HasVectors() ? CountFloatLosses(values, rounded, limits, sampled, histogram)
                      : LossesOf(values, rounded, limits, sampled, histogram);
}

BlockLosses CountLosses(std::span<const double> values, std::span<const double> rounded,
                        const LossLimits& limits, std::size_t sampled, ErrorHistogram& histogram) {
  CHECK(values.size() == rounded.size() && values.size() <= kLossBlock);
  const DefaultFloatEnvironment environment;
  return LossesOf(values, rounded, limits, sampled, histogram);
}

BlockLosses CountLosses(const CountedValues& values, const LossLimits& limits,
                        std::span<double> relatives) {
  CHECK(values.values.size() == values.rounded.size());
  CHECK(values.values.size() == values.counts.size() && values.values.size() == relatives.size());
  const DefaultFloatEnvironment environment;
  return HasVectors() ? CountCountedLosses(values, limits, relatives)
                      : LossesOfCounted(values, limits, relatives);
}

BlockFacts FactsOf(std::span<const float> values) {
  const DefaultFloatEnvironment environment;
  return AboutTheMean(values, HasVectors() ? FloatFacts(values) : FactsOfEach(values));
}

BlockFacts FactsOf(std::span<const double> values) {
  const DefaultFloatEnvironment environment;
  return AboutTheMean(values, FactsOfEach(values));
}

Extremes ExtremesOf(std::span<const float> values) {
  return HasVectors() ? FloatExtremes(values) : ExtremesOfEach(values);
}

Extremes ExtremesOf(std::span<const double> values) {
  return ExtremesOfEach(values);
}

void ZeroNonFinite(std::span<float> values) {
  if (HasVectors()) {
    return ZeroSpecials(values);
  }
  std::ranges::replace_if(
      values, [](float value) { return !std::isfinite(value); }, 0.0F);
}

float LargestMagnitude(std::span<const float> values) {
  if (HasVectors()) {
    return LargestFinite(values.data(), values.size());
  }
  float largest = 0;
  for (const float value : values) {
    largest = std::isfinite(value) ? std::max(largest, std::abs(value)) : largest;
  }
  return largest;
}

std::size_t FirstOf(std::span<const std::uint16_t> codes, const CodeRange& range) {
  if (HasVectors()) {
    return FirstIn(codes, range);
  }
  const auto found =
      std::ranges::find_if(codes, [&](std::uint16_t code) { return range.Has(code); });
  return static_cast<std::size_t>(found - codes.begin());
}

}  // namespace fourpiles
