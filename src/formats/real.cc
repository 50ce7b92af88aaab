#include "formats/real.h"

#include <bit>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace fourpiles {
namespace {

__extension__ using Wide = unsigned __int128;

int LeadingZeros(Wide value) {
  const auto high = static_cast<std::uint64_t>(value >> 64);
  return high != 0 ? std::countl_zero(high)
                   : 64 + std::countl_zero(static_cast<std::uint64_t>(value));
}

// value × 2^exponent, plus something less than 2^exponent if `more`.
Real Normalised(Wide value, int exponent, bool negative, bool more) {
  if (value == 0) {
    CHECK(!more);  // the callers keep enough bits that a cut-off part stands behind a leading one
    return {.kind = Real::Kind::kZero, .negative = negative};
  }
  const int shift = LeadingZeros(value);
  const Wide leading = value << shift;
  const auto significand = static_cast<std::uint64_t>(leading >> 64);
  const bool cut = static_cast<std::uint64_t>(leading) != 0;
  return {Real::Kind::kFinite, negative, significand, exponent - shift + 64, more || cut};
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

Real RealOf(double value) {
  const bool negative = std::signbit(value);
  if (std::isnan(value)) {
    return {.kind = Real::Kind::kNan, .negative = negative};
  }
  if (std::isinf(value)) {
    return {.kind = Real::Kind::kInfinite, .negative = negative};
  }
  const Parts parts = PartsOf(value);
  return Normalised(parts.significand, parts.exponent, negative, false);
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
  // 53 bits moved up by 70 leave room for a carry, and a small part that falls off below them is
  // less than half of the last bit of any format.
  constexpr int kRoom = 70;
  const Wide upper = Wide{large.significand} << kRoom;
  const int exponent = large.exponent - kRoom;
  const int up = small.exponent - exponent;
  const bool vanishes = up <= -64;
  const Wide lower = vanishes  ? 0
                     : up >= 0 ? Wide{small.significand} << up
                               : Wide{small.significand} >> -up;
  const bool cut = vanishes || (up < 0 && (lower << -up) != small.significand);
  if (std::signbit(a) == std::signbit(b)) {
    return Normalised(upper + lower, exponent, std::signbit(a), cut);
  }
  const Wide difference = upper - lower - (cut ? 1 : 0);
  return Normalised(difference, exponent, difference != 0 && std::signbit(a), cut);
}

}  // namespace fourpiles
