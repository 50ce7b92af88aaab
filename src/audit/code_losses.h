#pragma once

// Tensors of at most 16 bits an element have so few different values that counting each code tells
// all there is to know: every format is then answered from the counts, exactly.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "audit/format_way.h"
#include "audit/losses.h"
#include "audit/running_totals.h"
#include "kernels/code_counts.h"
#include "kernels/losses.h"

namespace fourpiles {

// A code that occurs.
struct CountedCode {
  std::uint32_t code = 0;
  double value = 0;
  std::int64_t count = 0;
};

// The value of every code of a format of at most 16 bits.
std::vector<double> ValuesOfCodes(const NumberFormat& format);

// The codes that occur, ascending. `values` has one entry a code.
std::vector<CountedCode> CountedCodes(const CodeCounts& counts, std::span<const double> values);

// Those of finite values of a format with a sign, by magnitude: the codes are those of positive
// values. Formats with a sign lose the same of a value whatever its sign.
std::vector<CountedCode> WithoutSigns(std::span<const CountedCode> codes,
                                      const NumberFormat& format);

RunningFacts FactsOf(std::span<const CountedCode> codes);

// What values become: multiplied by the scale, rounded once to nearest-even, divided by it.
std::vector<double> RoundedValues(std::span<const double> values, const FormatWay& way);

// The losses of a format, by what each of the codes becomes; `largest_at` is not known. `relatives`
// gets the relative error of each code, −1 where none is compared; the histogram is empty and gets
// them too.
Losses LossesOf(const CountedValues& values, const LossLimits& limits, std::span<double> relatives,
                ErrorHistogram& histogram);

}  // namespace fourpiles
