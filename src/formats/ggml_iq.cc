// The "iq" types of ggml: super-blocks of 256 whose codes are points of a code book, eight or four
// values each, times a scale for every 32 or 16 values; and iq4, whose codes are single values.
//
// Signs of eight values are a byte, or seven bits where the eighth is their parity: an even number
// of values is negative, as in the E8 lattice.

#include "formats/ggml_code_books.h"
#include "formats/ggml_codec.h"

namespace fourpiles {
namespace {

constexpr int kSuperBlock = 256;
constexpr std::size_t kParts = kSuperBlock / 32;

// The eight signs that seven bits stand for; higher bits are ignored.
unsigned EvenSigns(unsigned bits) {
  const unsigned seven = bits & 0x7f;
  return seven | static_cast<unsigned>(std::popcount(seven) & 1) << 7;
}

// scale × point, negative where the bit of its value is set.
template <std::size_t kValues>
void PutPoint(const std::array<std::int8_t, kValues>& point, float scale, unsigned signs,
              std::span<float> values) {
  for (std::size_t i = 0; i < kValues; ++i) {
    values[i] = Negated(scale * static_cast<float>(point[i]), (signs >> i) & 1);
  }
}

struct Iq2Xxs {
  static constexpr int kElements = kSuperBlock;
  struct Part {  // 32 values
    ByteArray<4> points = {};
    Little32 signs_and_scale;  // 4 × 7 bits, 4 bits
  };
  Half d;
  std::array<Part, kParts> parts = {};
};

void Decode(const Iq2Xxs& block, std::span<float> values) {
  const auto& points = CodeBooksOfGgml().iq2_xxs;
  const float d = block.d.Value();
  for (std::size_t code = 0; code < kSuperBlock / 8; ++code) {
    const Iq2Xxs::Part& part = block.parts[code / 4];
    const std::uint32_t bits = part.signs_and_scale.Value();
    const float scale = d * (0.5F + static_cast<float>(bits >> 28)) * 0.25F;
    PutPoint(points[part.points[code % 4]], scale, EvenSigns(bits >> (7 * (code % 4))),
             values.subspan(8 * code, 8));
  }
}

// The scale of a group of 16 values: four bits, the first in the low half of a byte.
float QuarterScale(float d, const ByteArray<kParts>& scales, std::size_t group) {
  const int scale = (scales[group / 2] >> (4 * (group % 2))) & 0xf;
  return d * (0.5F + static_cast<float>(scale)) * 0.25F;
}

struct Iq2Xs {
  static constexpr int kElements = kSuperBlock;
  Half d;
  std::array<Little16, kSuperBlock / 8> codes = {};  // 9 bits a point, 7 bits of signs
  ByteArray<kParts> scales = {};
};

void Decode(const Iq2Xs& block, std::span<float> values) {
  const auto& points = CodeBooksOfGgml().iq2_xs;
  const float d = block.d.Value();
  for (std::size_t i = 0; i < block.codes.size(); ++i) {
    const unsigned code = block.codes[i].Value();
    PutPoint(points[code & 0x1ff], QuarterScale(d, block.scales, i / 2), EvenSigns(code >> 9),
             values.subspan(8 * i, 8));
  }
}

struct Iq2S {
  static constexpr int kElements = kSuperBlock;
  Half d;
  ByteArray<kSuperBlock / 8> points = {};
  ByteArray<kSuperBlock / 8> signs = {};
  ByteArray<kParts> high_bits = {};  // two more of each point
  ByteArray<kParts> scales = {};
};

void Decode(const Iq2S& block, std::span<float> values) {
  const auto& points = CodeBooksOfGgml().iq2_s;
  const float d = block.d.Value();
  for (std::size_t i = 0; i < block.points.size(); ++i) {
    const unsigned high = (block.high_bits[i / 4] >> (2 * (i % 4))) & 3U;
    PutPoint(points[block.points[i] | high << 8], QuarterScale(d, block.scales, i / 2),
             block.signs[i], values.subspan(8 * i, 8));
  }
}

struct Iq3Xxs {
  static constexpr int kElements = kSuperBlock;
  Half d;
  ByteArray<kSuperBlock / 4> points = {};
  std::array<Little32, kParts> signs_and_scales = {};  // 4 × 7 bits, 4 bits
};

void Decode(const Iq3Xxs& block, std::span<float> values) {
  const auto& points = CodeBooksOfGgml().iq3_xxs;
  const float d = block.d.Value();
  for (std::size_t i = 0; i < block.points.size(); ++i) {
    const std::uint32_t bits = block.signs_and_scales[i / 8].Value();
    const float scale = d * (0.5F + static_cast<float>(bits >> 28)) * 0.5F;
    const unsigned signs = EvenSigns(bits >> (7 * (i % 8 / 2)));
    PutPoint(points[block.points[i]], scale, signs >> (4 * (i % 2)), values.subspan(4 * i, 4));
  }
}

struct Iq3S {
  static constexpr int kElements = kSuperBlock;
  Half d;
  ByteArray<kSuperBlock / 4> points = {};
  ByteArray<kParts> high_bits = {};  // one more of each point
  ByteArray<kSuperBlock / 8> signs = {};
  ByteArray<kParts / 2> scales = {};
};

void Decode(const Iq3S& block, std::span<float> values) {
  const auto& points = CodeBooksOfGgml().iq3_s;
  const float d = block.d.Value();
  for (std::size_t i = 0; i < block.points.size(); ++i) {
    const int part_scale = (block.scales[i / 16] >> (4 * (i / 8 % 2))) & 0xf;
    const float scale = d * static_cast<float>(1 + 2 * part_scale);
    const unsigned high = (block.high_bits[i / 8] >> (i % 8)) & 1U;
    PutPoint(points[block.points[i] | high << 8], scale, block.signs[i / 2] >> (4 * (i % 2)),
             values.subspan(4 * i, 4));
  }
}

// scale × (point ± 1/8).
void PutShiftedPoint(const std::array<std::int8_t, 8>& point, float scale, bool lower,
                     std::span<float> values) {
  const float shift = lower ? -0.125F : 0.125F;
  std::ranges::transform(point, values.begin(), [=](std::int8_t value) {
    return scale * (static_cast<float>(value) + shift);
  });
}

struct Iq1S {
  static constexpr int kElements = kSuperBlock;
  Half d;
  ByteArray<kSuperBlock / 8> points = {};
  std::array<Little16, kParts> parts = {};  // 4 × 3 more bits of a point, 3 of the scale, the shift
};

void Decode(const Iq1S& block, std::span<float> values) {
  const auto& points = CodeBooksOfGgml().iq1;
  const float d = block.d.Value();
  for (std::size_t i = 0; i < block.points.size(); ++i) {
    const unsigned part = block.parts[i / 4].Value();
    const float scale = d * static_cast<float>(2 * ((part >> 12) & 7) + 1);
    const unsigned high = (part >> (3 * (i % 4))) & 7;
    PutShiftedPoint(points[block.points[i] | high << 8], scale, (part & 0x8000) != 0,
                    values.subspan(8 * i, 8));
  }
}

struct Iq1M {
  static constexpr int kElements = kSuperBlock;
  ByteArray<kSuperBlock / 8> points = {};
  ByteArray<kSuperBlock / 16> high_bits = {};  // four a point: 3 more of it, the shift
  // Three bits for every 16 values, four in the low 12 bits; the high 4 bits of all are the
  // float16.
  std::array<Little16, 4> scales = {};
};

void Decode(const Iq1M& block, std::span<float> values) {
  const auto& points = CodeBooksOfGgml().iq1;
  unsigned code = 0;
  for (const Little16 scales : block.scales) {
    code = code >> 4 | (scales.Value() & 0xf000);
  }
  const float d = HalfValue(static_cast<std::uint16_t>(code));
  for (std::size_t i = 0; i < block.points.size(); ++i) {
    const unsigned group_scale = (block.scales[i / 8].Value() >> (3 * (i / 2 % 4))) & 7;
    const float scale = d * static_cast<float>(2 * group_scale + 1);
    const unsigned bits = block.high_bits[i / 2] >> (4 * (i % 2));
    PutShiftedPoint(points[block.points[i] | (bits & 7) << 8], scale, (bits & 8) != 0,
                    values.subspan(8 * i, 8));
  }
}

struct Iq4Nl {
  static constexpr int kElements = 32;
  Half d;
  ByteArray<16> codes = {};
};

void DecodeIq4(std::span<const std::uint8_t> codes, float scale, std::span<float> values) {
  DecodeNibbles(codes, values,
                [scale](unsigned code) { return scale * static_cast<float>(kIq4Values[code]); });
}

void Decode(const Iq4Nl& block, std::span<float> values) {
  DecodeIq4(block.codes, block.d.Value(), values);
}

struct Iq4Xs {
  static constexpr int kElements = kSuperBlock;
  Half d;
  Little16 scales_high;                   // two bits a part
  ByteArray<kParts / 2> scales_low = {};  // four bits a part
  ByteArray<kSuperBlock / 2> codes = {};  // 16 bytes a part
};

void Decode(const Iq4Xs& block, std::span<float> values) {
  const float d = block.d.Value();
  const std::span<const std::uint8_t> codes = block.codes;
  for (std::size_t part = 0; part < kParts; ++part) {
    const int low = (block.scales_low[part / 2] >> (4 * (part % 2))) & 0xf;
    const int high = static_cast<int>((block.scales_high.Value() >> (2 * part)) & 3);
    const float scale = d * static_cast<float>((low | high << 4) - 32);
    DecodeIq4(codes.subspan(16 * part, 16), scale, values.subspan(32 * part, 32));
  }
}

}  // namespace

std::span<const GgmlCodec> GgmlIqCodecs() {
  static constexpr GgmlCodec kCodecs[] = {
      CodecOf<Iq1S>("iq1_s"),   CodecOf<Iq1M>("iq1_m"),   CodecOf<Iq2Xxs>("iq2_xxs"),
      CodecOf<Iq2Xs>("iq2_xs"), CodecOf<Iq2S>("iq2_s"),   CodecOf<Iq3Xxs>("iq3_xxs"),
      CodecOf<Iq3S>("iq3_s"),   CodecOf<Iq4Nl>("iq4_nl"), CodecOf<Iq4Xs>("iq4_xs"),
  };
  return kCodecs;
}

}  // namespace fourpiles
