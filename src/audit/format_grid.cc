#include "audit/format_grid.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace fourpiles {
namespace {

constexpr int kFraction = 52;  // bits of float64
constexpr int kBias = 1023;
constexpr std::uint64_t kSign = std::uint64_t{1} << 63;
constexpr std::uint64_t kFractionMask = (std::uint64_t{1} << kFraction) - 1;

std::uint64_t MagnitudeOf(double value) {
  return std::bit_cast<std::uint64_t>(value) & ~kSign;
}

int ExponentOf(std::uint64_t magnitude) {  // biased
  return static_cast<int>(magnitude >> kFraction);
}

}  // namespace

Result<FormatGrid> FormatGrid::Of(const NumberFormat& format, std::string_view where) {
  constexpr int kMostExponentBits = 10;
  if (!format.has_sign || !format.has_subnormals || format.fraction_bits < 1 ||
      format.exponent_bits > kMostExponentBits) {
    return WrongUsage({.where = std::string(where),
                       .found = std::string(format.name),
                       .expected = "expected a format with a sign, fraction bits, subnormals and "
                                   "up to 10 exponent bits",
                       .hint = "such as bfloat16 or float16"});
  }
  return FormatGrid(format);
}

FormatGrid::FormatGrid(const NumberFormat& format)
    : format_(format),
      cut_(kFraction - format.fraction_bits),
      lowest_exponent_(kBias + 1 - format.bias),
      largest_(Largest(format)),
      smallest_normal_(fourpiles::SmallestNormal(format)),
      smallest_(SmallestPositive(format)) {}

double FormatGrid::Round(double value) const {
  const std::uint64_t magnitude = MagnitudeOf(value);
  const int cut = cut_ + std::max(0, lowest_exponent_ - ExponentOf(magnitude));
  double rounded = 0;
  if (cut > kFraction) {  // below the smallest; from more than half of it on that is nearest
    rounded = cut == kFraction + 1 && (magnitude & kFractionMask) != 0 ? smallest_ : 0;
  } else {
    // With all fraction bits cut off, what stays is the leading one, which is odd.
    const std::uint64_t odd = cut == kFraction ? 1 : (magnitude >> cut) & 1U;
    const std::uint64_t below_half = (std::uint64_t{1} << (cut - 1)) - 1;
    rounded = std::bit_cast<double>((magnitude + below_half + odd) >> cut << cut);
  }
  if (rounded > largest_) {
    rounded = std::numeric_limits<double>::infinity();
  }
  return std::copysign(rounded, value);
}

double FormatGrid::GapOutward(double value) const {
  const int exponent = std::max(ExponentOf(MagnitudeOf(value)), lowest_exponent_);
  // No less than 1: exponents of up to 10 bits begin at 2^−510.
  const int gap = exponent - format_.fraction_bits;
  return std::bit_cast<double>(static_cast<std::uint64_t>(gap) << kFraction);
}

double FormatGrid::GapInward(double value) const {
  const std::uint64_t magnitude = MagnitudeOf(value);
  const bool begins_binade =
      (magnitude & kFractionMask) == 0 && ExponentOf(magnitude) > lowest_exponent_;
  return begins_binade ? GapOutward(value) / 2 : GapOutward(value);
}

}  // namespace fourpiles
