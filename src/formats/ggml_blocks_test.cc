// Against blocks that ggml d99724f2 made: ggml_decode.csv holds blocks of random bytes and what
// `to_float` makes of them, the same from builds with and without fused multiply-adds;
// ggml_encode.csv what `ggml_quantize_chunk` makes of values, and what comes back; iq_grids.csv the
// points of the code books, observed by decoding.

#include "formats/ggml_blocks.h"

#include <bit>
#include <cfenv>
#include <cmath>
#include <limits>
#include <map>

#include <gtest/gtest.h>

#include "base/check.h"
#include "formats/ggml_code_books.h"
#include "formats/ggml_codec.h"
#include "formats/stored_type.h"
#include "formats/test_vectors.h"

namespace fourpiles {
namespace {

std::vector<std::byte> BytesOf(const std::string& hex) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(Hex(hex.substr(i, 2))));
  }
  return bytes;
}

std::vector<float> FloatsOf(const std::string& hex) {
  std::vector<float> values;
  for (std::size_t i = 0; i < hex.size(); i += 8) {
    values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(Hex(hex.substr(i, 8)))));
  }
  return values;
}

std::vector<std::uint32_t> BitsOf(const std::vector<float>& values) {
  std::vector<std::uint32_t> bits;
  for (const float value : values) {
    bits.push_back(std::bit_cast<std::uint32_t>(value));
  }
  return bits;
}

const GgmlCodec& Codec(const std::string& name) {
  const GgmlCodec* codec = FindGgmlCodec(FindStoredType(name)->name);
  CHECK(codec != nullptr);
  return *codec;
}

std::vector<float> Decoded(const GgmlCodec& codec, const std::vector<std::byte>& blocks) {
  const std::size_t count = blocks.size() / static_cast<std::size_t>(codec.block_bytes);
  std::vector<float> values(count * static_cast<std::size_t>(codec.block_elements));
  DecodeGgmlBlocks(codec, blocks, values);
  return values;
}

std::vector<std::byte> Encoded(const GgmlCodec& codec, const std::vector<float>& values) {
  const std::size_t count = values.size() / static_cast<std::size_t>(codec.block_elements);
  std::vector<std::byte> blocks(count * static_cast<std::size_t>(codec.block_bytes));
  EncodeGgmlBlocks(codec, values, blocks);
  return blocks;
}

std::vector<const GgmlCodec*> Codecs() {
  std::vector<const GgmlCodec*> codecs;
  for (const StoredType& type : StoredTypes()) {
    if (type.source.starts_with("ggml ")) {
      codecs.push_back(FindGgmlCodec(type.name));
    }
  }
  return codecs;
}

std::vector<const GgmlCodec*> Encoders() {
  std::vector<const GgmlCodec*> encoders;
  for (const GgmlCodec* codec : Codecs()) {
    if (codec->encode != nullptr) {
      encoders.push_back(codec);
    }
  }
  return encoders;
}

// One block of the type, of values that all are `value`.
std::vector<std::byte> BlockOf(std::string_view type, float value) {
  const GgmlCodec& codec = Codec(std::string(type));
  return Encoded(codec, std::vector<float>(static_cast<std::size_t>(codec.block_elements), value));
}

TEST(GgmlBlocks, EveryStoredTypeOfGgmlIsDecoded) {
  int count = 0;
  for (const StoredType& type : StoredTypes()) {
    const GgmlCodec* codec = FindGgmlCodec(type.name);
    ASSERT_EQ(codec != nullptr, type.source.starts_with("ggml ")) << type.name;
    EXPECT_EQ(CanDecodeGgml(type.name), codec != nullptr);
    if (codec != nullptr) {
      EXPECT_EQ(codec->block_elements, type.block_elements) << type.name;
      EXPECT_EQ(codec->block_bytes * 8, type.block_bits) << type.name;
      ++count;
    }
  }
  EXPECT_EQ(count, 27);
}

TEST(GgmlBlocks, DecodeAsGgml) {
  const auto rows = ReadVectors("ggml_decode.csv");
  ASSERT_EQ(rows.size(), 173U);
  std::map<std::string, int> blocks;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const GgmlCodec& codec = Codec(rows[i][0]);
    EXPECT_EQ(BitsOf(Decoded(codec, BytesOf(rows[i][1]))), BitsOf(FloatsOf(rows[i][2])))
        << rows[i][0] << " " << rows[i][1];
    ++blocks[rows[i][0]];
  }
  EXPECT_EQ(blocks.size(), 25U);
}

