#pragma once

// How ggml's plain encoders choose a scale and round to codes, in float32 (quantize_row_*_ref).
// Values are finite, and arithmetic rounds to nearest-even (DefaultFloatEnvironment).

#include <cmath>
#include <span>

namespace fourpiles {

// What values are multiplied by to get their codes; infinite for scales up to 2^−128.
inline float Inverse(float scale) {
  return scale != 0 ? 1.0F / scale : 0.0F;
}

// The whole part; 0 where an infinite inverse left no number (a cast of it would be undefined).
inline int WholePart(float code) {
  return std::abs(code) < 256 ? static_cast<int>(code) : 0;
}

// To the nearest, halves away from zero, as roundf: what is added is the float32 below a half, so
// that the value below a half stays below one.
inline int NearestAway(float code) {
  return WholePart(code + std::copysign(0x1.fffffep-2F, code));
}

// The value of the largest magnitude, with its sign; the first of several.
inline float LargestSigned(std::span<const float> values) {
  float largest = 0;
  for (const float value : values) {
    if (std::abs(value) > std::abs(largest)) {
      largest = value;
    }
  }
  return largest;
}

}  // namespace fourpiles
