#pragma once

// Sums in a number format, as if a processor had no other: every operation is exact and then
// rounded once into the format. Values are doubles that the format has; any format of up to 53
// significant bits, float64 itself too. Nothing here depends on the processor's rounding mode or on
// whether it flushes subnormals.

#include <cstddef>
#include <cstdint>
#include <span>

#include "fourpiles/number_format.h"

namespace fourpiles {

// One that adds in a format and counts its operations: the next one is rounded by the next element
// of the conversion's random bits, from 0.
class Adder {
 public:
  explicit Adder(const NumberFormat& format, const Conversion& conversion = {})
      : format_(format), conversion_(conversion) {}

  // a + b and a − b, each rounded once. As in IEEE 754, infinities add up and opposite ones are
  // NaN; unlike there, an exact zero of two opposite values is +0 in every rounding mode.
  double Add(double a, double b);
  double Subtract(double a, double b) { return Add(a, -b); }
  // The result of any other operation, which a double holds exactly.
  double Rounded(double exact) { return Round(exact, format_, conversion_, operations_++); }

 private:
  double Operand(double value) const;

  NumberFormat format_;
  Conversion conversion_;
  std::uint64_t operations_ = 0;
};

// A sum and the correction that is carried along with it.
struct CompensatedSum {
  double sum = 0;
  double correction = 0;
};

// One step of Kahan's summation (1965, "Further remarks on reducing truncation errors", CACM 8(1)):
// the correction is what the last rounding put in too much, taken off the next value first. With
// equal values it is the optimizer of Zamirai et al. 2020, arXiv 2010.06192, algorithm 3.
CompensatedSum KahanStep(const CompensatedSum& so_far, double value, Adder& adder);

// The sum of no values is 0, of one that value.
// From left to right: n − 1 roundings one after the other.
double SumSequential(std::span<const double> values, const NumberFormat& format,
                     const Conversion& conversion = {});

// The sum of the first half (the shorter one) plus that of the second, down to blocks of up to
// `block` values, at least 1, which are added from left to right. No value passes through more than
// log2(n) + block roundings (Higham 2002, "Accuracy and stability of numerical algorithms", 4.2).
// NumPy's add.reduce is this tree with halves cut at a multiple of 8 and, below 128 values, eight
// sums side by side.
double SumPairwise(std::span<const double> values, const NumberFormat& format,
                   const Conversion& conversion = {}, std::size_t block = 1);

// Kahan's summation: four roundings a value, and an error that does not grow with the number of
// values until n × 2^-precision nears 1.
double SumKahan(std::span<const double> values, const NumberFormat& format,
                const Conversion& conversion = {});

// Neumaier's variant (1974, ZAMM 54): the error of each addition is taken from the larger of the
// two, gathered apart, and added at the end; so a value larger than the sum so far is no harm.
double SumNeumaier(std::span<const double> values, const NumberFormat& format,
                   const Conversion& conversion = {});

}  // namespace fourpiles
