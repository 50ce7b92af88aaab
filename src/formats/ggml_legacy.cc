// The types of ggml with one scale a block of 32: q4_0 … q8_1.
//
// "_0" stores d and codes around zero, "_1" also the smallest value m and codes from zero up. The
// scale is chosen in float32 and then stored as float16; the codes are made with the unrounded one
// (ggml-quants.c, quantize_row_*_ref). For q4_0 of values −8 … 7: the largest in magnitude is −8,
// so d = −8 ÷ −8 = 1, and −3 gets trunc(−3 + 8.5) = 5.

#include "formats/ggml_codec.h"
#include "formats/ggml_scale.h"

namespace fourpiles {
namespace {

constexpr int kBlock = 32;

struct Q40 {
  static constexpr int kElements = kBlock;
  Half d;
  ByteArray<16> codes = {};
};

struct Q41 {
  static constexpr int kElements = kBlock;
  Half d;
  Half m;
  ByteArray<16> codes = {};
};

struct Q50 {
  static constexpr int kElements = kBlock;
  Half d;
  ByteArray<4> fifth_bits = {};
  ByteArray<16> codes = {};
};

struct Q51 {
  static constexpr int kElements = kBlock;
  Half d;
  Half m;
  ByteArray<4> fifth_bits = {};
  ByteArray<16> codes = {};
};

struct Q80 {
  static constexpr int kElements = kBlock;
  Half d;
  std::array<std::int8_t, kBlock> codes = {};
};

struct Q81 {
  static constexpr int kElements = kBlock;
  Half d;
  Half sum;  // d × Σ codes, for dot products
  std::array<std::int8_t, kBlock> codes = {};
};

// The codes of a block, one a byte.
using BlockCodes = ByteArray<kBlock>;

void Decode(const Q40& block, std::span<float> values) {
  const float d = block.d.Value();
  DecodeNibbles(block.codes, values, [d](int code) { return d * static_cast<float>(code - 8); });
}

void Decode(const Q41& block, std::span<float> values) {
  const float d = block.d.Value();
  const float m = block.m.Value();
  DecodeNibbles(block.codes, values, [=](int code) { return d * static_cast<float>(code) + m; });
}

template <typename Block>
BlockCodes FiveBitCodes(const Block& block) {
  BlockCodes codes = {};
  for (std::size_t i = 0; i < kBlock; ++i) {
    const int low = (block.codes[i % 16] >> (i < 16 ? 0 : 4)) & 0xf;
    const int fifth = (block.fifth_bits[i / 8] >> (i % 8)) & 1;
    codes[i] = static_cast<std::uint8_t>(low | fifth << 4);
  }
  return codes;
}

void Decode(const Q50& block, std::span<float> values) {
  const float d = block.d.Value();
  std::ranges::transform(FiveBitCodes(block), values.begin(),
                         [d](int code) { return d * static_cast<float>(code - 16); });
}

void Decode(const Q51& block, std::span<float> values) {
  const float d = block.d.Value();
  const float m = block.m.Value();
  std::ranges::transform(FiveBitCodes(block), values.begin(),
                         [=](int code) { return d * static_cast<float>(code) + m; });
}

template <typename Block>
void DecodeBytes(const Block& block, std::span<float> values) {
  const float d = block.d.Value();
  std::ranges::transform(block.codes, values.begin(),
                         [d](int code) { return d * static_cast<float>(code); });
}
void Decode(const Q80& block, std::span<float> values) {
  DecodeBytes(block, values);
}
void Decode(const Q81& block, std::span<float> values) {
  DecodeBytes(block, values);
}

void StoreNibbles(const BlockCodes& codes, ByteArray<16>& bytes) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::uint8_t>((codes[i] & 0xf) | codes[i + 16] << 4);
  }
}

void StoreFifthBits(const BlockCodes& codes, ByteArray<4>& bytes) {
  for (std::size_t i = 0; i < kBlock; ++i) {
    bytes[i / 8] = static_cast<std::uint8_t>(bytes[i / 8] | (codes[i] >> 4) << (i % 8));
  }
}

// Around zero: the largest magnitude gets the code 0, which stands for −zero_code × d.
template <typename Block>
BlockCodes SignedCodes(std::span<const float> values, int zero_code, Block& block) {
  const auto zero = static_cast<float>(zero_code);
  const float d = LargestSigned(values) / -zero;
  const float inverse = Inverse(d);
  block.d = NearestHalf(d);
  BlockCodes codes = {};
  std::ranges::transform(values, codes.begin(), [=](float value) {
    const int code = WholePart(value * inverse + (zero + 0.5F));
    return static_cast<std::uint8_t>(std::min(code, 2 * zero_code - 1));
  });
  return codes;
}

// From the smallest value up to the largest.
template <typename Block>
BlockCodes UnsignedCodes(std::span<const float> values, int largest_code, Block& block) {
  float smallest = values[0];  // the first of several, for the sign of zeros
  float largest = values[0];
  for (const float value : values) {
    smallest = value < smallest ? value : smallest;
    largest = value > largest ? value : largest;
  }
  const float d = (largest - smallest) / static_cast<float>(largest_code);
  const float inverse = Inverse(d);
  block.d = NearestHalf(d);
  block.m = NearestHalf(smallest);
  BlockCodes codes = {};
  std::ranges::transform(values, codes.begin(), [=](float value) {
    const int code = WholePart((value - smallest) * inverse + 0.5F);
    return static_cast<std::uint8_t>(std::min(code, largest_code));
  });
  return codes;
}

void Encode(std::span<const float> values, Q40& block) {
  StoreNibbles(SignedCodes(values, 8, block), block.codes);
}

void Encode(std::span<const float> values, Q41& block) {
  StoreNibbles(UnsignedCodes(values, 15, block), block.codes);
}

void Encode(std::span<const float> values, Q50& block) {
  const BlockCodes codes = SignedCodes(values, 16, block);
  StoreNibbles(codes, block.codes);
  StoreFifthBits(codes, block.fifth_bits);
}

void Encode(std::span<const float> values, Q51& block) {
  const BlockCodes codes = UnsignedCodes(values, 31, block);
  StoreNibbles(codes, block.codes);
  StoreFifthBits(codes, block.fifth_bits);
}

void Encode(std::span<const float> values, Q80& block) {
  const float d = LargestMagnitude(values, Subnormals::kKept) / 127;
  const float inverse = Inverse(d);
  block.d = NearestHalf(d);
  std::ranges::transform(values, block.codes.begin(), [inverse](float value) {
    return static_cast<std::int8_t>(NearestAway(value * inverse));
  });
}

}  // namespace

std::span<const GgmlCodec> GgmlLegacyCodecs() {
  static constexpr GgmlCodec kCodecs[] = {
      CodecOf<Q40>("q4_0"), CodecOf<Q41>("q4_1"), CodecOf<Q50>("q5_0"),
      CodecOf<Q51>("q5_1"), CodecOf<Q80>("q8_0"), CodecOf<Q81>("q8_1"),
  };
  return kCodecs;
}

}  // namespace fourpiles
