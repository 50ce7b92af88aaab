#pragma once

// Printing amounts. The unit always stands behind the number.

#include <string>

#include "fourpiles/units.h"

namespace fourpiles {

enum class ByteUnit { kGib, kGb };

// "79.65 GiB" or "85.52 GB". Amounts below a tenth of that print in the largest smaller unit that
// gives at least 1: "51.2 MiB", "512 bytes". Negative amounts keep their sign.
std::string PrintBytes(Bytes bytes, ByteUnit unit = ByteUnit::kGib);

// "8,030,261,248".
std::string PrintGrouped(std::int64_t value);

// "8.03 B", "350 M", "4096": three digits of a count from a million on.
std::string PrintCount(std::int64_t count);

}  // namespace fourpiles
