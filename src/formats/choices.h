#pragma once

// All that a conversion may be told, to walk over: the command line reads names by these, tests try
// each.

#include "fourpiles/number_format.h"

namespace fourpiles {

inline constexpr RoundingMode kRoundingModes[] = {
    RoundingMode::kNearestEven, RoundingMode::kNearestAway, RoundingMode::kTowardZero,
    RoundingMode::kUp,          RoundingMode::kDown,        RoundingMode::kToOdd,
    RoundingMode::kStochastic,
};

inline constexpr Overflow kOverflows[] = {Overflow::kIeee, Overflow::kSaturate, Overflow::kNan};

inline constexpr Subnormals kSubnormals[] = {
    Subnormals::kKept,
    Subnormals::kFlushedOnInput,
    Subnormals::kFlushedOnOutput,
};

}  // namespace fourpiles
