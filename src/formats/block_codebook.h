#pragma once

// bitsandbytes: an entry of a table times the largest magnitude of its block, which may itself be
// kept in 8 bits ("double quantisation", QLoRA, arXiv 2305.14314 §3). What a block becomes, as
// plain arrays.

#include <cstddef>
#include <span>

#include "formats/code_books.h"
#include "fourpiles/block_format.h"

namespace fourpiles {

// The scale of a block: its largest magnitude; NaN where a value is NaN or infinite.
float CodeBookScale(std::span<const float> values, Subnormals subnormals);

// Codes of a block, one a byte: of value × (1 ÷ scale), reciprocal and product rounded to float32
// as bitsandbytes' CUDA kernels do, the nearest entry. A scale below 2^−126, whose reciprocal they
// lose, is multiplied by 2^32 first, as are the values. With a scale of zero or NaN every code is
// that of zero.
void EncodeCodeBookBlock(std::span<const float> values, float scale, const CodeBook& book,
                         std::span<std::byte> codes);

// entry × scale, in float32.
void DecodeCodeBookBlock(std::span<const std::byte> codes, float scale, const CodeBook& book,
                         std::span<float> values);

// The scale of a block of a tensor, decoded where it is double-quantised itself.
float CodeBookScaleOf(const BlockTensor& tensor, std::size_t index);

// What is taken off the scales of a double-quantised tensor: the mean of the finite ones, in
// float32: exact but for what lies below 2^−56 of the largest.
float MeanScale(std::span<const float> scales);

// From the scales themselves in tensor.scale_scales to their codes and what goes with them, less
// the offset. The codes are to have their room.
void QuantizeScales(float offset, BlockTensor& tensor);

// A whole tensor, into codes and scales of the right sizes; see block_codec.h. Of the conversion
// only what becomes of subnormal inputs counts: entries are the nearest ones.
void EncodeCodeBook(std::span<const float> values, const Conversion& conversion,
                    BlockTensor& tensor);
void DecodeCodeBook(const BlockTensor& tensor, std::span<float> values);

}  // namespace fourpiles
