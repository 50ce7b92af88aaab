#pragma once

// A tensor in a block format, encoded and decoded one element at a time. This is what the formats
// mean; src/kernels does the same faster.
//
// In every format a block with a NaN or an infinity is NaN as a whole: its scale is, and nothing of
// it is taken for a number. (An MX element may be its own NaN beside that.)

#include <span>

#include "fourpiles/block_format.h"

namespace fourpiles {

// Gives the arrays of a tensor the sizes that its shape and format ask for. What was in them is
// lost, their memory is not.
void ResizeArrays(BlockTensor& tensor);

// Fills the arrays of a tensor whose shape and format are set from its rows × columns values. The
// conversion's rounding, subnormals and seed are those of the elements; they saturate. Error:
// bitsandbytes' tables in another rounding than to nearest; ggml's blocks, see ggml_blocks.h.
Result<void> EncodeTensor(std::span<const float> values, const Conversion& conversion,
                          BlockTensor& tensor);

// And back.
void DecodeTensor(const BlockTensor& tensor, std::span<float> values);

}  // namespace fourpiles
