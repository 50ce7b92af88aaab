#pragma once

// Reading amounts as people type them, in exact decimal arithmetic. All refuse what is negative,
// has more than 18 digits that count, or passes 2^53. `where` names the place in errors,
// "--device"; they are of kind kUsage.

#include <cstdint>
#include <string_view>

#include "base/range.h"
#include "fourpiles/result.h"
#include "fourpiles/units.h"

namespace fourpiles {

// "80GB", "79.65 GiB", "81559MiB", "80G", "4096". kB to PB are powers of 1,000, KiB to PiB powers
// of 1,024; a letter alone is the power of 1,000, as in disk and device names; nothing is bytes.
// The case does not matter. With a unit of a thousand bytes or more, a fraction of a byte is
// rounded to the nearest, ties up; without one it is refused, as "79.65" is a unit forgotten.
Result<Bytes> ParseBytes(std::string_view text, std::string_view where);

// "1.5B", "70b", "350M", "8k", "1T", "1e12", "1500000000": thousands, millions, billions (10^9) and
// trillions (10^12). What is no whole number in `range` is refused.
Result<std::int64_t> ParseCount(std::string_view text, std::string_view where, Range range = {});

// True for text that begins like a count: a digit, or a point and a digit.
bool LooksLikeAmount(std::string_view text);

}  // namespace fourpiles
