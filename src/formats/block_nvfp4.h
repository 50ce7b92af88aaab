#pragma once

// NVFP4: a float4_e2m1fn times a float8_e4m3fn that 16 elements share times a float32 of the
// tensor (NVIDIA, arXiv 2509.25149). What a block becomes, as plain arrays.
//
// The tensor's scale t maps its largest magnitude to 6 × 448, the largest of both formats; a
// producer stores t, which multiplies, or g = 1 ÷ t, which divides. Every quotient below is rounded
// once, from its exact value: a float32 product would move ties.

#include <cstddef>
#include <cstdint>
#include <span>

#include "fourpiles/block_format.h"

namespace fourpiles {

struct NvFp4Scale {
  float value = 0;
  TensorScale kind = TensorScale::kMultiplier;
};

// value ÷ t is value × over ÷ under; one of the two is 1. Products with float32 are exact.
struct NvFp4Ratio {
  double over = 1;
  double under = 1;
};
NvFp4Ratio RatioOf(const NvFp4Scale& scale);

// largest ÷ 2688 or 2688 ÷ largest in float32, of the tensor's largest finite magnitude; the
// latter at most the largest float32. Of zero 0 and 1: every element is zero either way.
NvFp4Scale NvFp4TensorScale(float largest, TensorScale kind);

inline constexpr std::uint8_t kNvFp4Nan = 0x7f;  // the scale of a block with a NaN or an infinity

// The float8_e4m3fn code of (largest ÷ 6) ÷ t: nearest-even, at most 448; 0 of a block that is
// less than 2^−10 of that, or of a tensor that is zero.
std::uint8_t NvFp4BlockScale(float largest, const NvFp4Scale& tensor);

// Codes of a block, one a byte, and its scale code as the result. An element is value ÷ (s × t),
// rounded once as the conversion says, and saturates. Where the block's scale is 0 elements are
// zeros with their sign; in a block with a NaN or an infinity every code is 0.
std::uint8_t EncodeNvFp4Block(std::span<const float> values, const NvFp4Scale& tensor,
                              const Conversion& conversion, std::uint64_t first_index,
                              std::span<std::byte> codes);

// code × s × t or code × s ÷ g, rounded once to float32.
void DecodeNvFp4Block(std::span<const std::byte> codes, std::uint8_t scale,
                      const NvFp4Scale& tensor, std::span<float> values);

// A whole tensor, into codes and scales of the right sizes; see block_codec.h.
void EncodeNvFp4(std::span<const float> values, const Conversion& conversion, BlockTensor& tensor);
void DecodeNvFp4(const BlockTensor& tensor, std::span<float> values);

}  // namespace fourpiles
