#include "audit/format_way.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "formats/codes.h"
#include "fourpiles/formats.h"

namespace fourpiles {

LossLimits LimitsOf(const NumberFormat& format) {
  const double largest = Decode(LargestCode(format), format);
  LossLimits limits = {.largest = largest,
                       .smallest_normal = Decode(SmallestNormalCode(format), format)};
  const int last_place = HighestExponent(format) - format.fraction_bits;
  const double halfway = largest + std::ldexp(0.5, last_place);
  if (std::isfinite(halfway)) {  // else every finite double rounds to a finite value
    const bool beyond =
        Encode(halfway, format, Overflow::kSaturate).status == RoundingStatus::kSaturated;
    limits.beyond = beyond ? halfway : std::nextafter(halfway, INFINITY);
  }
  return limits;
}

FormatWay WayOf(const AuditFormat& format, Overflow overflow, double largest) {
  const auto& record = std::get<NumberFormat>(format.format);
  FormatWay way = {.format = record, .overflow = overflow, .limits = LimitsOf(record)};
  if (format.scaled && largest > 0) {
    way.scale = std::min(way.limits.largest / largest, std::numeric_limits<double>::max());
    way.limits = {.smallest_normal = way.limits.smallest_normal / way.scale};
  }
  return way;
}

}  // namespace fourpiles
