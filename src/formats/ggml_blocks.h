#pragma once

// The block types of ggml, decoded and encoded block by block: bit for bit what ggml d99724f2 does
// (`to_float`, and `quantize_row_*_ref`), which is the meaning of the fast kernels too.
//
// Where ggml leaves it open:
// - Decoding takes any bytes. What is not a number is the NaN 0x7fc00000 (a NaN scale; an infinite
//   scale times zero).
// - Encoding a block with a NaN or an infinity in it gives a block whose scale is the float16 NaN
//   0x7e00 and whose other bytes are zero, so every value of it comes back as NaN: it is not lost.
//   mxfp4, which has no NaN in ggml: scale 255, codes 7, which come back as infinity.
//   A finite block whose scale overflows float16 has an infinite scale, as in ggml.
// - A scale of 2^−128 or less has no finite inverse in float32 to multiply with. Its codes are 0,
//   and 1 in q2_0, tq1_0 and tq2_0; as a float16 it is ±0, so the block comes back as zeros.
// The processor's rounding mode and flush bits do not matter.

#include <cstddef>
#include <span>
#include <string_view>

namespace fourpiles {

struct GgmlCodec;

// The codec of a ggml type by its StoredType's name ("q4_k"); nullptr: it is no type of ggml.
const GgmlCodec* FindGgmlCodec(std::string_view type);

bool CanDecodeGgml(std::string_view type);
// Types whose encoding is a formula, not those that ggml searches for, nor nvfp4: q1_0, q2_0, q4_0,
// q4_1, q5_0, q5_1, q8_0, tq1_0, tq2_0, mxfp4.
bool CanEncodeGgml(std::string_view type);

// Whole blocks, in order. blocks.size() is a multiple of the block's bytes, and values.size() the
// elements of as many blocks.
void DecodeGgmlBlocks(const GgmlCodec& codec, std::span<const std::byte> blocks,
                      std::span<float> values);

// The reverse, of a type that CanEncodeGgml.
void EncodeGgmlBlocks(const GgmlCodec& codec, std::span<const float> values,
                      std::span<std::byte> blocks);

}  // namespace fourpiles
