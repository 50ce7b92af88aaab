#include "formats/rounding.h"

#include <cmath>

#include "formats/codes.h"

namespace fourpiles {
namespace {

// The value one code further from zero; nothing past the last.
std::optional<double> Outward(std::uint64_t magnitude, const NumberFormat& format) {
  const double next = Decode(magnitude + 1, format);
  const bool last = magnitude >= LargestCode(format);
  if (last && !(HasInfinity(format) && std::isinf(next))) {
    return std::nullopt;
  }
  return next;
}

std::optional<double> Negated(std::optional<double> value) {
  return value ? std::optional(-*value) : std::nullopt;
}

// |a| ÷ b, moved up together where the doubles of so small numbers would lose digits.
double Ratio(const Decimal& a, const Decimal& b) {
  const bool tiny = b.LeadingExponent() < -200;
  const Decimal scale(false, "1", tiny ? 300 : 0);
  return std::abs((a * scale).Nearest()) / (b * scale).Nearest();
}

// The format's value on the side of zero. Of a negative one where there is no sign that is zero, or
// what stands for it.
double Inside(const TypedNumber& input, const NumberFormat& format) {
  const Real value = input.AsReal();
  const bool has_own_side = format.has_sign || !value.negative;
  const Conversion inward = {.rounding = RoundingMode::kTowardZero};
  return Decode(Encode(has_own_side ? value : Real{}, format, inward).code, format);
}

// Finds the neighbours of a finite input and how far its rounded value lies from it.
void Measure(Rounding& rounding) {
  const double inside = Inside(rounding.input, rounding.format);
  rounding.below = NextBelow(inside, rounding.format);
  rounding.above = NextAbove(inside, rounding.format);
  const Decimal outside = rounding.input.exact - Decimal::Of(inside);
  if (!outside.IsZero()) {
    (outside.IsNegative() ? rounding.above : rounding.below) = inside;
  }
  if (std::isinf(rounding.value)) {
    return;
  }
  const Decimal error = Decimal::Of(rounding.value) - rounding.input.exact;
  rounding.error = error.IsZero() ? 0.0 : error.Nearest();
  if (error.IsZero()) {
    rounding.error_in_ulps = 0.0;
    return;
  }
  const bool bracketed = rounding.below && rounding.above && std::isfinite(*rounding.below) &&
                         std::isfinite(*rounding.above);
  if (bracketed) {
    const Decimal gap = Decimal::Of(*rounding.above) - Decimal::Of(*rounding.below);
    rounding.error_in_ulps = Ratio(error, gap);
    const Decimal twice = error * Decimal(2);
    rounding.tie = twice == gap || (Decimal() - twice) == gap;
  }
}

Encoded EncodeTyped(const Real& value, const NumberFormat& format, const TypedConversion& how,
                    std::uint64_t index) {
  Conversion conversion = how.conversion;
  if (how.from && conversion.subnormals == Subnormals::kFlushedOnInput) {
    if (IsSubnormal(value, *how.from)) {
      return FlushedToZero(value.negative, format);
    }
    conversion.subnormals = Subnormals::kKept;
  }
  return Encode(value, format, conversion, index);
}

}  // namespace

std::optional<double> NextAbove(double value, const NumberFormat& format) {
  if (std::signbit(value) && value != 0) {
    return Negated(NextBelow(-value, format));
  }
  if (value == 0 && format.has_subnormals) {
    return SmallestPositive(format);
  }
  return std::isinf(value) ? std::nullopt : Outward(Encode(value, format).code, format);
}

std::optional<double> NextBelow(double value, const NumberFormat& format) {
  if (value == 0 || std::signbit(value)) {
    return format.has_sign ? Negated(NextAbove(-value, format)) : std::nullopt;
  }
  if (std::isinf(value)) {
    return Largest(format);
  }
  const std::uint64_t code = Encode(value, format).code;
  return code == 0 ? std::nullopt : std::optional(Decode(code - 1, format));
}

Rounding RoundTyped(const TypedNumber& input, const NumberFormat& format,
                    const TypedConversion& how, std::uint64_t index) {
  const Real value = input.AsReal();
  Conversion kept = how.conversion;
  kept.subnormals = Subnormals::kKept;
  Rounding rounding;
  rounding.input = input;
  rounding.format = format;
  rounding.mode = how.conversion.rounding;
  rounding.encoded = EncodeTyped(value, format, how, index);
  rounding.flushed = rounding.encoded.code != Encode(value, format, kept, index).code;
  rounding.value = Decode(rounding.encoded.code, format);
  if (input.finite && !std::isnan(rounding.value)) {
    Measure(rounding);
  }
  return rounding;
}

}  // namespace fourpiles
