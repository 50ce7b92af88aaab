#pragma once

// Which updates a number format loses when the weights themselves are kept in it, without a master
// copy of more bits: those that round away, so that the step leaves the weight where it was.

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "audit/format_grid.h"

namespace fourpiles {

// How many steps lost updates need, kept as a histogram so that a median can be taken over all
// tensors: counts up to 255 each, larger ones to 1/128, 2^63 and more together.
class StepHistogram {
 public:
  void Add(double steps);
  void Add(const StepHistogram& other);
  std::int64_t Count() const { return count_; }
  // Half of the counts are not larger; of a bucket its smallest. 0 where there are none.
  double Median() const;

 private:
  static constexpr std::size_t kBuckets = std::size_t{64} * 128;

  std::int64_t count_ = 0;
  std::vector<std::int64_t> buckets_ = {};  // taken when the first is added
};

// Of a tensor, or of all, in one format. w is a weight, q rounding to nearest-even into the format,
// Δw the exact update; q(q(w) + Δw) is rounded once. Elements whose weight or update is NaN or
// infinite are counted and left out of the rest.
//
// A weight that is beyond the format's largest value stays what it became, so its updates are lost,
// whatever they are. One that is subnormal in the format has the spacing of the smallest numbers.
struct UpdateLosses {
  std::int64_t elements = 0;
  std::int64_t not_finite = 0;
  std::int64_t overflowing_weights = 0;   // finite, beyond the largest value of the format
  std::int64_t subnormal_weights = 0;     // become a number with fewer bits than a normal one
  std::int64_t underflowing_weights = 0;  // other than zero, become zero
  std::int64_t nonzero = 0;               // updates other than zero
  std::int64_t lost = 0;                  // of those, q(q(w) + Δw) = q(w)
  double mass = 0;                        // Σ|Δw|
  double lost_mass = 0;                   // of the lost ones
  // With stochastic rounding instead of q: the expected number of nonzero updates that leave the
  // weight where it was in one step, Σ(1 − |Δw| ÷ gap) over those smaller than the gap to the next
  // value; and what all of them move the weights by, expected: Σ|Δw|, but for weights that
  // overflow.
  double stochastic_unmoved = 0;
  double stochastic_mass = 0;
  // Of lost updates of weights that do not overflow: how many equal steps it takes until their sum
  // is one that q does not lose, half the gap to the next value.
  double median_steps = 0;
  double largest_steps = 0;
};

// Of the nonzero updates; 0 where there are none.
double LostShare(const UpdateLosses& losses);
double LostMassShare(const UpdateLosses& losses);
double StochasticUnmovedShare(const UpdateLosses& losses);
double StochasticKeptShare(const UpdateLosses& losses);  // of the mass; 1 where there is none

// The sums over a block of up to 65,536 elements; blocks are merged in their order.
struct UpdateSums {
  UpdateLosses losses = {};  // all but the median
  StepHistogram steps = {};

  void Add(const UpdateSums& next);
  // The losses with their median.
  UpdateLosses Total() const;
};

// Adds the elements of one block. Both spans have the same size.
void AddUpdates(std::span<const double> weights, std::span<const double> updates,
                const FormatGrid& grid, UpdateSums& sums);

}  // namespace fourpiles
