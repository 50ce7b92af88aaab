#pragma once

// float16, the scale of most block formats, to and from float32: what Encode and Decode give with
// the float16 record, in a few integer operations, whatever the processor's rounding mode is.

#include <bit>
#include <cstdint>

#include "formats/float32.h"

namespace fourpiles {

constexpr std::uint16_t kHalfNan = 0x7e00;
constexpr std::uint16_t kHalfInfinity = 0x7c00;

// The value of a code; every NaN is 0x7fc00000.
constexpr float HalfValue(std::uint16_t code) {
  const std::uint32_t sign = static_cast<std::uint32_t>(code & 0x8000U) << 16;
  const std::uint32_t magnitude = code & 0x7fffU;
  if (magnitude < 0x0400) {  // a multiple of the smallest subnormal, 2^−24
    const float value = static_cast<float>(magnitude) * 0x1p-24F;
    return sign != 0 ? -value : value;
  }
  if (magnitude >= kHalfInfinity) {
    const bool infinite = magnitude == kHalfInfinity;
    return std::bit_cast<float>(infinite ? sign | kFloat32Infinity : kFloat32Nan);
  }
  return std::bit_cast<float>(sign | ((magnitude << 13) + (std::uint32_t{127 - 15} << 23)));
}

// The code nearest to the value, ties to even; infinity from 65520 on. Every NaN is 0x7e00.
constexpr std::uint16_t HalfCode(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > kFloat32Infinity) {
    return kHalfNan;
  }
  if (magnitude >= 0x477ff000U) {
    return static_cast<std::uint16_t>(sign | kHalfInfinity);
  }
  const auto exponent = static_cast<int>(magnitude >> 23);
  const bool normal = exponent > 127 - 15;
  const int cut = normal ? 13 : 126 - exponent;  // so many bits do not fit
  if (cut > 24) {
    return static_cast<std::uint16_t>(sign);  // below half the smallest subnormal
  }
  const std::uint32_t significand =
      normal ? magnitude - (std::uint32_t{127 - 15} << 23) : (magnitude & 0x7fffffU) | 0x800000U;
  const std::uint32_t odd = (significand >> cut) & 1U;
  const std::uint32_t below_half = (std::uint32_t{1} << (cut - 1)) - 1;
  return static_cast<std::uint16_t>(sign | ((significand + below_half + odd) >> cut));
}

}  // namespace fourpiles
