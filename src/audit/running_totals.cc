#include "audit/running_totals.h"

#include <algorithm>
#include <cmath>

namespace fourpiles {
namespace {

// Power sums of a block, relative to the largest of their terms: sums of 8,192 terms in each of
// eight parts, whose roundings mostly cancel.
constexpr double kRounding = 0x1p-48;
constexpr double kClear = 100;  // a moment is known to a hundredth

}  // namespace

RunningFacts::RunningFacts(const BlockFacts& block)
    : counted_({.count = block.count,
                .nan = block.nan,
                .infinite = block.infinite,
                .zero = block.zero,
                .smallest = block.smallest,
                .largest = block.largest,
                .sum_of_squares = block.squares}) {
  const auto n = static_cast<double>(block.count - block.nan - block.infinite);
  if (n == 0) {
    return;
  }
  const auto& [x1, x2, x3, x4] = block.powers;
  const double mean = x1 / n;  // less the pivot
  const double square = mean * mean;
  moments_ = {.n = n,
              .mean = block.pivot + mean,
              .m2 = x2 - x1 * mean,
              .m3 = x3 - 3 * mean * x2 + 2 * square * x1,
              .m4 = x4 - 4 * mean * x3 + 6 * square * x2 - 3 * square * mean * x1,
              .m4_error = kRounding * x4};
}

void RunningFacts::Add(const RunningFacts& next) {
  counted_.count += next.counted_.count;
  counted_.nan += next.counted_.nan;
  counted_.infinite += next.counted_.infinite;
  counted_.zero += next.counted_.zero;
  counted_.largest = std::max(counted_.largest, next.counted_.largest);
  if (next.counted_.smallest != 0) {
    counted_.smallest = counted_.smallest == 0
                            ? next.counted_.smallest
                            : std::min(counted_.smallest, next.counted_.smallest);
  }
  counted_.sum_of_squares += next.counted_.sum_of_squares;
  const Moments& other = next.moments_;
  const double a = moments_.n;
  const double b = other.n;
  if (b == 0) {
    return;
  }
  const double d = other.mean - moments_.mean;
  const double share = d / (a + b);
  auto& [n, mean, m2, m3, m4, m4_error] = moments_;
  m4_error += other.m4_error;
  m4 += other.m4 + share * share * share * d * a * b * (a * a - a * b + b * b) +
        6 * share * share * (a * a * other.m2 + b * b * m2) + 4 * share * (a * other.m3 - b * m3);
  m3 += other.m3 + share * share * d * a * b * (a - b) + 3 * share * (a * other.m2 - b * m2);
  m2 += other.m2 + share * d * a * b;
  mean += share * b;
  n += b;
}

ValueFacts RunningFacts::Facts() const {
  ValueFacts facts = counted_;
  const auto& [n, mean, m2, m3, m4, m4_error] = moments_;
  facts.mean = mean;
  if (n > 0) {
    // Of values above 1e154 the squares are infinite.
    const double variance = std::isfinite(m2) ? std::max(m2, 0.0) / n : INFINITY;
    facts.deviation = std::sqrt(variance);
    const bool is_known = variance > 0 && std::isfinite(variance) && m4 > kClear * m4_error;
    if (is_known) {
      facts.kurtosis = m4 / n / (variance * variance);
    }
  }
  return facts;
}

std::optional<double> RelativeErrorP99(const ErrorHistogram& errors, const Losses& losses) {
  if (losses.compared == 0) {
    return std::nullopt;
  }
  return std::min(errors.Quantile(0.99), losses.largest_relative_error);
}

Losses LossesOf(const BlockLosses& block, std::int64_t first) {
  return {.overflow = block.overflow,
          .saturated = block.saturated,
          .underflow = block.underflow,
          .subnormal = block.subnormal,
          .changed = block.changed,
          .squared_values = block.squared_values,
          .squared_errors = block.squared_errors,
          .error_products = block.error_products,
          .relative_errors = block.relative_errors,
          .compared = block.compared,
          .largest_relative_error = block.largest_relative_error,
          .largest_at = block.largest_at < 0 ? -1 : first + block.largest_at};
}

void Add(const Losses& next, Losses& whole) {
  whole.overflow += next.overflow;
  whole.saturated += next.saturated;
  whole.underflow += next.underflow;
  whole.subnormal += next.subnormal;
  whole.changed += next.changed;
  whole.squared_values += next.squared_values;
  whole.squared_errors += next.squared_errors;
  whole.error_products += next.error_products;
  whole.relative_errors += next.relative_errors;
  whole.compared += next.compared;
  if (next.largest_relative_error > whole.largest_relative_error) {
    whole.largest_relative_error = next.largest_relative_error;
    whole.largest_at = next.largest_at;
  }
}

}  // namespace fourpiles
