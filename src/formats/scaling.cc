#include "formats/scaling.h"

#include <cmath>

#include "base/check.h"

namespace fourpiles {

Scaling Scale(const TypedNumber& input, const TypedNumber& scale, const NumberFormat& format,
              Overflow overflow) {
  CHECK(input.finite && scale.finite && !scale.exact.IsZero());
  Scaling scaling;
  scaling.encoded = Encode(RealOf(input.exact * scale.exact), format, overflow);
  scaling.stored = Decode(scaling.encoded.code, format);
  scaling.value = scaling.stored / scale.nearest;
  const double difference = std::abs(scaling.value - input.nearest);
  scaling.relative_error = difference == 0 ? 0 : difference / std::abs(input.nearest);
  return scaling;
}

}  // namespace fourpiles
