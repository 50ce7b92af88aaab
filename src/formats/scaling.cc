#include "formats/scaling.h"

#include <cmath>

#include "base/check.h"

namespace fourpiles {
namespace {

// stored ÷ scale. Zero and infinity stay what they are, even where the nearest double of the scale
// is one of them too.
double Unscaled(double stored, double scale) {
  const bool stays = stored == 0 || std::isinf(stored);
  return stays ? (std::signbit(scale) ? -stored : stored) : stored / scale;
}

}  // namespace

Scaling Scale(const TypedNumber& input, const TypedNumber& scale, const NumberFormat& format,
              Overflow overflow) {
  CHECK(input.finite && scale.finite && !scale.exact.IsZero());
  Scaling scaling;
  const Decimal scaled = input.exact * scale.exact;
  scaling.encoded = Encode(RealOf(scaled), format, overflow);
  scaling.stored = Decode(scaling.encoded.code, format);
  scaling.value = Unscaled(scaling.stored, scale.nearest);
  // Both divided by the scale are value and input, which may lie past the doubles.
  scaling.relative_error = RelativeError(scaling.stored, scaled);
  return scaling;
}

}  // namespace fourpiles
