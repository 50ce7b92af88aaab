#pragma once

// What a tensor's values are, and what a format would lose of them: the figures that an audit
// reports. Each is a sum or a count that a larger whole can be made of.

#include <cstdint>
#include <optional>

namespace fourpiles {

// Of the values of a tensor as they are stored. NaN and infinities are counted and left out of all
// that follows them here.
struct ValueFacts {
  std::int64_t count = 0;
  std::int64_t nan = 0;
  std::int64_t infinite = 0;
  std::int64_t zero = 0;
  double smallest = 0;  // magnitude, other than zero; 0: there is none
  double largest = 0;   // magnitude
  double mean = 0;
  // Of the population: √(Σ(x − mean)² ÷ n); infinite where a square is.
  double deviation = 0;
  // Σ(x − mean)⁴ ÷ n ÷ deviation⁴: 3 of a normal distribution. Nothing where all are alike, or
  // rounding hides it.
  std::optional<double> kurtosis = {};
  double sum_of_squares = 0;
};

// How many binades lie between the smallest and the largest: 1 + ⌊log2 largest⌋ − ⌊log2 smallest⌋;
// 0 where there is nothing but zeros.
int RangeInBinades(const ValueFacts& facts);

// Of a tensor of two or more dimensions: its slices along the first, which a scale a channel is
// for.
struct ChannelFacts {
  std::int64_t channels = 0;
  double median = 0;   // of the channels' largest magnitudes
  double largest = 0;  // of them
  std::int64_t largest_channel = 0;
  std::int64_t outliers = 0;  // channels whose largest is more than kOutlierRatio × the median
};
// An int8 scale of the whole tensor leaves the median channel 127 ÷ 20, six steps a side.
inline constexpr double kOutlierRatio = 20;

// What a format loses: x the values, r what they become. Counts are of finite x; the sums are over
// elements that are finite before and after.
struct Losses {
  std::int64_t overflow = 0;   // round past the largest value, were there more of them
  std::int64_t saturated = 0;  // are larger than the largest value
  std::int64_t underflow = 0;  // other than zero, become zero
  std::int64_t subnormal = 0;  // become a number with fewer bits than a normal one
  std::int64_t changed = 0;    // r ≠ x
  double squared_values = 0;   // Σ x²
  double squared_errors = 0;   // Σ (r − x)²
  double error_products = 0;   // Σ x·(r − x)
  double relative_errors = 0;  // Σ |r − x| ÷ |x|
  std::int64_t compared = 0;   // the elements of that sum: x ≠ 0
  double largest_relative_error = 0;
  std::int64_t largest_at = -1;  // the first element that has it, counted row by row; -1: none
  // 99 of 100 compared elements have no larger one. Exact of values of at most 16 bits; of others
  // up to 1/128 too large, and of tensors above 2^18 elements that of a part of them. Nothing where
  // no element was compared.
  std::optional<double> relative_error_p99 = {};
};

// Whether a value other than zero was compared: else there is no ratio to tell of.
inline bool HasSignal(const Losses& losses) {
  return losses.squared_values > 0;
}

// 10 × log10(Σx² ÷ Σ(r − x)²) in dB; infinity where nothing is lost, NaN where
// all that changed is no longer finite.
double SignalToNoise(const Losses& losses);
// Σx·r ÷ √(Σx² × Σr²); 1 where nothing is lost, 0 where all of it is.
double Cosine(const Losses& losses);
// 0 where no element was compared.
double MeanRelativeError(const Losses& losses);

// The scales of a block format.
struct ScaleFacts {
  std::int64_t scales = 0;
  std::int64_t zero = 0;         // of blocks that are lost as a whole, or were zeros
  std::int64_t lost_blocks = 0;  // all values became zero, and not all were
  double smallest = 0;           // other than zero
  double largest = 0;
};

}  // namespace fourpiles
