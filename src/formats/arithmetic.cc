#include "fourpiles/arithmetic.h"

#include <algorithm>
#include <cmath>

#include "formats/adder.h"

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

double SumSequential(std::span<const double> values, const NumberFormat& format,
                     const Conversion& conversion) {
  Adder adder(format, conversion);
  return SumFromLeft(values, adder);
}

double SumPairwise(std::span<const double> values, const NumberFormat& format,
                   const Conversion& conversion, std::size_t block) {
  Adder adder(format, conversion);
  return SumOfHalves(values, std::max(block, std::size_t{1}), adder);
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
