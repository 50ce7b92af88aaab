#pragma once

// A few numbers as typed, as one row of a tensor in a block format: what each becomes, and the
// scales that they share.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "formats/typed_number.h"
#include "fourpiles/block_format.h"

namespace fourpiles {

struct BlockElement {
  TypedNumber input;
  std::optional<std::uint64_t> code = {};  // nothing: ggml's lie in the bytes of their block
  double value = 0;                        // that it comes back as
  std::optional<double> error = {};        // value − input as typed, where both are finite
  // nan, saturated (of elements with an exponent), underflow, rounded or exact, by what was typed.
  RoundingStatus status = RoundingStatus::kExact;
};

struct BlockScale {
  std::size_t first = 0;  // of the values typed that share it, from 0
  std::size_t count = 0;
  std::optional<std::uint64_t> code = {};  // of a scale of 8 bits
  std::optional<double> value = {};        // that codes are multiplied by; nothing: ggml's
  std::optional<int> zero_point = {};      // asymmetric integers
  std::vector<std::byte> bytes = {};       // ggml: the whole block
};

struct BlockRounding {
  BlockTensor tensor = {};
  std::vector<BlockElement> elements = {};
  std::vector<BlockScale> scales = {};
  std::int64_t zeros = 0;  // that fill the last block of ggml's, which has no short ones
};

// The numbers are rounded to float32 first, to nearest-even, since that is what tensors are encoded
// from; errors are told against what was typed. Error: as EncodeTensor; of ggml's blocks any
// rounding or flushing but their own.
Result<BlockRounding> RoundInBlocks(std::span<const TypedNumber> inputs, const BlockFormat& format,
                                    const Conversion& conversion);

}  // namespace fourpiles
