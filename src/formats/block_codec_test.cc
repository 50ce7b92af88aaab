#include "formats/block_codec.h"

#include <cfenv>
#include <cmath>
#include <string>
#include <vector>

#ifdef __SSE__
#include <xmmintrin.h>
#endif

#include <gtest/gtest.h>

#include "formats/ggml_blocks.h"
#include "fourpiles/formats.h"

namespace fourpiles {
namespace {

const std::vector<std::string> kNames = {"mxfp8_e4m3",
                                         "mxfp8_e5m2:scale=rceil",
                                         "mxfp6_e2m3",
                                         "mxfp6_e3m2:scale=even",
                                         "mxfp4:scale=ceil",
                                         "mxint8",
                                         "nvfp4",
                                         "nvfp4:tensor-scale=divisor",
                                         "nf4",
                                         "nf4:block=32,double",
                                         "fp4",
                                         "af4",
                                         "dynamic8",
                                         "int8",
                                         "int8:tensor",
                                         "int8:group=5,asymmetric",
                                         "int4:group=7",
                                         "int4:group=128,asymmetric",
                                         "uint8",
                                         "uint4:tensor"};

std::vector<float> Values(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = std::sin(static_cast<float>(i * i + 1)) * 3;
  }
  return values;
}

// Encodes and decodes; the arrays hold the bytes that StorageBytes says.
std::vector<float> RoundTrip(const std::vector<float>& values, BlockTensor& tensor) {
  EXPECT_TRUE(EncodeTensor(values, {}, tensor));
  const bool two_level = tensor.format.kind == BlockKind::kTwoLevel;
  const std::size_t bytes = tensor.codes.size() + tensor.scales.size() + tensor.zero_points.size() +
                            4 * tensor.scale_scales.size() +
                            (two_level || tensor.format.double_quantized ? 4 : 0);
  EXPECT_EQ(bytes, static_cast<std::size_t>(StorageBytes(tensor.shape, tensor.format)));
  std::vector<float> back(values.size());
  DecodeTensor(tensor, back);
  return back;
}

TEST(BlockCodec, ComesCloseToWhatItWasGivenInEveryShape) {
  BlockTensor tensor;  // used again and again: nothing of the last one may show
  for (const std::string& name : kNames) {
    tensor.format = FindBlockFormat(name).value();
    const double coarse = tensor.format.element_bits == 4 ? 0.25 : 0.15;
    for (const TensorShape shape :
         {TensorShape{1, 1}, {1, 3}, {3, 33}, {2, 64}, {5, 17}, {1, 5000}}) {
      tensor.shape = shape;
      const std::vector<float> values =
          Values(static_cast<std::size_t>(shape.rows * shape.columns));
      const std::vector<float> back = RoundTrip(values, tensor);
      for (std::size_t i = 0; i < values.size(); ++i) {
        ASSERT_NEAR(back[i], values[i], 3 * coarse) << name << " " << shape.columns << " " << i;
      }
    }
  }
}

// A row alone, or a whole tensor where scales reach over rows, gives what it gives among others.
TEST(BlockCodec, RowsDoNotSeeEachOther) {
  for (const char* const name :
       {"mxfp4", "mxfp6_e2m3", "mxint8", "int8", "int4:group=16,asymmetric"}) {
    const BlockFormat format = FindBlockFormat(name).value();
    BlockTensor whole = {.format = format, .shape = {3, 45}};
    const std::vector<float> values = Values(135);
    const std::vector<float> together = RoundTrip(values, whole);
    for (std::size_t row = 0; row < 3; ++row) {
      const auto begin = static_cast<std::ptrdiff_t>(row * 45);
      BlockTensor alone = {.format = format, .shape = {1, 45}};
      const std::vector<float> part(values.begin() + begin, values.begin() + begin + 45);
      const std::vector<float> expected(together.begin() + begin, together.begin() + begin + 45);
      EXPECT_EQ(RoundTrip(part, alone), expected) << name;
    }
  }
}

TEST(BlockCodec, WhatWasRoundedOnceStays) {
  for (const char* const name : {"mxfp8_e4m3:scale=floor", "mxfp4:scale=floor", "mxint8"}) {
    BlockTensor tensor = {.format = FindBlockFormat(name).value(), .shape = {4, 40}};
    const std::vector<float> once = RoundTrip(Values(160), tensor);
    EXPECT_EQ(RoundTrip(once, tensor), once) << name;
  }
}

TEST(BlockCodec, EmptyTensorsAreEmpty) {
  for (const std::string& name : kNames) {
    for (const TensorShape shape : {TensorShape{0, 32}, {32, 0}, {0, 0}}) {
      BlockTensor tensor = {.format = FindBlockFormat(name).value(), .shape = shape};
      EXPECT_TRUE(RoundTrip({}, tensor).empty());
      EXPECT_TRUE(tensor.codes.empty() && tensor.scales.empty()) << name;
    }
  }
}

TEST(BlockCodec, ANanMakesItsOwnBlockNan) {
  for (const std::string& name : kNames) {
    BlockTensor tensor = {.format = FindBlockFormat(name).value(), .shape = {2, 40}};
    std::vector<float> values = Values(80);
    values[1] = std::nanf("");
    values[79] = HUGE_VALF;
    const std::vector<float> back = RoundTrip(values, tensor);
    EXPECT_TRUE(std::isnan(back[0]) && std::isnan(back[1])) << name;
    EXPECT_TRUE(std::isnan(back[79])) << name;
  }
}

TEST(BlockCodec, NamesWhatItCannotEncode) {
  BlockTensor tensor = {.format = FindBlockFormat("q4_k").value(), .shape = {1, 256}};
  const Result<void> searched = EncodeTensor(std::vector<float>(256), {}, tensor);
  ASSERT_FALSE(searched);
  EXPECT_EQ(searched.error().text.found, "a type whose encoding ggml searches for");
  tensor = {.format = FindBlockFormat("q4_0").value(), .shape = {2, 33}};
  const Result<void> short_block = CheckShape(tensor, 66);
  ASSERT_FALSE(short_block);
  EXPECT_EQ(short_block.error().text.found, "rows of 33 elements");
  EXPECT_EQ(short_block.error().text.expected, "whole blocks of 32");
}

// ggml_encode.csv has the bytes (ggml_blocks_test.cc); here they go the way of the other formats.
TEST(BlockCodec, GgmlsTypesAreAmongTheOthers) {
  std::vector<float> values(64);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i) - 40;
  }
  for (const std::string_view name : {"q8_0", "ggml_mxfp4"}) {
    BlockTensor tensor = {.format = FindBlockFormat(name).value(), .shape = {2, 32}};
    ASSERT_TRUE(EncodeTensor(values, {}, tensor)) << name;
    std::vector<std::byte> blocks(tensor.codes.size());
    EncodeGgmlBlocks(*FindGgmlCodec(name == "q8_0" ? "q8_0" : "mxfp4"), values, blocks);
    EXPECT_TRUE(tensor.codes == blocks) << name;
    std::vector<float> back(64);
    DecodeTensor(tensor, back);
    EXPECT_NEAR(back[0], -40, name == "q8_0" ? 0.2 : 8) << name;
  }
}

