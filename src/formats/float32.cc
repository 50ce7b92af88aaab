#include "formats/float32.h"

#include <algorithm>
#include <cmath>

#include "formats/real.h"

namespace fourpiles {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr std::uint64_t kHidden = std::uint64_t{1} << 52;  // the leading bit of a normal double

std::uint64_t SignificandOf(double value) {
  return (std::bit_cast<std::uint64_t>(value) & (kHidden - 1)) | kHidden;
}

int ExponentOf(double value) {
  return static_cast<int>((std::bit_cast<std::uint64_t>(value) >> 52) & 0x7ff) - 1023;
}

float FlushedMagnitude(std::uint32_t magnitude, Subnormals subnormals) {
  const bool zero = subnormals == Subnormals::kFlushedOnInput && magnitude < kFloat32SmallestNormal;
  return std::bit_cast<float>(zero ? 0 : magnitude);
}

}  // namespace

float Narrow(double value) {
  constexpr int kLowest = -126;
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const auto sign = static_cast<std::uint32_t>(bits >> 63) << 31;
  const int exponent = ExponentOf(value);
  if (exponent > 127) {
    return std::bit_cast<float>(std::isnan(value) ? kFloat32Nan : sign | kFloat32Infinity);
  }
  // Below the normal numbers more is cut off; past 54 bits nothing but "less than half" is left.
  const int cut = 29 + std::min(std::max(0, kLowest - exponent), 26);
  const std::uint64_t significand = SignificandOf(value);
  const std::uint64_t rest = significand & ((std::uint64_t{1} << cut) - 1);
  const std::uint64_t half = std::uint64_t{1} << (cut - 1);
  auto code = static_cast<std::uint32_t>(significand >> cut);
  // The hidden bit counts one exponent up, and so does a carry: into infinity at the top.
  code += static_cast<std::uint32_t>(std::max(exponent, kLowest) - kLowest) << 23;
  if (rest > half || (rest == half && (code & 1) != 0)) {
    ++code;
  }
  return std::bit_cast<float>(sign | code);
}

float SumInFloat32(float a, float b) {
  if (!IsFinite(a) || !IsFinite(b)) {
    return Narrow(Widen(a) + Widen(b));  // infinity or NaN: exact
  }
  static const NumberFormat float32 = FindFormat("float32").value();
  const Encoded sum = Encode(Sum(Widen(a), Widen(b)), float32, Overflow::kSaturate);
  return std::bit_cast<float>(static_cast<std::uint32_t>(sum.code));
}

double QuotientToOdd(double a, double b) {
  if (!std::isfinite(a) || !std::isfinite(b) || a == 0 || b == 0) {
    return a / b;  // zero, infinity or NaN: exact
  }
  const Wide dividend = Wide{SignificandOf(a)} << 54;
  const std::uint64_t divisor = SignificandOf(b);
  auto quotient = static_cast<std::uint64_t>(dividend / divisor);  // 54 or 55 bits
  const bool rest = Wide{quotient} * divisor != dividend;
  const int cut = quotient >> 54 == 0 ? 1 : 2;
  const bool dropped = (quotient & ((std::uint64_t{1} << cut) - 1)) != 0;
  quotient >>= cut;
  quotient |= rest || dropped ? 1 : 0;
  const double magnitude =
      std::ldexp(static_cast<double>(quotient), ExponentOf(a) - ExponentOf(b) - 54 + cut);
  return std::signbit(a) == std::signbit(b) ? magnitude : -magnitude;
}

float LargestMagnitude(std::span<const float> values, Subnormals subnormals) {
  std::uint32_t largest = 0;
  for (const float value : values) {
    largest = std::max(largest, MagnitudeOf(value));
  }
  return FlushedMagnitude(largest, subnormals);
}

float LargestFiniteMagnitude(std::span<const float> values, Subnormals subnormals) {
  std::uint32_t largest = 0;
  for (const float value : values) {
    largest = std::max(largest, IsFinite(value) ? MagnitudeOf(value) : 0);
  }
  return FlushedMagnitude(largest, subnormals);
}

}  // namespace fourpiles
