#include "audit/update_losses.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.h"

namespace fourpiles {
namespace {

constexpr int kDetailBits = 7;  // of a count beyond its leading bit
constexpr double kMostSteps = 0x1p63;

double Share(double part, double whole, double of_nothing = 0) {
  return whole > 0 ? part / whole : of_nothing;
}

// Counts below 256 are their own bucket; beyond, each binade has 128.
std::size_t BucketOf(double steps) {
  const auto count = steps < kMostSteps ? static_cast<std::uint64_t>(steps) : ~std::uint64_t{0};
  const int more = std::max(0, static_cast<int>(std::bit_width(count)) - 1 - kDetailBits);
  return (static_cast<std::size_t>(more) << kDetailBits) + static_cast<std::size_t>(count >> more);
}

double SmallestOf(std::size_t bucket) {
  const std::size_t more = bucket < 256 ? 0 : (bucket >> kDetailBits) - 1;
  const std::size_t leading = bucket - (more << kDetailBits);
  return std::ldexp(static_cast<double>(leading), static_cast<int>(more));
}

// The gap that an update has to cross, and how many steps of its size it takes until q does not
// lose their sum. Half the gap is a tie, which goes to the even value of the two.
double StepsToCross(double weight, double update, double gap, const FormatGrid& grid) {
  const double half = gap / 2;
  const double size = std::abs(update);
  const double steps = std::ceil(half / size);
  const bool is_tie = steps * size == half;
  const bool stays = grid.Round(weight + std::copysign(half, update)) == weight;
  return is_tie && stays ? steps + 1 : steps;
}

void CountWeight(double weight, double rounded, const FormatGrid& grid, UpdateLosses& losses) {
  if (std::isinf(rounded)) {
    ++losses.overflowing_weights;
  } else if (rounded == 0) {
    losses.underflowing_weights += weight != 0 ? 1 : 0;
  } else if (std::abs(rounded) < grid.SmallestNormal()) {
    ++losses.subnormal_weights;
  }
}

void AddLost(double rounded, double update, double gap, const FormatGrid& grid, UpdateSums& sums) {
  ++sums.losses.lost;
  sums.losses.lost_mass += std::abs(update);
  if (!std::isinf(rounded)) {
    const double steps = StepsToCross(rounded, update, gap, grid);
    sums.steps.Add(steps);
    sums.losses.largest_steps = std::max(sums.losses.largest_steps, steps);
  }
}

void AddUpdate(double weight, double update, const FormatGrid& grid, UpdateSums& sums) {
  UpdateLosses& losses = sums.losses;
  ++losses.elements;
  if (!std::isfinite(weight) || !std::isfinite(update)) {
    ++losses.not_finite;
    return;
  }
  const double rounded = grid.Round(weight);
  CountWeight(weight, rounded, grid, losses);
  if (update == 0) {
    return;
  }
  const double size = std::abs(update);
  ++losses.nonzero;
  losses.mass += size;
  if (std::isinf(rounded)) {
    losses.stochastic_unmoved += 1;
    return AddLost(rounded, update, 0, grid, sums);
  }
  const bool is_outward = rounded == 0 || (rounded > 0) == (update > 0);
  const double gap = is_outward ? grid.GapOutward(rounded) : grid.GapInward(rounded);
  losses.stochastic_mass += size;
  losses.stochastic_unmoved += size < gap ? 1 - size / gap : 0;
  if (grid.Round(rounded + update) == rounded) {
    AddLost(rounded, update, gap, grid, sums);
  }
}

}  // namespace

void StepHistogram::Add(double steps) {
  buckets_.resize(kBuckets);
  ++buckets_[std::min(BucketOf(steps), kBuckets - 1)];
  ++count_;
}

void StepHistogram::Add(const StepHistogram& other) {
  buckets_.resize(std::max(buckets_.size(), other.buckets_.size()));
  for (std::size_t i = 0; i < other.buckets_.size(); ++i) {
    buckets_[i] += other.buckets_[i];
  }
  count_ += other.count_;
}

double StepHistogram::Median() const {
  std::int64_t below = 0;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    below += buckets_[i];
    if (below > 0 && below >= count_ - below) {
      return SmallestOf(i);
    }
  }
  return 0;
}

double LostShare(const UpdateLosses& losses) {
  return Share(static_cast<double>(losses.lost), static_cast<double>(losses.nonzero));
}

double LostMassShare(const UpdateLosses& losses) {
  return Share(losses.lost_mass, losses.mass);
}

double StochasticUnmovedShare(const UpdateLosses& losses) {
  return Share(losses.stochastic_unmoved, static_cast<double>(losses.nonzero));
}

double StochasticKeptShare(const UpdateLosses& losses) {
  return Share(losses.stochastic_mass, losses.mass, 1);
}

void UpdateSums::Add(const UpdateSums& next) {
  UpdateLosses& sum = losses;
  const UpdateLosses& part = next.losses;
  sum.elements += part.elements;
  sum.not_finite += part.not_finite;
  sum.overflowing_weights += part.overflowing_weights;
  sum.subnormal_weights += part.subnormal_weights;
  sum.underflowing_weights += part.underflowing_weights;
  sum.nonzero += part.nonzero;
  sum.lost += part.lost;
  sum.mass += part.mass;
  sum.lost_mass += part.lost_mass;
  sum.stochastic_unmoved += part.stochastic_unmoved;
  sum.stochastic_mass += part.stochastic_mass;
  sum.largest_steps = std::max(sum.largest_steps, part.largest_steps);
  steps.Add(next.steps);
}

UpdateLosses UpdateSums::Total() const {
  UpdateLosses total = losses;
  total.median_steps = steps.Median();
  return total;
}

void AddUpdates(std::span<const double> weights, std::span<const double> updates,
                const FormatGrid& grid, UpdateSums& sums) {
  CHECK(weights.size() == updates.size());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    AddUpdate(weights[i], updates[i], grid, sums);
  }
}

}  // namespace fourpiles