TEST(BlockCodec, TablesRoundToNearestOnly) {
  BlockTensor tensor = {.format = FindBlockFormat("nf4").value(), .shape = {1, 2}};
  const std::vector<float> values(2);
  const Conversion up = {.rounding = RoundingMode::kUp};
  const Result<void> refused = EncodeTensor(values, up, tensor);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().text.where, "nf4");
  EXPECT_EQ(refused.error().text.expected, "a table of values has \"nearest-even\" only");
}

// The arrays of a tensor and what it decodes to, as bits.
std::vector<std::byte> BitsOfRoundTrip(const BlockFormat& format, const std::vector<float>& values,
                                       const Conversion& conversion) {
  const auto columns = static_cast<std::int64_t>(values.size() / 2);
  BlockTensor tensor = {.format = format, .shape = {2, columns}};
  EXPECT_TRUE(EncodeTensor(values, conversion, tensor));
  std::vector<float> back(values.size());
  DecodeTensor(tensor, back);
  std::vector<std::byte> bits = tensor.codes;
  bits.insert(bits.end(), tensor.scales.begin(), tensor.scales.end());
  bits.insert(bits.end(), tensor.zero_points.begin(), tensor.zero_points.end());
  for (const std::span<const float> floats :
       {std::span<const float>(back), std::span<const float>(tensor.scale_scales),
        std::span<const float>(&tensor.tensor_scale, 1),
        std::span<const float>(&tensor.scale_offset, 1)}) {
    const std::span<const std::byte> bytes = std::as_bytes(floats);
    bits.insert(bits.end(), bytes.begin(), bytes.end());
  }
  return bits;
}

// Values of all sizes, subnormals among them.
std::vector<float> WideValues() {
  std::vector<float> values = Values(192);
  for (std::size_t i = 64; i < values.size(); ++i) {
    values[i] = std::ldexp(values[i], i < 128 ? -140 : 3);
  }
  return values;
}

