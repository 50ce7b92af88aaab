#pragma once

// What a type of ggml is to ggml_blocks.h: a row of function pointers, made by CodecOf from what
// the files of the families (ggml_legacy.cc, ggml_k.cc, ggml_iq.cc, ggml_small.cc) define for it:
//   struct Q80 { … };                          the block's bytes, as ggml-common.h lays them out
//   void Decode(const Q80&, std::span<float>)  one block
//   void Encode(std::span<const float>, Q80&)  one block of finite values, where there is a
//   formula;
//                                              the block is zero before
// A block is taken out of the bytes as a whole and its values are put in as a whole, so the
// functions are loops over arrays that nothing else refers to.

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

#include "formats/half.h"

namespace fourpiles {

// Numbers of several bytes, little-endian and without alignment.
struct Little16 {
  std::uint8_t low = 0;
  std::uint8_t high = 0;
  constexpr unsigned Value() const { return low | static_cast<unsigned>(high) << 8; }
};
struct Little32 {
  Little16 low;
  Little16 high;
  constexpr std::uint32_t Value() const { return low.Value() | high.Value() << 16; }
};
struct Half {
  Little16 code;
  constexpr float Value() const { return HalfValue(static_cast<std::uint16_t>(code.Value())); }
};
constexpr Half NearestHalf(float value) {
  const std::uint16_t code = HalfCode(value);
  return {{static_cast<std::uint8_t>(code & 0xff), static_cast<std::uint8_t>(code >> 8)}};
}

template <std::size_t kCount>
using ByteArray = std::array<std::uint8_t, kCount>;

struct GgmlCodec {
  std::string_view type = {};  // a StoredType's name
  int block_elements = 0;
  int block_bytes = 0;
  void (*decode)(std::span<const std::byte> blocks, std::span<float> values) = nullptr;
  void (*encode)(std::span<const float> values, std::span<std::byte> blocks) = nullptr;
};

template <typename Block>
void DecodeEach(std::span<const std::byte> blocks, std::span<float> values) {
  std::array<float, Block::kElements> decoded;
  while (!blocks.empty()) {
    Block block;
    std::memcpy(&block, blocks.data(), sizeof(Block));
    Decode(block, std::span<float>(decoded));
    // Which NaN an infinite scale times zero is, differs between processors.
    std::ranges::transform(decoded, values.begin(), [](float value) {
      return value == value ? value : std::bit_cast<float>(kFloat32Nan);
    });
    blocks = blocks.subspan(sizeof(Block));
    values = values.subspan(Block::kElements);
  }
}

// The block that stands for values among which is one that is not finite: its scale is NaN.
template <typename Block>
Block NotFinite() {
  Block block;
  block.d = {{kHalfNan & 0xff, kHalfNan >> 8}};
  return block;
}

inline bool AllFinite(std::span<const float> values) {
  return std::ranges::all_of(values, IsFinite);
}

template <typename Block>
void EncodeEach(std::span<const float> values, std::span<std::byte> blocks) {
  while (!blocks.empty()) {
    const auto some = values.first(Block::kElements);
    Block block;
    if (AllFinite(some)) {
      Encode(some, block);
    } else if constexpr (requires { Block::NotFinite(); }) {
      block = Block::NotFinite();  // it has no float16 scale
    } else {
      block = NotFinite<Block>();
    }
    std::memcpy(blocks.data(), &block, sizeof(Block));
    values = values.subspan(Block::kElements);
    blocks = blocks.subspan(sizeof(Block));
  }
}

template <typename Block>
constexpr GgmlCodec CodecOf(std::string_view type) {
  static_assert(std::is_trivially_copyable_v<Block> && alignof(Block) == 1);
  GgmlCodec codec = {type, Block::kElements, sizeof(Block), &DecodeEach<Block>, nullptr};
  if constexpr (requires(std::span<const float> values, Block block) { Encode(values, block); }) {
    codec.encode = &EncodeEach<Block>;
  }
  return codec;
}

std::span<const GgmlCodec> GgmlLegacyCodecs();
std::span<const GgmlCodec> GgmlKCodecs();
std::span<const GgmlCodec> GgmlIqCodecs();
std::span<const GgmlCodec> GgmlSmallCodecs();

// The value where `negative` is 0, −value where it is 1, without a branch on it.
inline float Negated(float value, unsigned negative) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) ^ negative << 31);
}

// Codes of four bits as most types have them: byte i holds value i and, in its high half, value
// i + bytes.size().
template <typename ValueOf>
void DecodeNibbles(std::span<const std::uint8_t> bytes, std::span<float> values, ValueOf value_of) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    values[i] = value_of(bytes[i] & 0xf);
    values[i + bytes.size()] = value_of(bytes[i] >> 4);
  }
}

}  // namespace fourpiles
