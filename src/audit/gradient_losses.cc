#include "audit/gradient_losses.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace fourpiles {
namespace {

constexpr int kLowestOfFloat64 = -1074;
constexpr int kHighestOfFloat64 = 1023;
constexpr std::size_t kBinadesOfFloat64 = kHighestOfFloat64 - kLowestOfFloat64 + 1;
constexpr std::size_t kCells = 6;

// value = significand × 2^exponent, 1 ≤ significand < 2; of a positive value.
struct Parts {
  double significand = 0;
  int exponent = 0;
};

Parts PartsOf(double value) {
  constexpr int kFraction = 52;
  constexpr int kBias = 1023;
  constexpr std::uint64_t kFractionMask = (std::uint64_t{1} << kFraction) - 1;
  const auto bits = std::bit_cast<std::uint64_t>(value);
  if (const auto field = static_cast<int>(bits >> kFraction); field > 0) {
    constexpr std::uint64_t kOne = std::uint64_t{kBias} << kFraction;
    return {std::bit_cast<double>((bits & kFractionMask) | kOne), field - kBias};
  }
  int exponent = 0;
  const double half = std::frexp(value, &exponent);
  return {half * 2, exponent - 1};
}

std::size_t BinadeOf(int exponent) {
  return static_cast<std::size_t>(exponent - kLowestOfFloat64);
}

double Share(std::int64_t part, const GradientFacts& facts) {
  return facts.nonzero > 0 ? static_cast<double>(part) / static_cast<double>(facts.nonzero) : 0;
}

void AddFacts(const GradientFacts& part, GradientFacts& sum) {
  sum.count += part.count;
  sum.nan += part.nan;
  sum.infinite += part.infinite;
  sum.zero += part.zero;
  if (part.nonzero > 0) {
    sum.smallest = sum.nonzero > 0 ? std::min(sum.smallest, part.smallest) : part.smallest;
    sum.largest = std::max(sum.largest, part.largest);
  }
  sum.nonzero += part.nonzero;
  for (std::size_t i = 0; i < sum.binades.size(); ++i) {
    sum.binades[i] += part.binades[i];
  }
}

// Whether it is finite and not zero.
bool CountKind(double gradient, GradientFacts& facts) {
  ++facts.count;
  if (std::isnan(gradient)) {
    ++facts.nan;
    return false;
  }
  if (std::isinf(gradient)) {
    ++facts.infinite;
    return false;
  }
  if (gradient == 0) {
    ++facts.zero;
    return false;
  }
  return true;
}

}  // namespace

double VanishedShare(const ScaleLosses& losses, const GradientFacts& facts) {
  return Share(losses.vanished, facts);
}
double SubnormalShare(const ScaleLosses& losses, const GradientFacts& facts) {
  return Share(losses.subnormal, facts);
}
double OverflowShare(const ScaleLosses& losses, const GradientFacts& facts) {
  return Share(losses.overflow, facts);
}

GradientCounts::GradientCounts(std::span<const NumberFormat> formats) {
  formats_.reserve(formats.size());
  for (const NumberFormat& format : formats) {
    const double half = SmallestPositive(format) / 2;
    Counted counted = {.vanish = half,  // a tie with zero, which is even
                       .normal = SmallestNormal(format) - half,
                       .overflow = OverflowThreshold(format),
                       .tie_overflows = ThresholdOverflows(format)};
    counted.cuts = {PartsOf(counted.normal).significand, PartsOf(counted.overflow).significand};
    std::ranges::sort(counted.cuts);
    counted.cells.resize(kBinadesOfFloat64 * kCells);
    formats_.push_back(std::move(counted));
  }
}

// Grows with the significand, and at each of the cuts and above each of them and of 1.
std::size_t GradientCounts::CellOf(const Counted& counted, double significand) {
  const auto& [low, high] = counted.cuts;
  return static_cast<std::size_t>(significand > 1) + static_cast<std::size_t>(significand >= low) +
         static_cast<std::size_t>(significand > low) +
         static_cast<std::size_t>(significand >= high) +
         static_cast<std::size_t>(significand > high);
}

void GradientCounts::Add(std::span<const double> gradients) {
  for (const double gradient : gradients) {
    if (!CountKind(gradient, facts_)) {
      continue;
    }
    const double magnitude = std::abs(gradient);
    facts_.smallest = facts_.nonzero > 0 ? std::min(facts_.smallest, magnitude) : magnitude;
    facts_.largest = std::max(facts_.largest, magnitude);
    ++facts_.nonzero;
    const Parts parts = PartsOf(magnitude);
    const int binade = std::clamp(parts.exponent, kLowestBinade, kHighestBinade) - kLowestBinade;
    ++facts_.binades[static_cast<std::size_t>(binade)];
    for (Counted& counted : formats_) {
      ++counted.cells[BinadeOf(parts.exponent) * kCells + CellOf(counted, parts.significand)];
    }
  }
}

void GradientCounts::Add(const GradientCounts& other) {
  CHECK(formats_.size() == other.formats_.size());
  AddFacts(other.facts_, facts_);
  for (std::size_t i = 0; i < formats_.size(); ++i) {
    for (std::size_t k = 0; k < formats_[i].cells.size(); ++k) {
      formats_[i].cells[k] += other.formats_[i].cells[k];
    }
  }
}

// How many magnitudes are smaller than the bound, or equal to it. Its significand is 1 or a cut.
std::int64_t GradientCounts::CountBelow(const Counted& counted, double bound, bool included) {
  const Parts parts = PartsOf(bound);
  const std::size_t end =
      BinadeOf(parts.exponent) * kCells + CellOf(counted, parts.significand) + (included ? 1 : 0);
  const auto begin = counted.cells.begin();
  return std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(end), std::int64_t{0});
}

GradientLosses GradientCounts::LossesIn(std::size_t format) const {
  const Counted& counted = formats_[format];
  GradientLosses losses;
  losses.scales.reserve(kLargestScaleExponent + 1);
  for (int exponent = 0; exponent <= kLargestScaleExponent; ++exponent) {
    const auto below = [&](double bound, bool included) {
      return CountBelow(counted, std::ldexp(bound, -exponent), included);
    };
    const std::int64_t vanished = below(counted.vanish, true);
    const std::int64_t fitting = below(counted.overflow, !counted.tie_overflows);
    losses.scales.push_back({.exponent = exponent,
                             .vanished = vanished,
                             .subnormal = below(counted.normal, false) - vanished,
                             .overflow = facts_.nonzero - fitting});
  }
  if (facts_.nonzero > 0) {
    const Parts largest = PartsOf(facts_.largest);
    const Parts limit = PartsOf(counted.overflow);
    const bool fits = largest.significand < limit.significand ||
                      (largest.significand == limit.significand && !counted.tie_overflows);
    const int safe = limit.exponent - largest.exponent - (fits ? 0 : 1);
    losses.largest_safe = safe;
    if (safe >= 0) {
      losses.recommended = std::clamp(safe - kHeadroomBinades, 0, kLargestScaleExponent);
    }
  }
  return losses;
}

}  // namespace fourpiles
