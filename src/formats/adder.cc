#include "formats/adder.h"

#include <cmath>

#include "formats/real.h"

namespace fourpiles {

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

}  // namespace fourpiles
