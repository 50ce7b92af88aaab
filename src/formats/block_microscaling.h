#pragma once

// OCP Microscaling (MX) 1.0: an element times a power of two that 32 elements share. What a block
// becomes, as plain arrays.

#include <cstddef>
#include <cstdint>
#include <span>

#include "fourpiles/block_format.h"

namespace fourpiles {

struct Microscaling {
  // Of an element. int8 is, but for its sign, a format of one exponent bit: its i/64 are evenly
  // spaced through the subnormals and the one binade above them, up to 127/64.
  NumberFormat element;
  bool is_integer = false;  // codes are two's complement
  ScaleRule rule = ScaleRule::kFloor;
};

Microscaling MicroscalingOf(const BlockFormat& format);

inline constexpr std::uint8_t kMxNan = 0xff;  // the scale of a block with a NaN or an infinity

// The rule as a comparison: a block whose largest magnitude has a larger significand than this, of
// 24 bits, has an exponent one above floor(log2 largest) − emax.
std::int32_t SignificandKept(const Microscaling& format);

// The float8_e8m0fnu code, exponent + 127, of a block with that largest magnitude: of zero 0, of
// NaN and infinity kMxNan. Rules: ScaleRule; exponents are read from bits, so no logarithm is off
// just below a power of two.
std::uint8_t MxScaleCode(float largest, const Microscaling& format);

// Codes of a block, one a byte, and its scale code as the result. An element is value ÷ 2^k,
// rounded once as the conversion says, and saturates. In a block with a NaN or an infinity every
// code is the element's NaN, or 0 where it has none. `first_index` is the first value's place in
// its tensor.
std::uint8_t EncodeMxBlock(std::span<const float> values, const Microscaling& format,
                           const Conversion& conversion, std::uint64_t first_index,
                           std::span<std::byte> codes);

// code × 2^k, in float32; past its range infinity.
void DecodeMxBlock(std::span<const std::byte> codes, std::uint8_t scale, const Microscaling& format,
                   std::span<float> values);

// A whole tensor, into codes and scales of the right sizes; see block_codec.h.
void EncodeMicroscaling(std::span<const float> values, const Conversion& conversion,
                        BlockTensor& tensor);
void DecodeMicroscaling(const BlockTensor& tensor, std::span<float> values);

}  // namespace fourpiles
