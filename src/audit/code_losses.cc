#include "audit/code_losses.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "formats/codes.h"
#include "fourpiles/formats.h"
#include "fourpiles/number_format.h"
#include "kernels/fused_losses.h"

namespace fourpiles {
namespace {

double Rounded(double value, const FormatWay& way) {
  const Encoded encoded = Encode(value * way.scale, way.format, NearestEven(way.overflow));
  return Decode(encoded.code, way.format) / way.scale;
}

// The error that 99 of 100 of those compared do not exceed: among those of the bucket that it
// stands in.
double QuantileOf(std::span<const double> counts, std::span<const double> errors,
                  const BlockLosses& losses, const ErrorHistogram& histogram) {
  struct CountedError {
    double error = 0;
    double count = 0;
  };
  const double largest = losses.largest_relative_error;
  const ErrorHistogram::Place place =
      histogram.QuantilePlace(0.99, losses.compared, ErrorHistogram::BucketOf(largest));
  std::vector<CountedError> near;  // but for the largest, which many may have
  for (std::size_t i = 0; i < errors.size(); ++i) {
    const double error = errors[i];
    if (error >= 0 && error < largest && ErrorHistogram::BucketOf(error) == place.bucket) {
      near.push_back({error, counts[i]});
    }
  }
  std::ranges::sort(near, {}, &CountedError::error);
  double seen = 0;
  for (const auto& [error, count] : near) {
    seen += count;
    if (seen >= static_cast<double>(place.nth)) {
      return error;
    }
  }
  return largest;
}

bool FloatHolds(const NumberFormat& format) {
  return LimitsOf(format).largest <= std::numeric_limits<float>::max() &&
         SmallestPositive(format) >= std::numeric_limits<float>::denorm_min();
}

RunningFacts::Moments MomentsOf(std::span<const CountedCode> codes, double n, double mean) {
  RunningFacts::Moments moments = {.n = n, .mean = mean};
  for (const auto& [code, value, count] : codes) {
    if (std::isfinite(value)) {
      const double distance = value - mean;
      const double square = distance * distance;
      moments.m2 += static_cast<double>(count) * square;
      moments.m3 += static_cast<double>(count) * (square * distance);
      moments.m4 += static_cast<double>(count) * (square * square);
    }
  }
  return moments;
}

// By the vectors, where float32 holds the values and what they become. Scaled ones are rounded to
// float32 first, as programs do that scale.
bool RoundAsFloats(std::span<const double> values, const FormatWay& way,
                   std::span<double> rounded) {
  const bool fits = FusedFormatOf(way.format, LimitsOf(way.format)).has_value() &&
                    LimitsOf(way.format).largest <= std::numeric_limits<float>::max();
  if (!fits) {
    return false;
  }
  std::vector<float> floats(values.size());
  std::ranges::transform(values, floats.begin(),
                         [&](double x) { return static_cast<float>(x * way.scale); });
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (way.scale == 1 && std::isfinite(values[i]) && static_cast<double>(floats[i]) != values[i]) {
      return false;
    }
  }
  RoundTripArray(floats, way.format, NearestEven(way.overflow), floats);
  if (way.scale == 1) {
    std::ranges::copy(floats, rounded.begin());
  } else {
    std::ranges::transform(floats, rounded.begin(),
                           [&](float x) { return static_cast<double>(x) / way.scale; });
  }
  return true;
}

}  // namespace

std::vector<double> ValuesOfCodes(const NumberFormat& format) {
  std::vector<double> values(static_cast<std::size_t>(CodeMask(format)) + 1);
  if (FloatHolds(format) && CodeMask(format) == 0xffff) {
    std::vector<std::uint16_t> codes(values.size());
    std::iota(codes.begin(), codes.end(), std::uint16_t{0});
    std::vector<float> floats(values.size());
    DecodeArray({format, std::as_bytes(std::span(codes))}, floats);
    std::ranges::copy(floats, values.begin());
    return values;
  }
  for (std::size_t code = 0; code < values.size(); ++code) {
    values[code] = Decode(code, format);
  }
  return values;
}

