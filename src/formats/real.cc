#include "formats/real.h"

#include <bit>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace fourpiles {
namespace {

using Wide = Magnitude128::Value;

int LeadingZeros(Wide value) {
  const auto high = static_cast<std::uint64_t>(value >> 64);
  return high != 0 ? std::countl_zero(high)
                   : 64 + std::countl_zero(static_cast<std::uint64_t>(value));
}

// A finite magnitude as significand × 2^exponent with 53 bits at most.
struct Parts {
  std::uint64_t significand = 0;
  int exponent = 0;
};

Parts PartsOf(double magnitude) {
  const auto bits = std::bit_cast<std::uint64_t>(magnitude) & ~(std::uint64_t{1} << 63);
  const auto field = static_cast<int>(bits >> 52);
  const std::uint64_t fraction = bits & ((std::uint64_t{1} << 52) - 1);
  return field == 0 ? Parts{fraction, -1074}
                    : Parts{fraction | (std::uint64_t{1} << 52), field - 1075};
}

}  // namespace

Real RealOf(const Magnitude128& magnitude, bool negative) {
  if (magnitude.value == 0) {
    CHECK(!magnitude.more);
    return {.kind = Real::Kind::kZero, .negative = negative};
  }
  const int shift = LeadingZeros(magnitude.value);
  const Wide leading = magnitude.value << shift;
  return {.kind = Real::Kind::kFinite,
          .negative = negative,
          .significand = static_cast<std::uint64_t>(leading >> 64),
          .lower = static_cast<std::uint64_t>(leading),
          .exponent = magnitude.exponent - shift + 64,
          .more = magnitude.more};
}

Real RealOf(double value) {
  const bool negative = std::signbit(value);
  if (std::isnan(value)) {
    return {.kind = Real::Kind::kNan, .negative = negative};
  }
  if (std::isinf(value)) {
    return {.kind = Real::Kind::kInfinite, .negative = negative};
  }
  const Parts parts = PartsOf(value);
  if (parts.significand == 0) {
    return {.kind = Real::Kind::kZero, .negative = negative};
  }
  const int shift = std::countl_zero(parts.significand);
  return {.kind = Real::Kind::kFinite,
          .negative = negative,
          .significand = parts.significand << shift,
          .exponent = parts.exponent - shift};
}

Real Sum(double a, double b) {
  if (std::abs(a) < std::abs(b)) {
    std::swap(a, b);
  }
  const Parts large = PartsOf(a);
  const Parts small = PartsOf(b);
  if (small.significand == 0) {
    Real sum = RealOf(a);
    sum.negative = std::signbit(a) && (large.significand != 0 || std::signbit(b));
    return sum;
  }
  // 53 bits moved up by 70 leave room for a carry. Where a part falls off below them, the smaller
  // one is so small that the sum has 122 bits at least.
  constexpr int kRoom = 70;
  const Wide upper = Wide{large.significand} << kRoom;
  const int exponent = large.exponent - kRoom;
  const int up = small.exponent - exponent;
  const bool vanishes = up <= -64;
  const Wide lower = vanishes  ? 0
                     : up >= 0 ? Wide{small.significand} << up
                               : Wide{small.significand} >> -up;
  const bool cut = vanishes || (up < 0 && (lower << -up) != small.significand);
  const bool grows = std::signbit(a) == std::signbit(b);
  const Wide sum = grows ? upper + lower : upper - lower - (cut ? 1 : 0);
  return RealOf({.value = sum, .exponent = exponent, .more = cut}, sum != 0 && std::signbit(a));
}

}  // namespace fourpiles
