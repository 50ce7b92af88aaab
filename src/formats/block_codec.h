#pragma once

// A tensor in a block format, encoded and decoded one element at a time. This is what the formats
// mean; src/kernels does the same faster.
//
// In every format a block with a NaN or an infinity is NaN as a whole: its scale is, and nothing of
// it is taken for a number. (An MX element may be its own NaN beside that.)

#include <span>

#include "fourpiles/block_format.h"

namespace fourpiles {

// Whether a tensor's record is one of ours and its shape holds so many values, in whole blocks
// where the format has no short ones. What follows takes that for granted.
Result<void> CheckShape(const BlockTensor& tensor, std::size_t values);

// Whether the arrays of a tensor have the sizes that its shape and format ask for.
Result<void> CheckArrays(const BlockTensor& tensor);

// Whether the format can round so: tables and ggml's types have a rounding of their own.
Result<void> CheckConversion(const Conversion& conversion, const BlockFormat& format);

// Gives the arrays of a tensor the sizes that its shape and format ask for. What was in them is
// lost, their memory is not.
void ResizeArrays(BlockTensor& tensor);

// Fills the arrays of a tensor whose shape and format are set from its rows × columns values. The
// conversion's rounding, subnormals and seed are those of the elements; they saturate. Error:
// CheckConversion's; a type of ggml that can only be decoded.
Result<void> EncodeTensor(std::span<const float> values, const Conversion& conversion,
                          BlockTensor& tensor);

// And back.
void DecodeTensor(const BlockTensor& tensor, std::span<float> values);

}  // namespace fourpiles
