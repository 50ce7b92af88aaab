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

// The codes that occur, ascending. `counts` and `values` have one entry a code.
std::vector<CountedCode> CountedCodes(std::span<const std::uint64_t> counts,
                                      std::span<const double> values);

RunningFacts FactsOf(std::span<const CountedCode> codes);

// What values become: multiplied by the scale, rounded once to nearest-even, divided by it.
std::vector<double> RoundedValues(std::span<const double> values, const FormatWay& way);

// … of the codes that occur, by code; others stay 0.
std::vector<double> RoundedCodes(std::span<const CountedCode> codes, const FormatWay& way);

// The losses of a format, by what each code becomes. `largest_at` is not known: see WorstCodes.
// The histogram is empty and gets the relative errors.
Losses LossesOf(std::span<const CountedCode> codes, std::span<const double> rounded,
                const LossLimits& limits, ErrorHistogram& histogram);

// Which codes have the relative error `largest`, which is not 0.
std::vector<std::uint16_t> WorstCodes(std::span<const CountedCode> codes,
                                      std::span<const double> rounded, double largest);

}  // namespace fourpiles
