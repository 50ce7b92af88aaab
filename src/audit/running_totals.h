#pragma once

// Wholes out of parts, merged in order: what values are, and what they lose.

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "audit/losses.h"
#include "kernels/losses.h"

namespace fourpiles {

// What the values of several parts are together. Moments are merged about their means (Pébay,
// SAND2008-6212, eqs. 2.1, 3.1). Those of a block come from its power sums about a pivot near
// the mean; where rounding hides the fourth, the kurtosis is not known.
class RunningFacts {
 public:
  RunningFacts() = default;
  // Of counts and magnitudes, and of the moments of n finite values: Σ (x − mean)², ³, ⁴.
  struct Moments {
    double n = 0;
    double mean = 0;
    double m2 = 0;
    double m3 = 0;
    double m4 = 0;
    double m4_error = 0;  // what rounding may have made of m4
  };
  RunningFacts(const ValueFacts& counted, const Moments& moments)
      : counted_(counted), moments_(moments) {}
  explicit RunningFacts(const BlockFacts& block);
  void Add(const RunningFacts& next);
  ValueFacts Facts() const;

 private:
  ValueFacts counted_;  // but for the moments
  Moments moments_;
};

// Relative errors of all tensors together, format by format.
class ErrorTotals {
 public:
  explicit ErrorTotals(std::size_t formats) : errors_(formats) {}

  // Each so many times. Any threads.
  void Add(std::size_t format, const ErrorHistogram& errors, std::uint64_t times = 1) {
    const std::lock_guard lock(mutex_);
    errors_[format].Add(errors, times);
  }
  // When all are added.
  const ErrorHistogram& Of(std::size_t format) const { return errors_[format]; }

 private:
  std::mutex mutex_;
  std::vector<ErrorHistogram> errors_;
};

// The 0.99 quantile of errors that `losses` sums up, at most its largest. Nothing where no element
// was compared.
std::optional<double> RelativeErrorP99(const ErrorHistogram& errors, const Losses& losses);

// A block's losses as those of a whole, of which its first element is element `first`. Without the
// quantile.
Losses LossesOf(const BlockLosses& block, std::int64_t first);
// Adds what comes behind. The quantile stays.
void Add(const Losses& next, Losses& whole);

}  // namespace fourpiles