std::vector<CountedCode> CountedCodes(const CodeCounts& counts, std::span<const double> values) {
  std::vector<CountedCode> codes;
  codes.reserve(CodeCounts::kGroup *
                static_cast<std::size_t>(std::ranges::count(counts.used, true)));
  for (std::size_t begin = 0; begin < values.size(); begin += CodeCounts::kGroup) {
    if (!counts.used[begin / CodeCounts::kGroup]) {
      continue;
    }
    for (std::size_t code = begin; code < std::min(begin + CodeCounts::kGroup, values.size());
         ++code) {
      if (counts.totals[code] > 0) {
        codes.push_back({static_cast<std::uint32_t>(code), values[code],
                         static_cast<std::int64_t>(counts.totals[code])});
      }
    }
  }
  return codes;
}

std::vector<CountedCode> WithoutSigns(std::span<const CountedCode> codes,
                                      const NumberFormat& format) {
  const auto mask = static_cast<std::uint32_t>(MagnitudeMask(format));
  const auto negative =
      std::ranges::find_if(codes, [&](const CountedCode& code) { return code.code > mask; });
  std::vector<CountedCode> magnitudes;
  magnitudes.reserve(codes.size());
  auto positive = codes.begin();
  for (auto next = negative; positive != negative || next != codes.end();) {
    const bool takes_next =
        positive == negative || (next != codes.end() && (next->code & mask) < positive->code);
    const CountedCode& code = takes_next ? *next++ : *positive++;
    if (!std::isfinite(code.value)) {
      continue;
    }
    if (!magnitudes.empty() && magnitudes.back().code == (code.code & mask)) {
      magnitudes.back().count += code.count;
    } else {
      magnitudes.push_back({code.code & mask, std::abs(code.value), code.count});
    }
  }
  return magnitudes;
}

RunningFacts FactsOf(std::span<const CountedCode> codes) {
  ValueFacts facts;
  double sum = 0;
  for (const auto& [code, value, count] : codes) {
    facts.count += count;
    if (!std::isfinite(value)) {
      (std::isnan(value) ? facts.nan : facts.infinite) += count;
      continue;
    }
    const double magnitude = std::abs(value);
    facts.zero += value == 0 ? count : 0;
    facts.largest = std::max(facts.largest, magnitude);
    if (value != 0 && (facts.smallest == 0 || magnitude < facts.smallest)) {
      facts.smallest = magnitude;
    }
    sum += static_cast<double>(count) * value;
    facts.sum_of_squares += static_cast<double>(count) * (value * value);
  }
  const auto n = static_cast<double>(facts.count - facts.nan - facts.infinite);
  return {facts, n == 0 ? RunningFacts::Moments() : MomentsOf(codes, n, sum / n)};
}

std::vector<double> RoundedValues(std::span<const double> values, const FormatWay& way) {
  std::vector<double> rounded(values.size());
  if (!RoundAsFloats(values, way, rounded)) {
    std::ranges::transform(values, rounded.begin(),
                           [&](double value) { return Rounded(value, way); });
  }
  return rounded;
}

Losses LossesOf(const CountedValues& values, const LossLimits& limits, std::span<double> relatives,
                ErrorHistogram& histogram) {
  const BlockLosses losses = CountLosses(values, limits, relatives);
  for (std::size_t i = 0; i < relatives.size(); ++i) {
    if (relatives[i] >= 0) {
      histogram.Add(relatives[i], static_cast<std::int64_t>(values.counts[i]));
    }
  }
  Losses all = LossesOf(losses, 0);
  if (all.compared > 0) {
    all.relative_error_p99 = QuantileOf(values.counts, relatives, losses, histogram);
  }
  return all;
}

}  // namespace fourpiles
