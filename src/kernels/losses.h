#pragma once

// What values lose where they become others: counts, sums of errors, how the relative errors lie.
// All of it is exact or summed in a fixed order, so that every instruction set gives the same bits.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace fourpiles {

// Sums are made over blocks of at most so many elements.
inline constexpr std::size_t kLossBlock = 65536;

// What a format makes of magnitudes. Infinity where it has no such limit.
struct LossLimits {
  double largest = std::numeric_limits<double>::infinity();  // value
  // The smallest magnitude that rounds past it, were there more values.
  double beyond = std::numeric_limits<double>::infinity();
  double smallest_normal = 0;  // value
};

// Of the elements of a block, x before and r after. Counts are of finite x. Sums are over elements
// that are finite before and after, in float64; r − x and |r − x| ÷ |x| are rounded to the type of
// the elements first.
struct BlockLosses {
  std::int64_t overflow = 0;   // round past the largest value, or became infinity or NaN
  std::int64_t saturated = 0;  // larger than the largest value
  std::int64_t underflow = 0;  // other than zero, became zero
  std::int64_t subnormal = 0;  // became a number smaller than the smallest normal one
  std::int64_t changed = 0;    // r ≠ x
  std::int64_t compared = 0;   // finite before and after, and x ≠ 0
  double squared_values = 0;   // Σ x²
  double squared_errors = 0;   // Σ (r − x)²
  double error_products = 0;   // Σ x·(r − x)
  double relative_errors = 0;  // Σ |r − x| ÷ |x| of those compared
  double largest_relative_error = 0;
  std::int64_t largest_at = -1;  // the first element of the block that has it; -1: it is 0
};

// Counts a finite x that became r, so many times: overflow to changed.
inline void CountElement(double x, double r, const LossLimits& limits, std::int64_t times,
                         BlockLosses& losses) {
  const double magnitude = std::abs(x);
  const auto count = [times](bool holds) { return holds ? times : 0; };
  losses.overflow += count(magnitude >= limits.beyond || !std::isfinite(r));
  losses.saturated += count(magnitude > limits.largest);
  losses.underflow += count(r == 0 && x != 0);
  losses.subnormal += count(r != 0 && std::abs(r) < limits.smallest_normal);
  losses.changed += count(r != x);
}

// Relative errors by the leading bits of their float32: 128 buckets a binade, from 2^−33 on. What
// is smaller stands in the first and counts as 0; the last has all above 2^31.
class ErrorHistogram {
 public:
  static constexpr int kBuckets = 64 * 128;
  static constexpr std::int32_t kFirstBits = (127 - 33) * 128;  // of the first bucket

  static constexpr int BucketOf(std::uint32_t float_bits) {
    const std::int32_t leading = static_cast<std::int32_t>(float_bits >> 16) - kFirstBits;
    return leading < 0 ? 0 : leading >= kBuckets ? kBuckets - 1 : leading;
  }

  static int BucketOf(double error) {
    return BucketOf(std::bit_cast<std::uint32_t>(static_cast<float>(error)));
  }

  // To count in.
  std::uint64_t* Counts() {
    used_ = kBuckets;
    return counts_.data();
  }
  // Those of the other, each so many times.
  void Add(const ErrorHistogram& other, std::uint64_t times = 1);
  // So many errors of that size.
  void Add(double error, std::int64_t count) {
    const auto bucket = static_cast<std::size_t>(BucketOf(error));
    counts_[bucket] += static_cast<std::uint64_t>(count);
    used_ = std::max(used_, bucket + 1);
  }
  void Clear();
  std::int64_t Total() const;
  // What the share `quantile` of the errors does not exceed: the upper edge of a bucket, so at most
  // 1/128 too large. 0 without errors.
  double Quantile(double quantile) const;
  // The bucket that it stands in, and which of the errors there it is, from 1 on. They are `total`,
  // the largest in the bucket `highest`.
  struct Place {
    int bucket = 0;
    std::int64_t nth = 0;
  };
  Place QuantilePlace(double quantile, std::int64_t total, int highest) const;

 private:
  std::array<std::uint64_t, kBuckets> counts_ = {};
  std::size_t used_ = 0;  // behind them all are 0
};

// At most kLossBlock elements. Relative errors of those compared among the first `sampled` are
// added to the histogram.
BlockLosses CountLosses(std::span<const float> values, std::span<const float> rounded,
                        const LossLimits& limits, std::size_t sampled, ErrorHistogram& histogram);
// The same of float64, one element after another.
BlockLosses CountLosses(std::span<const double> values, std::span<const double> rounded,
                        const LossLimits& limits, std::size_t sampled, ErrorHistogram& histogram);

// Values, what they became, and how often each occurs: below 2^53 times together.
struct CountedValues {
  std::span<const double> values = {};
  std::span<const double> rounded = {};
  std::span<const double> counts = {};
};
// The losses of all that occur; `largest_at` is not told. relatives[i] gets |r − x| ÷ |x|, −1 of
// what is not compared.
BlockLosses CountLosses(const CountedValues& values, const LossLimits& limits,
                        std::span<double> relatives);

// What values are. The sums are over finite ones, about a pivot that is near the mean where that is
// far from zero: sums about zero would cancel.
struct BlockFacts {
  std::int64_t count = 0;
  std::int64_t nan = 0;
  std::int64_t infinite = 0;
  std::int64_t zero = 0;
  double smallest = 0;                // magnitude other than zero; 0: there is none
  double largest = 0;                 // magnitude
  double squares = 0;                 // Σx²
  double pivot = 0;                   // p
  std::array<double, 4> powers = {};  // Σ(x − p), Σ(x − p)², Σ(x − p)³, Σ(x − p)⁴
};
BlockFacts FactsOf(std::span<const float> values);
BlockFacts FactsOf(std::span<const double> values);

// Finite values lie between them, and so does 0.
struct Extremes {
  double lowest = 0;
  double highest = 0;
};
Extremes ExtremesOf(std::span<const float> values);
Extremes ExtremesOf(std::span<const double> values);
// Makes what is not finite 0.
void ZeroNonFinite(std::span<float> values);

// Codes of which code & mask is from lowest to highest, both included.
struct CodeRange {
  std::uint16_t mask = 0;
  std::uint16_t lowest = 0;
  std::uint16_t highest = 0;

  bool Has(std::uint16_t code) const { return (code & mask) >= lowest && (code & mask) <= highest; }
};
// The first of the codes that is in the range; codes.size() where there is none.
std::size_t FirstOf(std::span<const std::uint16_t> codes, const CodeRange& range);
// The largest finite magnitude; 0 of none.
float LargestMagnitude(std::span<const float> values);

}  // namespace fourpiles
