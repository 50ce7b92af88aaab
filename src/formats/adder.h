#pragma once

// The single operations that sums in a number format (fourpiles/arithmetic.h) are made of.

#include <cstdint>

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

// One step of Kahan's summation: the correction is what the last rounding put in too much, taken
// off the next value first. With equal values it is the optimizer of Zamirai et al. 2020, arXiv
// 2010.06192, algorithm 3.
CompensatedSum KahanStep(const CompensatedSum& so_far, double value, Adder& adder);

}  // namespace fourpiles
