// The "K" types of ggml: super-blocks of 256 with a float16 scale, whose groups of 16 or 32 have
// scales of their own, and in some types minima, in 4, 6 or 8 bits. A value is d × scale × code −
// dmin × minimum: products that fit in 24 bits, so only the subtraction rounds.
//
// Codes of two bits lie in halves of 128 values, 32 bytes each: byte i holds the values i, i + 32,
// i + 64 and i + 96 of its half. So the 16 codes of group g stand at one shift in 16 bytes.

#include "formats/ggml_codec.h"

namespace fourpiles {
namespace {

constexpr int kSuperBlock = 256;
constexpr std::size_t kGroups = kSuperBlock / 16;
constexpr std::size_t kWideGroups = kSuperBlock / 32;

// Where the two-bit codes of a group of 16 begin, and their place in the byte.
constexpr std::size_t PairOffset(std::size_t group) {
  return 32 * (group / 8) + 16 * (group % 2);
}
constexpr int PairShift(std::size_t group) {
  return static_cast<int>(group / 2 % 4) * 2;
}

struct Q2K {
  static constexpr int kElements = kSuperBlock;
  ByteArray<16> scales = {};  // low half the scale, high half the minimum
  ByteArray<64> codes = {};
  Half d;
  Half dmin;
};

void Decode(const Q2K& block, std::span<float> values) {
  const float d = block.d.Value();
  const float dmin = block.dmin.Value();
  for (std::size_t group = 0; group < kGroups; ++group) {
    const float scale = d * static_cast<float>(block.scales[group] & 0xf);
    const float minimum = dmin * static_cast<float>(block.scales[group] >> 4);
    for (std::size_t i = 0; i < 16; ++i) {
      const int code = (block.codes[PairOffset(group) + i] >> PairShift(group)) & 3;
      values[group * 16 + i] = scale * static_cast<float>(code) - minimum;
    }
  }
}

struct Q3K {
  static constexpr int kElements = kSuperBlock;
  ByteArray<32> high_bits = {};  // bit j of byte i: of the value 32 × j + i; where it is 0, 4 less
  ByteArray<64> codes = {};
  ByteArray<12> scales = {};  // the low four bits of 16 in 8 bytes, then the high two in 4
  Half d;
};

int GroupScale(const Q3K& block, std::size_t group) {
  const int low = (block.scales[group % 8] >> (group < 8 ? 0 : 4)) & 0xf;
  const int high = (block.scales[8 + group % 4] >> (2 * (group / 4))) & 3;
  return (low | high << 4) - 32;
}

void Decode(const Q3K& block, std::span<float> values) {
  const float d = block.d.Value();
  for (std::size_t group = 0; group < kGroups; ++group) {
    const float scale = d * static_cast<float>(GroupScale(block, group));
    for (std::size_t i = 0; i < 16; ++i) {
      const int low = (block.codes[PairOffset(group) + i] >> PairShift(group)) & 3;
      const int high = (block.high_bits[16 * (group % 2) + i] >> (group / 2)) & 1;
      values[group * 16 + i] = scale * static_cast<float>((low | high << 2) - 4);
    }
  }
}

// Scale and minimum of a group of 32, six bits each, eight of both in 12 bytes: those of the groups
// 0 … 3 are the low six bits of the bytes 0 … 3 and 4 … 7, whose high two bits are also those of
// the groups 4 … 7, whose low four bits are the halves of the bytes 8 … 11.
struct ScaleAndMinimum {
  int scale = 0;
  int minimum = 0;
};

ScaleAndMinimum GroupScale(const ByteArray<12>& scales, std::size_t group) {
  if (group < 4) {
    return {scales[group] & 0x3f, scales[group + 4] & 0x3f};
  }
  return {(scales[group + 4] & 0xf) | (scales[group - 4] >> 6) << 4,
          (scales[group + 4] >> 4) | (scales[group] >> 6) << 4};
}

struct Q4K {
  static constexpr int kElements = kSuperBlock;
  Half d;
  Half dmin;
  ByteArray<12> scales = {};
  ByteArray<128> codes =
      {};  // 32 bytes: the low halves are a group of 32, the high halves the next
};

struct Q5K {
  static constexpr int kElements = kSuperBlock;
  Half d;
  Half dmin;
  ByteArray<12> scales = {};
  ByteArray<32> fifth_bits = {};  // bit j of byte i: of value i of the group j
  ByteArray<128> codes = {};
};

// The code of value i of a group of 32.
int GroupCode(const Q4K& block, std::size_t group, std::size_t i) {
  return (block.codes[32 * (group / 2) + i] >> (4 * (group % 2))) & 0xf;
}
int GroupCode(const Q5K& block, std::size_t group, std::size_t i) {
  const int low = (block.codes[32 * (group / 2) + i] >> (4 * (group % 2))) & 0xf;
  return low | ((block.fifth_bits[i] >> group) & 1) << 4;
}

template <typename Block>
void DecodeWideGroups(const Block& block, std::span<float> values) {
  const float d = block.d.Value();
  const float dmin = block.dmin.Value();
  for (std::size_t group = 0; group < kWideGroups; ++group) {
    const ScaleAndMinimum of_group = GroupScale(block.scales, group);
    const float scale = d * static_cast<float>(of_group.scale);
    const float minimum = dmin * static_cast<float>(of_group.minimum);
    for (std::size_t i = 0; i < 32; ++i) {
      values[group * 32 + i] = scale * static_cast<float>(GroupCode(block, group, i)) - minimum;
    }
  }
}
void Decode(const Q4K& block, std::span<float> values) {
  DecodeWideGroups(block, values);
}
void Decode(const Q5K& block, std::span<float> values) {
  DecodeWideGroups(block, values);
}

struct Q6K {
  static constexpr int kElements = kSuperBlock;
  ByteArray<128> low_bits = {};  // halves of 128 values in 64 bytes: byte i holds i and i + 64
  ByteArray<64> high_bits = {};  // pairs, as two-bit codes
  std::array<std::int8_t, kGroups> scales = {};
  Half d;
};

void Decode(const Q6K& block, std::span<float> values) {
  const float d = block.d.Value();
  for (std::size_t group = 0; group < kGroups; ++group) {
    const float scale = d * static_cast<float>(block.scales[group]);
    const std::size_t low_offset = 64 * (group / 8) + 16 * (group % 4);
    const int low_shift = group % 8 < 4 ? 0 : 4;
    for (std::size_t i = 0; i < 16; ++i) {
      const int low = (block.low_bits[low_offset + i] >> low_shift) & 0xf;
      const int high = (block.high_bits[PairOffset(group) + i] >> PairShift(group)) & 3;
      values[group * 16 + i] = scale * static_cast<float>((low | high << 4) - 32);
    }
  }
}

struct Q8K {
  static constexpr int kElements = kSuperBlock;
  Little32 d;  // a float32
  std::array<std::int8_t, kSuperBlock> codes = {};
  std::array<Little16, kGroups> sums = {};  // of 16 codes each, for dot products
};

void Decode(const Q8K& block, std::span<float> values) {
  const auto d = std::bit_cast<float>(block.d.Value());
  std::ranges::transform(block.codes, values.begin(),
                         [d](int code) { return d * static_cast<float>(code); });
}

}  // namespace

std::span<const GgmlCodec> GgmlKCodecs() {
  static constexpr GgmlCodec kCodecs[] = {
      CodecOf<Q2K>("q2_k"), CodecOf<Q3K>("q3_k"), CodecOf<Q4K>("q4_k"),
      CodecOf<Q5K>("q5_k"), CodecOf<Q6K>("q6_k"), CodecOf<Q8K>("q8_k"),
  };
  return kCodecs;
}

}  // namespace fourpiles
