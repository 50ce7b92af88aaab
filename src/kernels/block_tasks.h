#pragma once

// Blocks that the kernels work through: whole ones, one after another. Internal to this folder.

#include <cstddef>
#include <cstdint>

#include "formats/block_microscaling.h"
#include "formats/block_nvfp4.h"
#include "kernels/conversion_plan.h"

namespace fourpiles {

// Blocks whose codes, one a byte, and random words stand in the first-level cache together.
inline constexpr std::size_t kMxBlock = 32;
inline constexpr std::size_t kNvFp4Block = 16;
inline constexpr std::size_t kChunk = 2048;  // elements

struct MxPlan {
  Microscaling format;
  Conversion conversion;  // saturating
  EncodePlan encode;
  DecodePlan decode;
  // Of a block's largest magnitude: above this significand the scale's exponent is one more.
  std::int32_t significand_kept = 0;
  int highest_exponent = 0;  // of the element
};
MxPlan PlanMx(const Microscaling& format, const Conversion& conversion);

struct MxTask {
  const float* values = nullptr;
  std::size_t blocks = 0;
  std::size_t first = 0;  // element of the tensor
  const std::uint32_t* random = nullptr;
  std::byte* codes = nullptr;  // one a byte
  std::byte* scales = nullptr;
};
void EncodeMxBlocks(const MxTask& task, const MxPlan& plan);

struct MxDecodeTask {
  const std::byte* codes = nullptr;  // one a byte
  const std::byte* scales = nullptr;
  std::size_t blocks = 0;
  float* values = nullptr;
  bool streams = false;
};
void DecodeMxBlocks(const MxDecodeTask& task, const MxPlan& plan);

// What a tensor's scale makes of NVFP4's comparisons: from which magnitude on a block gets a scale,
// and an element of a block with that scale a code. Exact: no element is divided.
struct NvFp4Plan {
  static constexpr std::size_t kScales = 127;  // codes of scales; 126 is 448
  EncodePlan scale_encode;                     // of the estimate below
  float scale_estimate = 0;                    // largest × this is about the scale
  bool is_plain = false;  // all of this is made of normal numbers: not a tensor of tiny values
  float scale_from[kScales + 1] = {};    // the smallest largest that gets this scale or more
  float code_from[kScales + 1][8] = {};  // by scale and code; a vector may read past a row
};
NvFp4Plan PlanNvFp4(const NvFp4Scale& tensor);

struct NvFp4Task {
  const float* values = nullptr;
  std::size_t blocks = 0;
  std::byte* codes = nullptr;  // one a byte
  std::byte* scales = nullptr;
};
void EncodeNvFp4Blocks(const NvFp4Task& task, const NvFp4Plan& plan);

struct NvFp4DecodeTask {
  const std::byte* codes = nullptr;  // one a byte
  const std::byte* scales = nullptr;
  std::size_t blocks = 0;
  float* values = nullptr;
  bool streams = false;
};
void DecodeNvFp4Blocks(const NvFp4DecodeTask& task, const NvFp4Scale& tensor);

// The largest finite magnitude; 0 of none.
float LargestFinite(const float* values, std::size_t count);

// Codes of 4 and 6 bits, one a byte, to and from their packed form, the first in the low bits.
// `count` is a multiple of 8, at most kChunk.
void PackBytes(const std::byte* codes, std::size_t count, int bits, std::byte* packed);
void UnpackBytes(const std::byte* packed, std::size_t count, int bits, std::byte* codes);

// ggml's q8_0 and q4_0.
struct GgmlTask {
  const float* values = nullptr;
  std::size_t blocks = 0;  // of 32
  std::byte* bytes = nullptr;
};
void EncodeQ80Blocks(const GgmlTask& task);
void EncodeQ40Blocks(const GgmlTask& task);

struct GgmlDecodeTask {
  const std::byte* bytes = nullptr;
  std::size_t blocks = 0;
  float* values = nullptr;
  bool streams = false;
};
void DecodeQ80Blocks(const GgmlDecodeTask& task);
void DecodeQ40Blocks(const GgmlDecodeTask& task);

}  // namespace fourpiles
