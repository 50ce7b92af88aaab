#pragma once

// What follows from a block format's record.

#include <optional>
#include <string_view>
#include <vector>

#include "fourpiles/block_format.h"

namespace fourpiles {

// What the codes 0, 1, … of an element stand for, before the scale. ggml's: empty, they differ from
// type to type.
std::vector<float> ElementValues(const BlockFormat& format);

// The format of a block's scale, "float8_e8m0fnu"; empty where it is no format of one value.
std::string_view ScaleFormatName(const BlockFormat& format);

// The largest and the smallest positive value that an element and its scale come to; nvfp4: with a
// tensor scale of 1. Nothing where the scale is a float32 or ggml's.
struct BlockLimits {
  double largest = 0;
  double smallest = 0;
};
std::optional<BlockLimits> LimitsOf(const BlockFormat& format);

}  // namespace fourpiles