TEST(GgmlBlocks, DecodeWhatGgmlEncoded) {
  const auto rows = ReadVectors("ggml_encode.csv");
  ASSERT_EQ(rows.size(), 119U);
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const std::vector<float> decoded = Decoded(Codec(rows[i][0]), BytesOf(rows[i][3]));
    EXPECT_EQ(BitsOf(decoded), BitsOf(FloatsOf(rows[i][4]))) << rows[i][0] << " " << rows[i][1];
  }
}

TEST(GgmlBlocks, EncodeAsGgml) {
  const auto rows = ReadVectors("ggml_encode.csv");
  std::map<std::string_view, int> blocks;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const GgmlCodec& codec = Codec(rows[i][0]);
    if (codec.encode != nullptr) {
      EXPECT_EQ(Encoded(codec, FloatsOf(rows[i][2])), BytesOf(rows[i][3]))
          << rows[i][0] << " " << rows[i][1];
      ++blocks[codec.type];
    }
  }
  for (const GgmlCodec* codec : Codecs()) {  // no encoder without vectors
    EXPECT_EQ(CanEncodeGgml(codec->type), blocks.contains(codec->type)) << codec->type;
  }
}

// ggml-common.h: block_q8_1 is { d, s, qs[32] }, block_q8_K { float d, qs[256], bsums[16] }. ggml
// has no `to_float` for them as tensors are never stored in them; the value is d × code.
TEST(GgmlBlocks, TypesOfActivationsAreTheirScaleTimesTheirCode) {
  std::vector<std::byte> q8_1 = BytesOf("0038ffff01fe7f80");  // d = 0.5
  q8_1.resize(36);
  const std::vector<float> of_q8_1 = Decoded(Codec("q8_1"), q8_1);
  EXPECT_EQ(std::vector<float>(of_q8_1.begin(), of_q8_1.begin() + 5),
            std::vector<float>({0.5, -1, 63.5, -64, 0}));
  std::vector<std::byte> q8_k = BytesOf("0000803e01fe7f80");  // d = 0.25
  q8_k.resize(292, std::byte{0xff});
  const std::vector<float> of_q8_k = Decoded(Codec("q8_k"), q8_k);
  EXPECT_EQ(std::vector<float>(of_q8_k.begin(), of_q8_k.begin() + 5),
            std::vector<float>({0.25, -0.5, 31.75, -32, -0.25}));
}

TEST(GgmlBlocks, BytesOfZeroAreZeros) {
  for (const GgmlCodec* codec : Codecs()) {
    const auto bytes = static_cast<std::size_t>(codec->block_bytes);
    for (const float value : Decoded(*codec, std::vector<std::byte>(2 * bytes))) {
      ASSERT_EQ(value, 0) << codec->type;
    }
  }
}

// Bytes of ones make every float16 and float32 a NaN. mxfp4 and nvfp4 have scales without NaN:
// ggml's e8m0 255 is 2^128, and 2^127 × −12 infinite.
TEST(GgmlBlocks, NanScalesMakeTheOneNan) {
  for (const GgmlCodec* codec : Codecs()) {
    const std::vector<std::byte> ones(static_cast<std::size_t>(codec->block_bytes),
                                      std::byte{0xff});
    for (const float value : Decoded(*codec, ones)) {
      if (codec->type == "mxfp4") {
        ASSERT_EQ(value, -HUGE_VALF);
      } else if (codec->type != "nvfp4") {
        ASSERT_EQ(std::bit_cast<std::uint32_t>(value), 0x7fc00000U) << codec->type;
      }
    }
  }
}

TEST(GgmlBlocks, InfiniteScalesMakeInfinitiesAndTheOneNan) {
  std::vector<std::byte> block = BytesOf("007c80f7");  // codes 0, 7, …, and 8, 15, … of 16 later
  block.resize(18);
  const std::vector<float> values = Decoded(Codec("q4_0"), block);
  EXPECT_EQ(values[0], -HUGE_VALF);
  EXPECT_EQ(values[1], -HUGE_VALF);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(values[16]), 0x7fc00000U);
  EXPECT_EQ(values[17], HUGE_VALF);
}

// e8m0 0 is 2^−127, a subnormal of float32, as is half of it, the value of code 1 (OCP MX 1.0 5.4).
TEST(GgmlBlocks, SmallestScalesKeepTheirValues) {
  std::vector<std::byte> block = BytesOf("0021");
  block.resize(17);
  EXPECT_EQ(Decoded(Codec("mxfp4"), block)[0], 0x1p-128F);
  EXPECT_EQ(Decoded(Codec("mxfp4"), block)[16], 0x1p-127F);
}

