#pragma once

// Blocks that the kernels work through: whole ones, one after another. Internal to this folder.

#include <cstddef>
#include <cstdint>
#include <span>

#include "formats/block_integer.h"
#include "formats/block_layout.h"
#include "formats/block_microscaling.h"
#include "formats/block_nvfp4.h"
#include "formats/code_books.h"
#include "formats/packing.h"
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
  float scale_from[kScales + 1] = {};  // the smallest largest that gets this scale or more
  // By scale and code; a vector may read past a row.
  alignas(32) float code_from[kScales + 1][8] = {};
  float twice_element[kScales] = {};  // a magnitude × this is twice the element, or a little less
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

// Codes of 4 and 6 bits, one a byte, to and from their packed form. `count` is even; for 6 bits a
// multiple of 8, at most kChunk.
void PackBytes(const std::byte* codes, std::size_t count, const Packing& packing,
               std::byte* packed);
void UnpackBytes(const std::byte* packed, std::size_t count, const Packing& packing,
                 std::byte* codes);

// A table of values as vectors look things up in it.
struct CodeBookPlan {
  alignas(64) float bounds[256] = {};  // above bounds[i] a value gets entry i or one further up
  alignas(64) float coarse[16] = {};   // every sixteenth of them
  alignas(64) float values[256] = {};  // of codes
  alignas(16) std::uint8_t codes[16] = {};  // of entries of a short table, with the sign bit too
  const CodeBook* book = nullptr;
  std::int32_t value_mask = -1;  // of the bits that are looked up: magnitudes have no sign …
  std::int32_t sign_bit = 0;     // … but this in a code
  bool is_short = true;          // 16 values, else 256
};
CodeBookPlan PlanCodeBook(const CodeBook& book);

inline constexpr std::size_t kShortestBlock = 32;
struct CodeBookTask {
  const float* values = nullptr;
  std::size_t blocks = 0;          // at most kPiece elements
  std::size_t block_elements = 0;  // a multiple of kShortestBlock
  Subnormals subnormals = Subnormals::kKept;
  std::byte* codes = nullptr;  // one a byte
  float* scales = nullptr;     // of blocks, float32
};
void EncodeCodeBookBlocks(const CodeBookTask& task, const CodeBookPlan& plan);

struct CodeBookDecodeTask {
  const std::byte* codes = nullptr;  // one a byte
  const float* scales = nullptr;
  std::size_t blocks = 0;
  std::size_t block_elements = 0;  // a multiple of kShortestBlock
  float* values = nullptr;
  bool streams = false;
};
void DecodeCodeBookBlocks(const CodeBookDecodeTask& task, const CodeBookPlan& plan);

// values[i] = values[i] + addend, in float32; past the largest value it. No infinities.
void AddToAll(float addend, float* values, std::size_t count);
// values[i] = what codes[i] stands for × scale; the scale is finite.
void DecodeCodeBookCodes(std::span<const std::byte> codes, float scale, const CodeBookPlan& plan,
                         float* values);

// The range of values: `count` is not 0. See RangeOf.
ValueRange FindRange(const float* values, std::size_t count, Subnormals subnormals);

// Runs of integers that share a scale, all of one length, and what theirs are. Nearest-even.
struct IntegerRuns {
  const float* values = nullptr;
  std::size_t runs = 0;          // at most kMostRuns
  std::size_t run_elements = 0;  // at least kShortestRun, for FindIntegerScales
  Subnormals subnormals = Subnormals::kKept;
};
inline constexpr std::size_t kShortestRun = 16;
inline constexpr std::size_t kMostRuns = kPiece / kShortestRun;
struct IntegerScales {
  IntegerCodes codes;
  alignas(64) float scales[kMostRuns] = {};
  alignas(64) std::int32_t zero_points[kMostRuns] = {};
};
void FindIntegerScales(const IntegerRuns& runs, IntegerScales& scales);

// Of these runs or a piece of one, one a byte.
void EncodeIntegerRuns(const IntegerRuns& runs, const IntegerScales& scales, std::byte* codes);

struct IntegerDecodeTask {
  const std::byte* codes = nullptr;  // one a byte
  std::size_t runs = 0;
  std::size_t run_elements = 0;
  float* values = nullptr;
  bool streams = false;
};
void DecodeIntegerRuns(const IntegerDecodeTask& task, const IntegerScales& scales);

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
