// What float64 values lose that occur so many times each, a vector at a time.

#include <cstring>
#include <limits>

#include "kernels/loss_tasks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/counted_loss_kernels.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/sums-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fourpiles::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR  // not called: see HasVectors
BlockLosses CountCountedLosses(const CountedValues& /*values*/, const LossLimits& /*limits*/,
                               std::span<double> /*relatives*/) {
  return {};
}
#else

// Each in float64: counts too, which are exact.
struct CountedSums {
  DoubleSums overflow;
  DoubleSums saturated;
  DoubleSums underflow;
  DoubleSums subnormal;
  DoubleSums changed;
  DoubleSums compared;
  DoubleSums squares;
  DoubleSums errors;
  DoubleSums products;
  DoubleSums relatives;
  DoubleVector largest;  // relative error
};

struct CountedArrays {
  const double* values;
  const double* rounded;
  const double* counts;
  double* relatives;

  CountedArrays From(std::size_t i) const {
    return {values + i, rounded + i, counts + i, relatives + i};
  }
};

HWY_INLINE void AddCounted(const CountedArrays& at, std::size_t part, const LossLimits& limits,
                           CountedSums& sums) {
  const Doubles d;
  const auto infinity = hn::Set(d, std::numeric_limits<double>::infinity());
  const DoubleVector zero = hn::Zero(d);
  const DoubleVector before = hn::LoadU(d, at.values);
  const DoubleVector after = hn::LoadU(d, at.rounded);
  const DoubleVector magnitude = hn::Abs(before);
  const DoubleVector size = hn::Abs(after);
  const auto was_finite = hn::Lt(magnitude, infinity);
  const auto is_finite = hn::Lt(size, infinity);
  const auto both = hn::And(was_finite, is_finite);
  const DoubleVector times = hn::IfThenElseZero(was_finite, hn::LoadU(d, at.counts));
  const auto add = [part](DoubleSums& sum, DoubleVector term) {
    sum[part] = hn::Add(sum[part], term);
  };
  const auto count = [&](DoubleSums& sum, auto holds) {
    add(sum, hn::IfThenElseZero(holds, times));
  };
  const auto was_zero = hn::Eq(before, zero);
  const auto is_zero = hn::Eq(after, zero);
  count(sums.overflow, hn::Or(hn::Ge(magnitude, hn::Set(d, limits.beyond)), hn::Not(is_finite)));
  count(sums.saturated, hn::Gt(magnitude, hn::Set(d, limits.largest)));
  count(sums.underflow, hn::AndNot(was_zero, is_zero));
  count(sums.subnormal, hn::AndNot(is_zero, hn::Lt(size, hn::Set(d, limits.smallest_normal))));
  count(sums.changed, hn::Not(hn::Eq(before, after)));
  const auto compared = hn::AndNot(was_zero, both);
  count(sums.compared, compared);
  const DoubleVector x = hn::IfThenElseZero(both, before);
  const DoubleVector error = hn::Sub(hn::IfThenElseZero(both, after), x);
  const DoubleVector divisor = hn::IfThenElse(compared, magnitude, hn::Set(d, 1));
  const DoubleVector relative = hn::IfThenElseZero(compared, hn::Div(hn::Abs(error), divisor));
  add(sums.squares, hn::Mul(times, hn::Mul(x, x)));
  add(sums.errors, hn::Mul(times, hn::Mul(error, error)));
  add(sums.products, hn::Mul(times, hn::Mul(x, error)));
  add(sums.relatives, hn::Mul(times, relative));
  sums.largest = hn::Max(sums.largest, relative);
  hn::StoreU(hn::IfThenElse(compared, relative, hn::Set(d, -1)), d, at.relatives);
}

// kPartialSums values.
HWY_INLINE void AddCountedGroup(const CountedArrays& at, const LossLimits& limits,
                                CountedSums& sums) {
  for (std::size_t part = 0; part < kSumVectors; ++part) {
    AddCounted(at.From(part * kDoubles), part, limits, sums);
  }
}

BlockLosses LossesOf(const CountedSums& sums) {
  const auto count = [](const DoubleSums& sum) { return static_cast<std::int64_t>(Total(sum)); };
  return {.overflow = count(sums.overflow),
          .saturated = count(sums.saturated),
          .underflow = count(sums.underflow),
          .subnormal = count(sums.subnormal),
          .changed = count(sums.changed),
          .compared = count(sums.compared),
          .squared_values = Total(sums.squares),
          .squared_errors = Total(sums.errors),
          .error_products = Total(sums.products),
          .relative_errors = Total(sums.relatives),
          .largest_relative_error = hn::GetLane(hn::MaxOfLanes(Doubles(), sums.largest))};
}

BlockLosses CountCountedLosses(const CountedValues& values, const LossLimits& limits,
                               std::span<double> relatives) {
  CountedSums sums;
  for (DoubleSums* const sum :
       {&sums.overflow, &sums.saturated, &sums.underflow, &sums.subnormal, &sums.changed,
        &sums.compared, &sums.squares, &sums.errors, &sums.products, &sums.relatives}) {
    Clear(*sum);
  }
  sums.largest = hn::Zero(Doubles());
  const CountedArrays at = {values.values.data(), values.rounded.data(), values.counts.data(),
                            relatives.data()};
  const std::size_t count = values.values.size();
  std::size_t i = 0;
  for (; i + kPartialSums <= count; i += kPartialSums) {
    AddCountedGroup(at.From(i), limits, sums);
  }
  if (i < count) {
    double rest[4][kPartialSums] = {};  // zeros that occur 0 times
    const std::size_t bytes = (count - i) * sizeof(double);
    std::memcpy(rest[0], at.values + i, bytes);
    std::memcpy(rest[1], at.rounded + i, bytes);
    std::memcpy(rest[2], at.counts + i, bytes);
    AddCountedGroup({rest[0], rest[1], rest[2], rest[3]}, limits, sums);
    std::memcpy(at.relatives + i, rest[3], bytes);
  }
  return LossesOf(sums);
}

#endif  // HWY_SCALAR

}  // namespace fourpiles::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fourpiles {
HWY_EXPORT(CountCountedLosses);

BlockLosses CountCountedLosses(const CountedValues& values, const LossLimits& limits,
                               std::span<double> relatives) {
  return HWY_DYNAMIC_DISPATCH(CountCountedLosses)(values, limits, relatives);
}
}  // namespace fourpiles
#endif