TEST(BlockCodec, GivesTheSameBitsInEveryRoundingModeOfTheProcessor) {
  const std::vector<float> values = WideValues();
  for (const std::string& name : kNames) {
    const BlockFormat format = FindBlockFormat(name).value();
    const std::vector<std::byte> expected = BitsOfRoundTrip(format, values, {});
    for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
      ASSERT_EQ(std::fesetround(mode), 0);
      const std::vector<std::byte> bits = BitsOfRoundTrip(format, values, {});
      std::fesetround(FE_TONEAREST);
      EXPECT_EQ(bits, expected) << name << " in mode " << mode;
    }
  }
}

#ifdef __SSE__
TEST(BlockCodec, GivesTheSameBitsWhereTheProcessorFlushesSubnormals) {
  constexpr unsigned kFlushBoth = 0x8040;  // FTZ and DAZ
  const std::vector<float> values = WideValues();
  for (const std::string& name : kNames) {
    const BlockFormat format = FindBlockFormat(name).value();
    const std::vector<std::byte> expected = BitsOfRoundTrip(format, values, {});
    const unsigned before = _mm_getcsr();
    _mm_setcsr(before | kFlushBoth);
    const std::vector<std::byte> bits = BitsOfRoundTrip(format, values, {});
    _mm_setcsr(before);
    EXPECT_EQ(bits, expected) << name;
  }
}
#endif

bool HasRoundings(const std::string& name) {
  return FindBlockFormat(name).value().kind != BlockKind::kCodeBook;
}

TEST(BlockCodec, DirectedRoundingsKeepTheirDirection) {
  const std::vector<float> values = Values(128);
  for (const std::string& name : kNames) {
    BlockTensor tensor = {.format = FindBlockFormat(name).value(), .shape = {2, 64}};
    // What is past the largest value comes back to it whatever the rounding.
    const bool saturates = tensor.format.kind == BlockKind::kMicroscaling &&
                           tensor.format.scale_rule == ScaleRule::kFloor;
    if (!HasRoundings(name) || saturates) {
      continue;
    }
    std::vector<float> up(128);
    std::vector<float> down(128);
    std::vector<float> inward(128);
    ASSERT_TRUE(EncodeTensor(values, {.rounding = RoundingMode::kUp}, tensor));
    DecodeTensor(tensor, up);
    ASSERT_TRUE(EncodeTensor(values, {.rounding = RoundingMode::kDown}, tensor));
    DecodeTensor(tensor, down);
    ASSERT_TRUE(EncodeTensor(values, {.rounding = RoundingMode::kTowardZero}, tensor));
    DecodeTensor(tensor, inward);
    // Rounded themselves, NVFP4's scales and zero points move the ends of what codes reach.
    const bool moves = tensor.format.kind == BlockKind::kTwoLevel || tensor.format.asymmetric;
    const float slack = moves ? 0.25F : 1e-5F;
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_GE(up[i], values[i] - slack) << name;
      ASSERT_LE(down[i], values[i] + slack) << name;
      ASSERT_LE(std::abs(inward[i]), std::abs(values[i]) + 1e-5F) << name;
    }
  }
}

TEST(BlockCodec, StochasticRoundingIsRightOnAverageAndRepeats) {
  for (const char* const name :
       {"nvfp4", "mxfp4:scale=rceil", "mxfp8_e5m2:scale=rceil", "mxint8", "int4:group=32"}) {
    BlockTensor tensor = {.format = FindBlockFormat(name).value(), .shape = {1, 64000}};
    std::vector<float> values(64000, 0.3F);
    for (std::size_t i = 0; i < values.size(); i += 16) {
      values[i] = 1.0F;
    }
    const Conversion conversion = {.rounding = RoundingMode::kStochastic, .seed = 7};
    ASSERT_TRUE(EncodeTensor(values, conversion, tensor));
    const std::vector<std::byte> codes = tensor.codes;
    std::vector<float> back(values.size());
    DecodeTensor(tensor, back);
    double sum = 0;
    for (std::size_t i = 0; i < back.size(); ++i) {
      sum += i % 16 == 0 ? 0 : back[i];
    }
    // 60,000 draws of a deviation of at most a tenth: one of the mean is 0.0004.
    EXPECT_NEAR(sum / 60000, 0.3, 0.002) << name;
    ASSERT_TRUE(EncodeTensor(values, conversion, tensor));
    EXPECT_EQ(tensor.codes, codes) << name;
    Conversion other = conversion;
    other.seed = 8;
    ASSERT_TRUE(EncodeTensor(values, other, tensor));
    EXPECT_NE(tensor.codes, codes) << name;
  }
}

}  // namespace
}  // namespace fourpiles
