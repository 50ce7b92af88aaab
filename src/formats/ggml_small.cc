// The types of ggml of one, two and four bits: signs (q1_0), −1 … 2 (q2_0), ternary (tq1_0, tq2_0)
// and float4_e2m1fn with a scale of 8 bits (mxfp4, nvfp4).

#include "formats/ggml_codec.h"
#include "formats/ggml_scale.h"

namespace fourpiles {
namespace {

void SetBits(std::uint8_t& byte, int bits, std::size_t shift) {
  byte = static_cast<std::uint8_t>(byte | bits << shift);
}

struct Q10 {
  static constexpr int kElements = 128;
  Half d;
  ByteArray<16> signs = {};  // a bit a value, the first the lowest; 0: −d
};

void Decode(const Q10& block, std::span<float> values) {
  const float d = block.d.Value();
  for (std::size_t i = 0; i < Q10::kElements; ++i) {
    values[i] = Negated(-d, (block.signs[i / 8] >> (i % 8)) & 1U);
  }
}

// d is the mean magnitude, summed in order.
void Encode(std::span<const float> values, Q10& block) {
  float sum = 0;
  for (std::size_t i = 0; i < Q10::kElements; ++i) {
    sum += std::abs(values[i]);
    SetBits(block.signs[i / 8], static_cast<int>(values[i] >= 0), i % 8);
  }
  block.d = NearestHalf(sum / Q10::kElements);
}

// The largest magnitude is the scale of codes 0, 1 and 2, which are −d, 0 and d.
class TernaryScale {
 public:
  explicit TernaryScale(std::span<const float> values)
      : d_(LargestMagnitude(values, Subnormals::kKept)), inverse_(Inverse(d_)) {}
  Half Stored() const { return NearestHalf(d_); }
  int CodeOf(float value) const { return NearestAway(value * inverse_) + 1; }

