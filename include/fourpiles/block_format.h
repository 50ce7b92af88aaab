#pragma once

// Number formats whose elements share scales. A record says what an element is, how many share a
// scale, what the scale is and how it is chosen; a tensor in such a format is its packed codes
// beside its scales (for ggml: whole blocks, scales inside).

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fourpiles/number_format.h"
#include "fourpiles/result.h"

namespace fourpiles {

enum class BlockKind {
  kMicroscaling,  // OCP MX 1.0: element × a power of two (float8_e8m0fnu) for every 32
  kTwoLevel,      // NVFP4: float4_e2m1fn × a float8_e4m3fn for every 16 × a float32 of the tensor
  kCodeBook,      // bitsandbytes: an entry of a table × the block's largest magnitude
  kInteger,       // (code − zero point) × scale
  kGgml,          // whatever ggml-common.h lays out; the name says which
};

// How the power of two of an MX block follows from its largest magnitude; emax is the exponent of
// the element's largest value. Then it is clamped to 2^−127 … 2^127.
enum class ScaleRule {
  kFloor,  // floor(log2 largest) − emax (OCP MX 1.0, 6.3)
  kEven,   // as floor, of the largest rounded to the element's fraction bits, halves up (torchao)
  kCeil,   // ceil(log2 largest) − emax (torchao)
  kRceil,  // ceil(log2(largest ÷ the element's largest value)): nothing saturates (NVIDIA)
};

// What is stored for an NVFP4 tensor: largest ÷ (6 × 448), which multiplies (ModelOpt, torchao), or
// its inverse, which divides (compressed-tensors).
enum class TensorScale { kMultiplier, kDivisor };

// Which elements share an integer scale.
enum class Granularity { kGroup, kChannel, kTensor };

// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): the fields stand as a table row reads
struct BlockFormat {
  std::string_view name = {};
  std::string_view aliases = {};  // separated by a space; the case does not matter
  BlockKind kind = BlockKind::kMicroscaling;
  std::string_view element = {};  // a NumberFormat, "int8", "uint4", a table: "nf4"; ggml: empty
  int element_bits = 0;           // ggml: 0, see block_bits
  int block_elements = 32;        // that share a scale; channel and tensor: 0
  int scale_bits = 0;             // of a block, zero point included
  int block_bits = 0;             // ggml: of a whole block
  std::string_view source = {};   // the document or file that defines it
  // Choices; a name sets them after a colon: "mxfp4:scale=rceil", "nf4:block=128,double",
  // "int4:group=128,asymmetric", "int8:channel", "nvfp4:tensor-scale=divisor".
  ScaleRule scale_rule = ScaleRule::kFloor;
  TensorScale tensor_scale = TensorScale::kMultiplier;
  Granularity granularity = Granularity::kGroup;
  bool asymmetric = false;
  bool double_quantized = false;
};

// Every named block format.
std::span<const BlockFormat> BlockFormats();

// The format of that name or alias with the choices after a colon. Error: an unknown name or
// choice, with the nearest known one, a choice that the format does not have, a block size that it
// cannot have; `where` names its place.
Result<BlockFormat> FindBlockFormat(std::string_view name, std::string_view where = "format");

// The name with all its choices, which FindBlockFormat reads back: "mxfp4:scale=floor",
// "nf4:block=64,double", "int4:group=128,symmetric".
std::string FullName(const BlockFormat& format);

// rows × columns, the last dimension of the tensor contiguous.
struct TensorShape {
  std::int64_t rows = 1;
  std::int64_t columns = 0;
};

// A tensor in a block format. Elements are packed over the whole tensor in order, the last byte
// filled up once: 4-bit codes with the first in the low half of a byte (bitsandbytes: in the high
// half), 6-bit codes as a little-endian stream of bits, four in three bytes. Blocks begin anew with
// every row, the last of a row may be short; bitsandbytes' run through the whole tensor.
struct BlockTensor {
  BlockFormat format = {};
  TensorShape shape = {};
  std::vector<std::byte> codes = {};
  // One a block, little-endian: float8_e8m0fnu, float8_e4m3fn, float32; double-quantized: a byte of
  // the dynamic map. ggml: empty.
  std::vector<std::byte> scales = {};
  std::vector<std::byte> zero_points = {};  // asymmetric integers: one byte a scale
  float tensor_scale = 1;                   // NVFP4: as format.tensor_scale says
  std::vector<float> scale_scales = {};     // double-quantized: one for every 256 scales …
  float scale_offset = 0;                   // … and what was taken off all of them before
};

// How many scales a tensor has.
std::int64_t ScaleCount(const TensorShape& shape, const BlockFormat& format);

// Bytes of codes, scales and what goes with them; each of the arrays of BlockTensor rounds up once.
std::int64_t StorageBytes(const TensorShape& shape, const BlockFormat& format);

// Bits an element takes with its share of the block's scale: 4.25 for mxfp4; without what a tensor
// has once.
double BitsPerElement(const BlockFormat& format);

std::string_view Name(ScaleRule rule);            // "floor", "even", "ceil", "rceil"
std::string_view Name(TensorScale tensor_scale);  // "multiplier", "divisor"

}  // namespace fourpiles
