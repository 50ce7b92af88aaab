#pragma once

// The stalled update: a small number added again and again to a large one, in a format. Once the
// sum has grown so far that the addend is below half of its last place, it no longer moves.

#include <cstdint>
#include <optional>

#include "formats/typed_number.h"

namespace fourpiles {

struct Accumulation {
  double value = 0;  // after all steps, in the format
  std::optional<std::int64_t> first_stalled_step =
      {};  // the first step, from 1, that moved nothing
};

struct AccumulationJob {
  TypedNumber start;
  TypedNumber add;
  std::int64_t times = 0;  // at least 0
};

// Rounds start and addend to `format`, adds `times` times with one nearest-even rounding each
// (overflow: ieee). Work grows with the number of binades crossed, not with `times`.
Accumulation Accumulate(const AccumulationJob& job, const NumberFormat& format);

// The same with the sum kept in `master`, and read in `format` at the end: mixed precision training
// with a master copy (Micikevicius et al. 2018, arXiv 1710.03740, 3.1).
Accumulation AccumulateWithMaster(const AccumulationJob& job, const NumberFormat& format,
                                  const NumberFormat& master);

// The addend as a sum in `format` adds it; 0 where it is too small for the format, whatever the
// sum is.
double AddendIn(const NumberFormat& format, const AccumulationJob& job);

// start + add × times, in exact decimal arithmetic on the numbers as typed.
Decimal ExactSum(const AccumulationJob& job);

}  // namespace fourpiles
