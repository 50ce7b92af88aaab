// The types of ggml of one, two and four bits: signs (q1_0), −1 … 2 (q2_0), ternary (tq1_0, tq2_0)
// and float4_e2m1fn with a scale of 8 bits (mxfp4, nvfp4).

#include "formats/ggml_codec.h"

namespace fourpiles {
namespace {

struct Q10 {
  static constexpr int kElements = 128;
  Half d;
  Bytes<16> signs = {};  // a bit a value, the first the lowest; 0: −d
};

void Decode(const Q10& block, std::span<float> values) {
  const float d = block.d.Value();
  for (std::size_t i = 0; i < Q10::kElements; ++i) {
    values[i] = ((block.signs[i / 8] >> (i % 8)) & 1) != 0 ? d : -d;
  }
}

struct Q20 {
  static constexpr int kElements = 64;
  Half d;
  Bytes<16> codes = {};  // four in a byte, the first the lowest
};

void Decode(const Q20& block, std::span<float> values) {
  const float d = block.d.Value();
  for (std::size_t i = 0; i < Q20::kElements; ++i) {
    const int code = (block.codes[i / 4] >> (2 * (i % 4))) & 3;
    values[i] = d * static_cast<float>(code - 1);
  }
}

// Five ternary digits of each byte, the most significant first, and four of each of the last four
// bytes: a byte is the number of five digits × 256 ÷ 243, rounded up, so that a digit is the whole
// part of 3 × the fraction left (compilade, llama.cpp#8151).
struct Tq10 {
  static constexpr int kElements = 256;
  Bytes<48> fives = {};  // 32 bytes, then 16: byte i of n holds the values i, i + n, i + 2n …
  Bytes<4> fours = {};
  Half d;
};

// Values i of each digit of `bytes`; returns how many values there were.
std::size_t DecodeTernary(std::span<const std::uint8_t> bytes, int digits, float d,
                          std::span<float> values) {
  std::size_t place = 0;
  unsigned power = 1;
  for (int digit = 0; digit < digits; ++digit, power *= 3) {
    for (const unsigned byte : bytes) {
      const unsigned fraction = (byte * power) & 0xff;
      values[place++] = d * static_cast<float>(static_cast<int>(fraction * 3 >> 8) - 1);
    }
  }
  return place;
}

void Decode(const Tq10& block, std::span<float> values) {
  const float d = block.d.Value();
  const std::span<const std::uint8_t> fives = block.fives;
  values = values.subspan(DecodeTernary(fives.first(32), 5, d, values));
  values = values.subspan(DecodeTernary(fives.last(16), 5, d, values));
  DecodeTernary(block.fours, 4, d, values);
}

struct Tq20 {
  static constexpr int kElements = 256;
  Bytes<64> codes = {};  // halves of 128 values in 32 bytes: byte i holds i, i + 32, i + 64, i + 96
  Half d;
};

void Decode(const Tq20& block, std::span<float> values) {
  const float d = block.d.Value();
  for (std::size_t i = 0; i < Tq20::kElements; ++i) {
    const int code = (block.codes[32 * (i / 128) + i % 32] >> (2 * (i / 32 % 4))) & 3;
    values[i] = d * static_cast<float>(code - 1);
  }
}

// float4_e2m1fn, doubled to be whole; so scales are halved. The code of −0 is 0, as in ggml.
constexpr std::array<std::int8_t, 16> kDoubledE2m1 = {0, 1,  2,  3,  4,  6,  8,  12,
                                                      0, -1, -2, -3, -4, -6, -8, -12};

void DecodeE2m1(std::span<const std::uint8_t> codes, float half_scale, std::span<float> values) {
  DecodeNibbles(codes, values, [half_scale](unsigned code) {
    return half_scale * static_cast<float>(kDoubledE2m1[code]);
  });
}

struct Mxfp4 {
  static constexpr int kElements = 32;
  std::uint8_t exponent = 0;  // float8_e8m0fnu, without its NaN
  Bytes<16> codes = {};
};

// 2^(exponent − 128): half of the scale.
float HalfScale(std::uint8_t exponent) {
  const std::uint32_t bits = exponent < 2 ? std::uint32_t{1} << (21 + exponent)  // subnormal
                                          : static_cast<std::uint32_t>(exponent - 1) << 23;
  return std::bit_cast<float>(bits);
}

void Decode(const Mxfp4& block, std::span<float> values) {
  DecodeE2m1(block.codes, HalfScale(block.exponent), values);
}

struct Nvfp4 {
  static constexpr int kElements = 64;
  Bytes<4> scales = {};  // float8_e4m3fn of 16 values each
  Bytes<32> codes = {};  // 8 bytes a scale
};

// Half of a float8_e4m3fn, its sign ignored; the code of NaN is 0.
float HalfE4m3(std::uint8_t code) {
  const int exponent = (code >> 3) & 0xf;
  const int fraction = code & 7;
  if (code == 0x7f) {
    return 0;
  }
  if (exponent == 0) {
    return static_cast<float>(fraction) * 0x1p-10F;
  }
  const auto significand = static_cast<std::uint32_t>(fraction | 8);
  const auto power = std::bit_cast<float>(static_cast<std::uint32_t>(exponent + 127 - 11) << 23);
  return static_cast<float>(significand) * power;
}

void Decode(const Nvfp4& block, std::span<float> values) {
  const std::span<const std::uint8_t> codes = block.codes;
  for (std::size_t group = 0; group < block.scales.size(); ++group) {
    DecodeE2m1(codes.subspan(8 * group, 8), HalfE4m3(block.scales[group]),
               values.subspan(16 * group, 16));
  }
}

}  // namespace

std::span<const GgmlCodec> GgmlSmallCodecs() {
  static constexpr GgmlCodec kCodecs[] = {
      CodecOf<Q10>("q1_0"),   CodecOf<Q20>("q2_0"),    CodecOf<Tq10>("tq1_0"),
      CodecOf<Tq20>("tq2_0"), CodecOf<Mxfp4>("mxfp4"), CodecOf<Nvfp4>("nvfp4"),
  };
  return kCodecs;
}

}  // namespace fourpiles
