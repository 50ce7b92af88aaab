#pragma once

// The values of a number format as a grid, for loops over float64 in which Encode would be too
// slow: the same rounding, nearest-even, in a few integer operations.

#include <string_view>

#include "fourpiles/formats.h"

namespace fourpiles {

class FormatGrid {
 public:
  // Error (kUsage): a format without sign, fraction or subnormals, or of 11 exponent bits.
  static Result<FormatGrid> Of(const NumberFormat& format, std::string_view where = "format");

  const NumberFormat& Format() const { return format_; }
  // The value of the format nearest to a finite one, ties to even; infinity beyond the largest,
  // whether the format has it or not. The sign of zero is kept.
  double Round(double value) const;
  // From a value of the format, not infinite, to the next one towards larger magnitudes, or smaller
  // ones. From zero both are the smallest positive value. Beyond the largest value the grid goes
  // on.
  double GapOutward(double value) const;
  double GapInward(double value) const;
  double SmallestNormal() const { return smallest_normal_; }

 private:
  explicit FormatGrid(const NumberFormat& format);

  NumberFormat format_;
  int cut_;              // fraction bits of float64 that a normal value has not
  int lowest_exponent_;  // of normal values, biased as in float64
  double largest_;
  double smallest_normal_;
  double smallest_;
};

}  // namespace fourpiles