// quantize_row_q4_0_ref: d = 0 ÷ −8 is −0, and each code 8; q4_1: m = 0; q8_0: d = 0 ÷ 127.
TEST(GgmlBlocks, ZerosEncodeToZeroScales) {
  EXPECT_EQ(BlockOf("q4_0", 0), BytesOf("008088888888888888888888888888888888"));
  EXPECT_EQ(BlockOf("q4_1", 0), std::vector<std::byte>(20));
  EXPECT_EQ(BlockOf("q5_1", 0), std::vector<std::byte>(24));
  EXPECT_EQ(BlockOf("q8_0", 0), std::vector<std::byte>(34));
}

// 10^6 ÷ −8 is beyond 65504: the scale is infinite, and so is what comes back, as in ggml.
TEST(GgmlBlocks, ScalesBeyondFloat16AreInfinite) {
  const std::vector<std::byte> block = BlockOf("q4_0", 1e6F);
  EXPECT_EQ(std::vector<std::byte>(block.begin(), block.begin() + 3), BytesOf("00fc00"));
  EXPECT_EQ(Decoded(Codec("q4_0"), block)[0], HUGE_VALF);
}

TEST(GgmlBlocks, ScalesWithoutInverseGetTheCodeZero) {
  for (const GgmlCodec* codec : Encoders()) {
    if (codec->type == "mxfp4") {
      continue;  // divides by nothing
    }
    for (const float value : {0x1p-149F, -0x1p-149F, 0x1p-130F, -0x1p-127F}) {
      for (const float decoded : Decoded(*codec, BlockOf(codec->type, value))) {
        ASSERT_EQ(decoded, 0) << codec->type << " " << value;
      }
    }
  }
  EXPECT_EQ(BlockOf("q4_0", 0x1p-130F), BytesOf("008000000000000000000000000000000000"));
  EXPECT_EQ(BlockOf("q8_0", 0x1p-130F), std::vector<std::byte>(34));
}

TEST(GgmlBlocks, FiniteExtremesHaveInfiniteScales) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  for (const GgmlCodec* codec : Encoders()) {
    std::vector<float> values(static_cast<std::size_t>(codec->block_elements), kLargest);
    values[3] = -kLargest;  // the range of both is infinite, as is the sum of magnitudes
    values[5] = 0x1p-149F;
    const bool has_half = codec->type != "mxfp4";  // its scales go up to 2^127
    for (const float decoded : Decoded(*codec, Encoded(*codec, values))) {
      EXPECT_EQ(std::isfinite(decoded), !has_half) << codec->type;
    }
  }
}

TEST(GgmlBlocks, BlocksWithANanOrAnInfinityAreNan) {
  for (const GgmlCodec* codec : Encoders()) {
    const auto count = static_cast<std::size_t>(codec->block_elements);
    for (const float bad : {std::nanf(""), -std::nanf("1"), HUGE_VALF, -HUGE_VALF}) {
      std::vector<float> values(3 * count, 1);
      values[count + 7] = bad;
      const std::vector<float> decoded = Decoded(*codec, Encoded(*codec, values));
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (i / count == 1) {
          ASSERT_EQ(std::bit_cast<std::uint32_t>(decoded[i]),
                    codec->type == "mxfp4" ? 0x7f800000U : 0x7fc00000U)
              << codec->type;
        } else {
          ASSERT_NEAR(decoded[i], 1, 0.001) << codec->type;
        }
      }
    }
  }
  std::vector<std::byte> nan = BytesOf("007e");
  nan.resize(34);
  EXPECT_EQ(BlockOf("q8_0", HUGE_VALF), nan);
}

// Rounding away from zero at halves, and not just below: 127 makes d = 1.
TEST(GgmlBlocks, BytesRoundHalvesAwayFromZero) {
  std::vector<float> values = {127, 0.5, -0.5, 0.49999997F, 1.5, 2.5, -2.5, 2.4999998F};
  values.resize(32);
  const std::vector<std::byte> block = Encoded(Codec("q8_0"), values);
  EXPECT_EQ(std::vector<std::byte>(block.begin(), block.begin() + 10),
            BytesOf("003c7f01ff000203fd02"));
}

