#pragma once

// Integers that share a scale: value = (code − zero point) × scale. What a group, a row or a tensor
// becomes, as plain arrays.

#include <cstddef>
#include <cstdint>
#include <span>

#include "fourpiles/block_format.h"

namespace fourpiles {

struct IntegerCodes {
  int bits = 8;
  bool is_signed = true;  // two's complement; else from 0 up
  bool asymmetric = false;  // with a zero point; else codes go from −q to q, q = 2^(bits − 1) − 1
};

IntegerCodes IntegerCodesOf(const BlockFormat& format);

// The numbers that codes go from and to.
int SmallestCode(const IntegerCodes& codes);
int LargestCode(const IntegerCodes& codes);

// What values reach, zero included: −below … above. NaN where one is NaN or infinite.
struct ValueRange {
  float below = 0;
  float above = 0;
};

// Ranges of parts merge by the larger of each; subnormals count as zero where flushed on input.
ValueRange RangeOf(std::span<const float> values, Subnormals subnormals);
ValueRange Union(const ValueRange& a, const ValueRange& b);

struct IntegerScale {
  IntegerCodes codes;
  float scale = 0;     // NaN: no value of the group is known
  int zero_point = 0;  // the code of zero
};

// Symmetric: scale = largest magnitude ÷ q. Asymmetric, as ONNX's DynamicQuantizeLinear computes it
// in float32: scale = (above + below) ÷ (2^bits − 1), zero point = smallest code + below ÷ scale to
// nearest-even; a sum past float32's largest is not rounded, so that the scale is finite where it
// would be infinite there. Each quotient is the exact one rounded once.
IntegerScale IntegerScaleOf(const ValueRange& range, const IntegerCodes& codes);

// Codes, one a byte, in the lower `bits` bits: value ÷ scale, the exact quotient, rounded once to
// an integer as the conversion says, plus the zero point, limited to what codes hold. With a scale
// of zero or NaN every code is the zero point. `first_index` is the first value's place in its
// tensor.
void EncodeIntegers(std::span<const float> values, const IntegerScale& scale,
                    const Conversion& conversion, std::uint64_t first_index,
                    std::span<std::byte> codes);

// (code − zero point) × scale, in float32.
void DecodeIntegers(std::span<const std::byte> codes, const IntegerScale& scale,
                    std::span<float> values);

// The scale of a group, a row or a tensor, as a tensor has it.
IntegerScale ReadIntegerScale(const BlockTensor& tensor, std::size_t index);
void WriteIntegerScale(const IntegerScale& scale, std::size_t index, BlockTensor& tensor);

// A whole tensor, into codes, scales and zero points of the right sizes; see block_codec.h.
void EncodeInteger(std::span<const float> values, const Conversion& conversion,
                   BlockTensor& tensor);
void DecodeInteger(const BlockTensor& tensor, std::span<float> values);

}  // namespace fourpiles
