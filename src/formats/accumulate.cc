#include "formats/accumulate.h"

#include <algorithm>
#include <cmath>

#include "formats/adder.h"

namespace fourpiles {
namespace {

double RoundedSum(double a, double b, const NumberFormat& format) {
  return Adder(format).Add(a, b);
}

// How many steps of `delta` surely keep the sum between the same two powers of two, where the
// format's values are evenly spaced. The subnormals are a binade of their own that begins at zero.
std::int64_t StepsWithinBinade(double sum, double delta, const NumberFormat& format) {
  const double magnitude = std::abs(sum);
  const double lowest = SmallestNormal(format);
  const bool below = magnitude < lowest;
  const double bottom = below ? 0.0 : std::ldexp(1.0, std::ilogb(magnitude));
  const double above_bottom = magnitude - bottom;
  const bool grows = std::signbit(sum) == std::signbit(delta);
  // Some formats end several steps before the next power of two.
  const double width = std::min(below ? lowest : bottom, Largest(format) - bottom);
  const double room = grows ? width - above_bottom : above_bottom;
  // The quotient is rounded and the last step may land in the next binade: stay two short of it.
  return static_cast<std::int64_t>(std::max(0.0, std::floor(room / std::abs(delta)) - 2.0));
}

// How many of the following steps are surely alike, and how far each moves.
struct Stride {
  std::int64_t steps = 0;
  double delta = 0;
};

// Within a binade a step depends on the sum only where the addend ends on half of the last place: a
// tie makes the sum even, and from there every tie goes the same way. So two equal steps are
// followed by equal ones.
Stride StrideFrom(double sum, double addend, const NumberFormat& format) {
  const double second = RoundedSum(sum, addend, format);
  const double delta = second - sum;
  if (!std::isfinite(delta) || delta == 0.0) {
    return {};
  }
  const bool alike = RoundedSum(second, addend, format) - second == delta;
  return alike ? Stride{StepsWithinBinade(sum, delta, format), delta} : Stride{};
}

}  // namespace

Accumulation Accumulate(const AccumulationJob& job, const NumberFormat& format) {
  const double addend = AddendIn(format, job);
  double sum = Round(job.start, format);
  std::int64_t done = 0;
  std::optional<std::int64_t> stalled;
  while (done < job.times && !stalled && !std::isnan(sum)) {
    const double next = RoundedSum(sum, addend, format);
    ++done;
    if (next == sum) {
      stalled = done;
    }
    sum = next;
    const Stride stride = StrideFrom(sum, addend, format);
    if (stride.steps > 0) {  // adding nothing would turn −0 into 0
      const std::int64_t skipped = std::min(job.times - done, stride.steps);
      sum += static_cast<double>(skipped) * stride.delta;
      done += skipped;
    }
  }
  return {.value = sum, .first_stalled_step = stalled};
}

Accumulation AccumulateWithMaster(const AccumulationJob& job, const NumberFormat& format,
                                  const NumberFormat& master) {
  Accumulation accumulation = Accumulate(job, master);
  accumulation.value = Round(accumulation.value, format);
  return accumulation;
}

double AddendIn(const NumberFormat& format, const AccumulationJob& job) {
  return Round(job.add, format);
}

Decimal ExactSum(const AccumulationJob& job) {
  return job.start.exact + job.add.exact * Decimal(job.times);
}

}  // namespace fourpiles