// floor(log2 4) − 2 is 0, the scale 1, and so is that of 8 − 2^−21; ggml rounds the logarithm of
// the value below 8 up to 3, the scale 2. A tie goes to the lower code.
TEST(GgmlBlocks, Mxfp4ScalesAreThoseOfGgmlBelowPowersOfTwo) {
  const std::pair<float, int> scales[] = {
      {4, 127},       {7, 127},       {0x1.fffffep2F, 128},  {8, 128},
      {0x1p-126F, 0}, {0x1p-149F, 0}, {0x1.fffffep127F, 253}};
  for (const auto& [largest, exponent] : scales) {
    EXPECT_EQ(static_cast<int>(BlockOf("mxfp4", largest)[0]), exponent) << largest;
  }
  std::vector<float> values = {6, 5, 3.5, -2.5, 0.25, -0.25};
  values.resize(32);
  const std::vector<std::byte> block = Encoded(Codec("mxfp4"), values);
  EXPECT_EQ(std::vector<std::byte>(block.begin(), block.begin() + 7), BytesOf("7f0706050c0000"));
}

// --- Whatever the processor is set to ---

class ProcessorMode {
 public:
  explicit ProcessorMode(int rounding) {
    std::fegetenv(&before_);
    std::fesetround(rounding);
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040U);  // flush to zero, inputs too
#endif
  }
  ~ProcessorMode() {
    std::fesetenv(&before_);
  }
  ProcessorMode(const ProcessorMode&) = delete;
  ProcessorMode& operator=(const ProcessorMode&) = delete;

 private:
  std::fenv_t before_ = {};
};

TEST(GgmlBlocks, DoNotDependOnRoundingModeAndFlushBits) {
  for (const auto& row : ReadVectors("ggml_encode.csv")) {
    if (row[0] == "type") {
      continue;
    }
    const GgmlCodec& codec = Codec(row[0]);
    const std::vector<float> values = FloatsOf(row[2]);
    const std::vector<std::byte> bytes = BytesOf(row[3]);
    for (const int rounding : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
      std::vector<float> decoded;
      std::vector<std::byte> encoded = bytes;
      {
        const ProcessorMode mode(rounding);
        decoded = Decoded(codec, bytes);
        if (codec.encode != nullptr) {
          encoded = Encoded(codec, values);
        }
        EXPECT_EQ(std::fegetround(), rounding);
      }
      EXPECT_EQ(BitsOf(decoded), BitsOf(FloatsOf(row[4]))) << row[0];
      EXPECT_EQ(encoded, bytes) << row[0];
    }
  }
  const ProcessorMode mode(FE_UPWARD);
  const std::vector<std::byte> smallest(17, std::byte{0x11});
  std::vector<std::byte> block = smallest;
  block[0] = std::byte{0};
  EXPECT_EQ(std::bit_cast<std::uint32_t>(Decoded(Codec("mxfp4"), block)[0]), 0x00200000U);
}

// --- Code books ---

template <std::size_t kPoints, std::size_t kValues>
void AddBook(const std::string& name, const CodeBook<kPoints, kValues>& book,
             std::map<std::string, std::vector<std::string>>& books) {
  for (const auto& point : book) {
    std::string text;
    for (const int value : point) {
      text += (text.empty() ? "" : " ") + std::to_string(value);
    }
    books[name].push_back(text);
  }
}

TEST(GgmlCodeBooks, HoldThePointsThatDecodingShows) {
  std::map<std::string, std::vector<std::string>> books;
  AddBook("iq1s(2048x8)", CodeBooksOfGgml().iq1, books);
  AddBook("iq2xxs(256x8)", CodeBooksOfGgml().iq2_xxs, books);
  AddBook("iq2xs(512x8)", CodeBooksOfGgml().iq2_xs, books);
  AddBook("iq2s(1024x8)", CodeBooksOfGgml().iq2_s, books);
  AddBook("iq3xxs(256x4)", CodeBooksOfGgml().iq3_xxs, books);
  AddBook("iq3s(512x4)", CodeBooksOfGgml().iq3_s, books);
  for (const int value : kIq4Values) {
    books["iq4nl(16)"].push_back(std::to_string(value));
  }
  std::map<std::string, std::vector<std::string>> observed;
  for (const auto& row : ReadVectors("iq_grids.csv")) {
    if (row[0] != "codebook") {
      auto& book = observed[row[0]];
      ASSERT_EQ(std::to_string(book.size()), row[1]);
      book.push_back(row[2]);
    }
  }
  EXPECT_EQ(observed.erase("ksigns_iq2xs(128x8 sign bits)"), 1U);  // decoding computes them
  EXPECT_EQ(books, observed);
}

}  // namespace
}  // namespace fourpiles