 private:
  float d_;
  float inverse_;
};

struct Q20 {
  static constexpr int kElements = 64;
  Half d;
  ByteArray<16> codes = {};  // four in a byte, the first the lowest
};

void Decode(const Q20& block, std::span<float> values) {
  const float d = block.d.Value();
  for (std::size_t i = 0; i < Q20::kElements; ++i) {
    const int code = (block.codes[i / 4] >> (2 * (i % 4))) & 3;
    values[i] = d * static_cast<float>(code - 1);
  }
}

void Encode(std::span<const float> values, Q20& block) {
  const TernaryScale scale(values);
  block.d = scale.Stored();
  for (std::size_t i = 0; i < Q20::kElements; ++i) {
    SetBits(block.codes[i / 4], scale.CodeOf(values[i]), 2 * (i % 4));
  }
}

// Five ternary digits of each byte, the most significant first, and four of each of the last four
// bytes: a byte is the number of five digits × 256 ÷ 243, rounded up, so that a digit is the whole
// part of 3 × the fraction left (compilade, llama.cpp#8151).
struct Tq10 {
  static constexpr int kElements = 256;
  ByteArray<48> fives = {};  // 32 bytes, then 16: byte i of n holds the values i, i + n, i + 2n …
  ByteArray<4> fours = {};
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

// The reverse of DecodeTernary: byte i gets the values i, i + bytes.size(), …
void EncodeTernary(std::span<const float> values, const TernaryScale& scale,
                   std::span<std::uint8_t> bytes) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    int number = 0;
    for (std::size_t digit = 0; digit < 5; ++digit) {  // of four digits, the fifth is 0
      const std::size_t place = digit * bytes.size() + i;
      number = number * 3 + (place < values.size() ? scale.CodeOf(values[place]) : 0);
    }
    bytes[i] = static_cast<std::uint8_t>((number * 256 + 242) / 243);
  }
}

void Encode(std::span<const float> values, Tq10& block) {
  const TernaryScale scale(values);
  block.d = scale.Stored();
  const std::span<std::uint8_t> fives = block.fives;
  EncodeTernary(values.first(160), scale, fives.first(32));
  EncodeTernary(values.subspan(160, 80), scale, fives.last(16));
  EncodeTernary(values.last(16), scale, block.fours);
}

struct Tq20 {
  static constexpr int kElements = 256;
  ByteArray<64> codes =
      {};  // halves of 128 values in 32 bytes: byte i holds i, i + 32, i + 64, i + 96
  Half d;
};

constexpr std::size_t Tq20Byte(std::size_t i) {
  return 32 * (i / 128) + i % 32;
}
constexpr std::size_t Tq20Shift(std::size_t i) {
  return 2 * (i / 32 % 4);
}

void Decode(const Tq20& block, std::span<float> values) {
  const float d = block.d.Value();
  for (std::size_t i = 0; i < Tq20::kElements; ++i) {
    const int code = (block.codes[Tq20Byte(i)] >> Tq20Shift(i)) & 3;
    values[i] = d * static_cast<float>(code - 1);
  }
}

void Encode(std::span<const float> values, Tq20& block) {
  const TernaryScale scale(values);
  block.d = scale.Stored();
  for (std::size_t i = 0; i < Tq20::kElements; ++i) {
    SetBits(block.codes[Tq20Byte(i)], scale.CodeOf(values[i]), Tq20Shift(i));
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
  std::uint8_t exponent = 0;  // float8_e8m0fnu, but 255, its NaN, is 2^128
  ByteArray<16> codes = {};
  static Mxfp4 NotFinite();
};

// NaN for who reads the scale as OCP MX 1.0 has it, infinity for ggml.
Mxfp4 Mxfp4::NotFinite() {
  Mxfp4 block;
  block.exponent = 0xff;
  block.codes.fill(0x77);
  return block;
}

// 2^(exponent − 128): half of the scale.
float HalfScale(std::uint8_t exponent) {
  const std::uint32_t bits = exponent < 2 ? std::uint32_t{1} << (21 + exponent)  // subnormal
                                          : static_cast<std::uint32_t>(exponent - 1) << 23;
  return std::bit_cast<float>(bits);
}

void Decode(const Mxfp4& block, std::span<float> values) {
  DecodeE2m1(block.codes, HalfScale(block.exponent), values);
}

// The scale with which the largest magnitude lies from 4 up to 8; the largest code is 6. The
// logarithm is rounded to float32, as in ggml: just below a power of two it is that of the power.
std::uint8_t ScaleExponent(float largest) {
  if (largest == 0) {
    return 0;
  }
  const auto logarithm = static_cast<float>(std::log2(static_cast<double>(largest)));
  return static_cast<std::uint8_t>(std::max(std::floor(logarithm) - 2 + 127, 0.0F));
}

// The code of the value nearest to this one, the smaller of two.
int NearestE2m1(float value, float half_scale) {
  const float magnitude = std::abs(value);
  int nearest = 0;
  float least_error = magnitude;
  for (int code = 1; code < 8; ++code) {
    const float error = std::abs(
        half_scale * static_cast<float>(kDoubledE2m1[static_cast<std::size_t>(code)]) - magnitude);
    nearest = error < least_error ? code : nearest;
    least_error = std::min(error, least_error);
  }
  return nearest != 0 && value < 0 ? nearest | 8 : nearest;
}

void Encode(std::span<const float> values, Mxfp4& block) {
  block.exponent = ScaleExponent(LargestMagnitude(values, Subnormals::kKept));
  const float half_scale = HalfScale(block.exponent);
  for (std::size_t i = 0; i < values.size(); ++i) {
    SetBits(block.codes[i % 16], NearestE2m1(values[i], half_scale), i < 16 ? 0 : 4);
  }
}

struct Nvfp4 {
  static constexpr int kElements = 64;
  ByteArray<4> scales = {};  // float8_e4m3fn of 16 values each
  ByteArray<32> codes = {};  // 8 bytes a scale
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
