#include "formats/arithmetic.h"

#include <cmath>

#include "base/check.h"
#include "formats/real.h"

namespace fourpiles {
namespace {

double SumFromLeft(std::span<const double> values, Adder& adder) {
  double sum = values.empty() ? 0 : values.front();
  for (const double value : values.subspan(values.empty() ? 0 : 1)) {
    sum = adder.Add(sum, value);
  }
  return sum;
}

double SumOfHalves(std::span<const double> values, std::size_t block, Adder& adder) {
  if (values.size() <= block) {
    return SumFromLeft(values, adder);
  }
  const std::size_t half = values.size() / 2;
  const double first = SumOfHalves(values.first(half), block, adder);
  return adder.Add(first, SumOfHalves(values.subspan(half), block, adder));
}

}  // namespace

// Encode knows the subnormals of float64; those of the format are flushed here.
double Adder::Operand(double value) const {
  return conversion_.subnormals == Subnormals::kFlushedOnInput ? FlushSubnormal(value, format_)
                                                               : value;
}

double Adder::Add(double a, double b) {
  if (!std::isfinite(a) || !std::isfinite(b)) {
    return Rounded(a + b);
  }
  const Real sum = Sum(Operand(a), Operand(b));
  Conversion conversion = conversion_;
  if (conversion.subnormals == Subnormals::kFlushedOnInput) {
    conversion.subnormals = Subnormals::kKept;  // the sum is a result
  }
  return Decode(Encode(sum, format_, conversion, operations_++).code, format_);
}

CompensatedSum KahanStep(const CompensatedSum& so_far, double value, Adder& adder) {
  const double corrected = adder.Subtract(value, so_far.correction);
  const double sum = adder.Add(so_far.sum, corrected);
  const double moved = adder.Subtract(sum, so_far.sum);
  return {sum, adder.Subtract(moved, corrected)};
}

double SumSequential(std::span<const double> values, const NumberFormat& format,
                     const Conversion& conversion) {
  Adder adder(format, conversion);
  return SumFromLeft(values, adder);
}

double SumPairwise(std::span<const double> values, const NumberFormat& format,
                   const Conversion& conversion, std::size_t block) {
  CHECK(block > 0);
  Adder adder(format, conversion);
  return SumOfHalves(values, block, adder);
}

double SumKahan(std::span<const double> values, const NumberFormat& format,
                const Conversion& conversion) {
  if (values.empty()) {
    return 0;
  }
  Adder adder(format, conversion);
  CompensatedSum sum = {.sum = values.front()};
  for (const double value : values.subspan(1)) {
    sum = KahanStep(sum, value, adder);
  }
  return sum.sum;
}

double SumNeumaier(std::span<const double> values, const NumberFormat& format,
                   const Conversion& conversion) {
  if (values.empty()) {
    return 0;
  }
  Adder adder(format, conversion);
  CompensatedSum so_far = {.sum = values.front()};
  for (const double value : values.subspan(1)) {
    const double sum = adder.Add(so_far.sum, value);
    const bool value_is_smaller = std::abs(so_far.sum) >= std::abs(value);
    const double larger = value_is_smaller ? so_far.sum : value;
    const double smaller = value_is_smaller ? value : so_far.sum;
    const double lost = adder.Add(adder.Subtract(larger, sum), smaller);
    so_far = {sum, adder.Add(so_far.correction, lost)};
  }
  return adder.Add(so_far.sum, so_far.correction);
}

}  // namespace fourpiles
