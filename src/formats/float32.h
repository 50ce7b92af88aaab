#pragma once

// float32 arithmetic that gives the same bits whatever the processor's rounding mode is and whether
// it takes subnormals for zero. Doubles serve as exact intermediates: products of two float32 fit
// them, and none of theirs is subnormal.

#include <bit>
#include <cstdint>
#include <span>

#include "fourpiles/number_format.h"

namespace fourpiles {

inline constexpr std::uint32_t kFloat32Magnitude = 0x7fff'ffff;
inline constexpr std::uint32_t kFloat32Infinity = 0x7f80'0000;
inline constexpr std::uint32_t kFloat32SmallestNormal = 0x0080'0000;
inline constexpr std::uint32_t kFloat32Nan = 0x7fc0'0000;

// The bits of |value|: they order magnitudes as the values do, and NaN stands above infinity.
constexpr std::uint32_t MagnitudeOf(float value) {
  return std::bit_cast<std::uint32_t>(value) & kFloat32Magnitude;
}

constexpr bool IsFinite(float value) {
  return MagnitudeOf(value) < kFloat32Infinity;
}

// A magnitude as significand × 2^(exponent − 23), bit 23 set; of zero the significand is 0.
struct Binary {
  int exponent = 0;
  std::uint32_t significand = 0;
};

// Of a finite value, its sign dropped.
constexpr Binary BinaryOf(float value) {
  const std::uint32_t magnitude = MagnitudeOf(value);
  const std::uint32_t fraction = magnitude & (kFloat32SmallestNormal - 1);
  if (magnitude == 0) {
    return {};
  }
  if (magnitude < kFloat32SmallestNormal) {
    const int shift = std::countl_zero(fraction) - 8;
    return {-126 - shift, fraction << shift};
  }
  return {static_cast<int>(magnitude >> 23) - 127, fraction | kFloat32SmallestNormal};
}

// Exactly the float, subnormals included.
constexpr double Widen(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint64_t sign = std::uint64_t{bits >> 31} << 63;
  const std::uint64_t magnitude = bits & kFloat32Magnitude;
  if (magnitude < kFloat32SmallestNormal) {
    const double exact = static_cast<double>(magnitude) * 0x1p-149;
    return std::bit_cast<double>(std::bit_cast<std::uint64_t>(exact) | sign);
  }
  const std::uint64_t rebias = magnitude < kFloat32Infinity ? 1023 - 127 : 2047 - 255;
  return std::bit_cast<double>(sign | ((magnitude << 29) + (rebias << 52)));
}

// The value as elements see it: exactly the float, or zero with its sign where it is subnormal and
// those are flushed on input.
constexpr double InputOf(float value, Subnormals subnormals) {
  const bool flushed =
      subnormals == Subnormals::kFlushedOnInput && MagnitudeOf(value) < kFloat32SmallestNormal;
  return flushed ? (std::bit_cast<std::uint32_t>(value) >> 31 != 0 ? -0.0 : 0.0) : Widen(value);
}

// The nearest float32, ties to even; infinity past the largest. NaN loses its sign.
float Narrow(double value);

// a + b and a − b, rounded once to float32; past the largest value it.
float SumInFloat32(float a, float b);
inline float DifferenceInFloat32(float a, float b) {
  return SumInFloat32(a, std::bit_cast<float>(std::bit_cast<std::uint32_t>(b) ^ 0x8000'0000U));
}

// a ÷ b, cut to 53 bits, the last of them set if anything was cut off ("to odd", IEEE P3109):
// rounding that to 51 bits or fewer, in any mode, is rounding the exact quotient. No operand is
// subnormal and no quotient leaves the normal doubles, which holds for float32 and their products.
double QuotientToOdd(double a, double b);

// The largest |value|, 0 of none: not finite where one is not. Subnormals count as zero where they
// are flushed on input.
float LargestMagnitude(std::span<const float> values, Subnormals subnormals);

// The same of the finite ones alone.
float LargestFiniteMagnitude(std::span<const float> values, Subnormals subnormals);

}  // namespace fourpiles
