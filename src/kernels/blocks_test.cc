// The block kernels against the scalar codecs, which are tested against vectors made outside this
// project, on every instruction set of this machine.

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "base/float_environment.h"
#include "formats/block_codec.h"
#include "fourpiles/arrays.h"
#include "kernels/each_target.h"

namespace fourpiles {
namespace {

// Blocks of every kind: of any magnitude, near ties, zeros, subnormal, with NaN and infinity.
std::vector<float> Inputs(std::size_t count) {
  std::mt19937 random(5);
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t block = i / 16;
    const auto bits = static_cast<std::uint32_t>(random());
    const float normal = std::normal_distribution<float>()(random);
    switch (block % 9) {
      case 0:
        values[i] = 0.02F * normal;
        break;
      case 1:
        values[i] = std::ldexp(normal, static_cast<int>(block % 250) - 125);
        break;
      case 2:
        values[i] = static_cast<float>(static_cast<int>(bits % 33) - 16) / 4;
        break;
      case 3:
        values[i] = block % 2 == 0 ? 0.0F : -0.0F;
        break;
      case 4:
        values[i] = std::bit_cast<float>(bits & 0x807fffffU);  // subnormal
        break;
      case 5:
        values[i] = block % 18 == 5 && i % 8 == 7  // of either sign
                        ? std::bit_cast<float>((i % 16 == 7 ? 0x7f800000U : 0xff800000U) | bits % 2)
                        : normal;
        break;
      case 6:
        values[i] = std::bit_cast<float>(bits & 0xbfffffffU);
        break;
      case 7:
        values[i] = (bits & 1) != 0 ? 1.75F : -1.75F;
        break;
      default:
        values[i] = i % 16 == 3 ? 100.0F * normal : 1e-3F * normal;
    }
  }
  return values;
}

constexpr std::string_view kNames[] = {"mxfp8_e4m3",
                                       "mxfp8_e5m2:scale=rceil",
                                       "mxfp6_e2m3:scale=even",
                                       "mxfp6_e3m2:scale=ceil",
                                       "mxfp4",
                                       "mxfp4:scale=rceil",
                                       "mxfp4:scale=even",
                                       "mxint8",
                                       "mxint8:scale=ceil",
                                       "nvfp4",
                                       "nvfp4:tensor-scale=divisor",
                                       "nf4",
                                       "nf4:block=32,double",
                                       "fp4",
                                       "af4",
                                       "dynamic8",
                                       "int8",
                                       "int8:tensor",
                                       "int4",
                                       "int4:group=32",
                                       "int4:group=24,asymmetric",
                                       "int8:asymmetric",
                                       "uint8",
                                       "uint8:tensor",
                                       "uint4",
                                       "uint4:group=32",
                                       "q8_0",
                                       "q4_0",
                                       "q5_1"};

std::vector<Conversion> ConversionsFor(std::string_view name) {
  std::vector<Conversion> conversions = {{}};
  if (name.starts_with("mx") || name.starts_with("nv")) {
    for (const auto rounding :
         {RoundingMode::kNearestAway, RoundingMode::kTowardZero, RoundingMode::kUp,
          RoundingMode::kToOdd, RoundingMode::kStochastic}) {
      conversions.push_back({.rounding = rounding, .seed = 3, .first_index = 7});
    }
    conversions.push_back({.subnormals = Subnormals::kFlushedOnInput});
    conversions.push_back({.subnormals = Subnormals::kFlushedOnOutput});
  }
  return conversions;
}

bool SameBits(std::span<const float> a, std::span<const float> b) {
  return std::ranges::equal(std::as_bytes(a), std::as_bytes(b));
}

void ExpectSame(const BlockTensor& got, const BlockTensor& wanted, const std::string& what) {
  EXPECT_TRUE(got.scales == wanted.scales) << what;
  EXPECT_TRUE(got.codes == wanted.codes) << what;
  EXPECT_TRUE(got.zero_points == wanted.zero_points) << what;
  EXPECT_TRUE(SameBits(got.scale_scales, wanted.scale_scales)) << what;
  EXPECT_EQ(std::bit_cast<std::uint32_t>(got.scale_offset),
            std::bit_cast<std::uint32_t>(wanted.scale_offset))
      << what;
  EXPECT_EQ(std::bit_cast<std::uint32_t>(got.tensor_scale),
            std::bit_cast<std::uint32_t>(wanted.tensor_scale))
      << what;
}

class BlocksOf : public testing::TestWithParam<std::string_view> {};

TEST_P(BlocksOf, KernelsGiveTheScalarBlocks) {
  const BlockFormat format = FindBlockFormat(GetParam()).value();
  const std::vector<float> values = Inputs(32 * 96);
  for (const Conversion& conversion : ConversionsFor(GetParam())) {
    for (const TensorShape shape : {TensorShape{32, 96}, TensorShape{1, 32 * 96}}) {
      BlockTensor wanted = {.format = format, .shape = shape};
      ASSERT_TRUE(EncodeTensor(values, conversion, wanted));
      std::vector<float> decoded(values.size());
      DecodeTensor(wanted, decoded);
      ForEachTarget([&](const char* target) {
        const std::string what = target + (" " + std::string(Name(conversion.rounding)));
        BlockTensor got = {.format = format, .shape = shape};
        ASSERT_TRUE(EncodeBlocks(values, conversion, got));
        ExpectSame(got, wanted, what);
        std::vector<float> back(values.size());
        ASSERT_TRUE(DecodeBlocks(wanted, back));
        EXPECT_TRUE(SameBits(back, decoded)) << what;
      });
    }
  }
}

// A NaN or infinity sets the scale of NVFP4's tensor aside; here there are none.
TEST_P(BlocksOf, TensorsOfAnyScale) {
  const BlockFormat format = FindBlockFormat(GetParam()).value();
  for (const int exponent : {-140, -120, -60, -1, 0, 1, 60, 120}) {
    std::mt19937 random(9);
    std::vector<float> values(512);
    for (float& value : values) {
      value = std::ldexp(std::normal_distribution<float>()(random), exponent);
    }
    BlockTensor wanted = {.format = format, .shape = {4, 128}};
    ASSERT_TRUE(EncodeTensor(values, {}, wanted));
    ForEachTarget([&](const char* target) {
      BlockTensor got = {.format = format, .shape = {4, 128}};
      ASSERT_TRUE(EncodeBlocks(values, {}, got));
      ExpectSame(got, wanted, target + std::to_string(exponent));
    });
  }
}

// Quotients on and just beside halfway, which a product with the inverse cannot tell apart: scales
// of few bits, so that there are ties, and of 24.
TEST(IntegerBlocks, TiesAreDecidedExactly) {
  for (const std::string_view name : {"int8:group=512", "uint8:group=512", "int4:group=64"}) {
    const BlockFormat format = FindBlockFormat(name).value();
    const auto group = static_cast<std::size_t>(format.block_elements);
    const int most = (1 << (format.element_bits - (format.asymmetric ? 0 : 1))) - 1;
    std::mt19937 random(4);
    std::vector<float> values(64 * group);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::size_t g = i / group;
      const auto fraction = static_cast<std::uint32_t>(g * 0x9e3779b1U) >> 9;
      const float scale =
          std::bit_cast<float>((127U << 23) | (g % 2 == 0 ? fraction & 0x7fff00U : fraction));
      const std::size_t place = i % group;
      const int steps = static_cast<int>(place / 3 % static_cast<std::size_t>(most));
      const auto middle = static_cast<float>((steps + 0.5) * static_cast<double>(scale));
      const float beside = std::bit_cast<float>(std::bit_cast<std::uint32_t>(middle) +
                                                static_cast<std::uint32_t>(place % 3) - 1);
      values[i] = place == 0 ? static_cast<float>(most) * scale
                             : (random() % 2 == 0 || format.asymmetric ? beside : -beside);
    }
    BlockTensor wanted = {.format = format, .shape = {64, static_cast<std::int64_t>(group)}};
    ASSERT_TRUE(EncodeTensor(values, {}, wanted));
    ForEachTarget([&](const char* target) {
      BlockTensor got = {.format = format, .shape = wanted.shape};
      ASSERT_TRUE(EncodeBlocks(values, {}, got));
      ExpectSame(got, wanted, target + std::string(name));
    });
  }
}

float Beside(double value, int places) {
  return std::bit_cast<float>(std::bit_cast<std::int32_t>(static_cast<float>(value)) + places);
}

// Blocks whose scale, and elements whose code, lie halfway and just beside, for every scale.
TEST(NvFp4Blocks, TiesAreDecidedExactly) {
  const NumberFormat scales = FindFormat("float8_e4m3fn").value();
  const NumberFormat elements = FindFormat("float4_e2m1fn").value();
  for (const double tensor : {1.0, 3.0, 0x1p-9}) {
    std::vector<float> values = {static_cast<float>(6 * 448 * tensor)};
    const auto end_block = [&] { values.resize((values.size() + 15) / 16 * 16); };
    for (std::uint64_t s = 1; s < 127; ++s) {
      const double scale = Decode(s, scales) * tensor;
      const double scale_before = Decode(s - 1, scales) * tensor;
      for (const int places : {-1, 0, 1}) {
        end_block();
        values.push_back(Beside(-6 * (scale_before + scale) / 2, places));
        end_block();
        values.push_back(static_cast<float>(6 * scale));
        for (std::uint64_t c = 1; c < 8; ++c) {
          const double middle = (Decode(c - 1, elements) + Decode(c, elements)) / 2 * scale;
          values.insert(values.end(), {Beside(middle, places), Beside(-middle, places)});
        }
      }
    }
    end_block();
    for (const std::string_view name : {"nvfp4", "nvfp4:tensor-scale=divisor"}) {
      const BlockFormat format = FindBlockFormat(name).value();
      BlockTensor wanted = {.format = format,
                            .shape = {1, static_cast<std::int64_t>(values.size())}};
      ASSERT_TRUE(EncodeTensor(values, {}, wanted));
      ForEachTarget([&](const char* target) {
        BlockTensor got = {.format = format, .shape = wanted.shape};
        ASSERT_TRUE(EncodeBlocks(values, {}, got));
        ExpectSame(got, wanted, target + std::string(name));
      });
    }
  }
}

// Any bytes are a tensor in these formats.
TEST_P(BlocksOf, AnyCodesDecodeAsTheScalarOnes) {
  const BlockFormat format = FindBlockFormat(GetParam()).value();
  BlockTensor tensor = {.format = format, .shape = {32, 128}};
  ResizeArrays(tensor);
  std::mt19937 random(2);
  for (auto* const bytes : {&tensor.codes, &tensor.scales, &tensor.zero_points}) {
    for (std::byte& byte : *bytes) {
      byte = static_cast<std::byte>(random());
    }
  }
  tensor.scale_offset = 0.11F;
  std::ranges::generate(tensor.scale_scales,
                        [&] { return std::bit_cast<float>(static_cast<std::uint32_t>(random())); });
  for (const float scale :
       {0.37F, -1e-40F, 0.0F, std::numeric_limits<float>::infinity(), -std::nanf("1")}) {
    tensor.tensor_scale = scale;
    std::vector<float> wanted(32 * 128);
    DecodeTensor(tensor, wanted);
    ForEachTarget([&](const char* target) {
      std::vector<float> values(wanted.size());
      ASSERT_TRUE(DecodeBlocks(tensor, values));
      EXPECT_TRUE(SameBits(values, wanted)) << target << " " << scale;
    });
  }
}

TEST_P(BlocksOf, ShortBlocksThreadsAndTheProcessorsModeChangeNothing) {
  const BlockFormat format = FindBlockFormat(GetParam()).value();
  const bool is_ggml = format.kind == BlockKind::kGgml;
  for (const TensorShape shape :
       {TensorShape{7, is_ggml ? 32 : 37}, TensorShape{18, 4096}, TensorShape{0, 0}}) {
    const std::vector<float> values = Inputs(static_cast<std::size_t>(shape.rows * shape.columns));
    BlockTensor wanted = {.format = format, .shape = shape};
    ASSERT_TRUE(EncodeTensor(values, {}, wanted));
    std::vector<float> decoded(values.size());
    DecodeTensor(wanted, decoded);
    BlockTensor got = {.format = format, .shape = shape};
    std::vector<float> back(values.size());
    {
      const DefaultFloatEnvironment environment;
      std::fesetround(FE_UPWARD);
#if defined(__x86_64__)
      _mm_setcsr(_mm_getcsr() | 0x8040);  // flush to zero, denormals are zero
#endif
      ASSERT_TRUE(EncodeBlocks(values, {}, got, 3));
      ASSERT_TRUE(DecodeBlocks(got, back, 3));
    }
    ExpectSame(got, wanted, "three threads");
    EXPECT_TRUE(SameBits(back, decoded));
  }
}

// As if all were widened to float32 before, and narrowed after.
TEST_P(BlocksOf, CodesGoInAndOutWithOneRounding) {
  const BlockFormat format = FindBlockFormat(GetParam()).value();
  const TensorShape shape = {4, 1152};  // as a whole longer than a chunk
  std::vector<float> values = Inputs(static_cast<std::size_t>(shape.rows * shape.columns));
  for (const std::string_view name : {"float16", "bfloat16"}) {
    const NumberFormat number = FindFormat(name).value();
    std::vector<std::byte> codes(2 * values.size());
    std::vector<std::byte> wanted_back(codes.size());
    EncodeArray(values, {number, codes});
    std::vector<float> widened(values.size());
    DecodeArray({number, codes}, widened);
    BlockTensor wanted = {.format = format, .shape = shape};
    ASSERT_TRUE(EncodeTensor(widened, {}, wanted));
    DecodeTensor(wanted, widened);
    EncodeArray(widened, {number, wanted_back});
    ForEachTarget([&](const char* target) {
      BlockTensor got = {.format = format, .shape = shape};
      ASSERT_TRUE(EncodeBlocks({number, codes}, {}, got, 2));
      ExpectSame(got, wanted, target + std::string(name));
      std::vector<std::byte> back(codes.size());
      ASSERT_TRUE(DecodeBlocks(got, {number, back}, {}, 2));
      EXPECT_TRUE(back == wanted_back) << target << name;
    });
  }
}

// So large that values are written past the caches, from an aligned start and another; on threads,
// also with random roundings.
class LargeBlocksOf : public testing::TestWithParam<std::string_view> {};

TEST_P(LargeBlocksOf, AreThoseOfOneThreadAndTheScalarWay) {
  const BlockFormat format = FindBlockFormat(GetParam()).value();
  constexpr std::int64_t kColumns = 4096;
  const std::vector<float> few = Inputs(16 * kColumns);
  std::vector<float> values;
  for (int i = 0; i < 17; ++i) {
    values.insert(values.end(), few.begin(), few.end());
  }
  BlockTensor one = {.format = format, .shape = {16 * 17, kColumns}};
  BlockTensor two = one;
  const Conversion conversion = ConversionsFor(GetParam()).size() > 1
                                    ? Conversion{.rounding = RoundingMode::kStochastic}
                                    : Conversion{};
  ASSERT_TRUE(EncodeBlocks(values, conversion, one));
  ASSERT_TRUE(EncodeBlocks(values, conversion, two, 2));
  ExpectSame(two, one, "two threads");
  std::vector<float> wanted(values.size());
  DecodeTensor(one, wanted);
  std::vector<float> decoded(values.size() + 17);
  for (const std::size_t start : {0U, 1U, 16U}) {
    const std::span<float> to = std::span(decoded).subspan(start, values.size());
    ASSERT_TRUE(DecodeBlocks(one, to, 2));
    EXPECT_TRUE(SameBits(to, wanted)) << start;
  }
}

// What is wrong with a tensor is told, not read or written past.
TEST(Blocks, TensorsThatDoNotFitAreRefused) {
  std::vector<float> values(64);
  const auto tensor = [](std::string_view name, TensorShape shape) {
    return BlockTensor{.format = FindBlockFormat(name).value(), .shape = shape};
  };
  BlockTensor nameless = {.shape = {1, 64}};
  EXPECT_FALSE(EncodeBlocks(values, {}, nameless));
  for (const TensorShape shape :
       {TensorShape{1, 63}, TensorShape{-8, -8}, TensorShape{std::int64_t{1} << 62, 4}}) {
    BlockTensor wrong = tensor("mxfp4", shape);
    EXPECT_FALSE(EncodeBlocks(values, {}, wrong));
    EXPECT_FALSE(DecodeBlocks(wrong, values));
  }
  BlockTensor altered = tensor("nvfp4", {1, 64});
  altered.format.block_elements = 32;
  EXPECT_FALSE(EncodeBlocks(values, {}, altered));
  for (const std::string_view name :
       {"mxfp4", "nvfp4", "nf4", "int4:group=32,asymmetric", "q8_0"}) {
    const Result<void> empty = DecodeBlocks(tensor(name, {1, 64}), values);
    ASSERT_FALSE(empty) << name;
    EXPECT_EQ(empty.error().text.found, "0 bytes of codes");
  }
  BlockTensor reused = tensor("int4:group=32,asymmetric", {1, 64});
  ASSERT_TRUE(EncodeBlocks(values, {}, reused));
  reused.format = FindBlockFormat("q4_0").value();
  ASSERT_TRUE(EncodeBlocks(values, {}, reused));
  EXPECT_TRUE(reused.scales.empty() && reused.zero_points.empty());
  BlockTensor table = tensor("nf4", {1, 64});
  EXPECT_FALSE(EncodeBlocks(values, {.rounding = RoundingMode::kUp}, table));
  BlockTensor ggml = tensor("q4_0", {1, 64});
  EXPECT_FALSE(EncodeBlocks(values, {.subnormals = Subnormals::kFlushedOnInput}, ggml));
}

std::string NameOf(const testing::TestParamInfo<std::string_view>& test) {
  std::string name(test.param);
  std::ranges::replace_if(
      name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Formats, BlocksOf, testing::ValuesIn(kNames), NameOf);
INSTANTIATE_TEST_SUITE_P(Formats, LargeBlocksOf,
                         testing::Values("mxfp8_e4m3", "mxfp6_e2m3", "nvfp4", "nf4", "int8", "q8_0",
                                         "q4_0"),
                         NameOf);

bool SameStatistics(const RoundingStatistics& a, const RoundingStatistics& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

RoundingStatistics CountedOneByOne(std::span<const float> values, std::span<const float> back) {
  RoundingStatistics counted;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double x = values[i];
    const double r = back[i];
    counted.nan += std::isnan(x) ? 1 : 0;
    counted.infinite += std::isinf(x) ? 1 : 0;
    counted.zero += x == 0 ? 1 : 0;
    counted.overflow += std::isfinite(x) && !std::isfinite(r) ? 1 : 0;
    counted.underflow += x != 0 && r == 0 ? 1 : 0;
    counted.changed += !std::isnan(x) && x != r ? 1 : 0;
    if (std::isfinite(x)) {
      counted.largest = std::max(counted.largest, std::abs(values[i]));
    }
    if (std::isfinite(x) && std::isfinite(r)) {
      counted.sum_of_squared_errors += (r - x) * (r - x);
      counted.sum_of_squares += x * x;
    }
  }
  return counted;
}

void ExpectCounts(const RoundingStatistics& got, const RoundingStatistics& counted) {
  EXPECT_EQ(got.nan, counted.nan);
  EXPECT_EQ(got.infinite, counted.infinite);
  EXPECT_EQ(got.zero, counted.zero);
  EXPECT_EQ(got.overflow, counted.overflow);
  EXPECT_EQ(got.underflow, counted.underflow);
  EXPECT_EQ(got.changed, counted.changed);
  EXPECT_EQ(got.largest, counted.largest);
  EXPECT_EQ(got.saturated, 0);
  EXPECT_EQ(got.subnormal, 0);
  EXPECT_NEAR(got.sum_of_squared_errors, counted.sum_of_squared_errors,
              1e-12 * counted.sum_of_squared_errors);
  EXPECT_NEAR(got.sum_of_squares, counted.sum_of_squares, 1e-12 * counted.sum_of_squares);
}

TEST(RoundBlocks, CountsWhatBecameOfValues) {
  const TensorShape shape = {36, 2304};  // more than one block of sums
  const std::vector<float> values = Inputs(static_cast<std::size_t>(shape.rows * shape.columns));
  for (const std::string_view name : {"mxfp4", "nvfp4", "nf4:double", "int8:tensor", "uint4"}) {
    const BlockFormat format = FindBlockFormat(name).value();
    BlockTensor wanted = {.format = format, .shape = shape};
    ASSERT_TRUE(EncodeTensor(values, {}, wanted));
    std::vector<float> back(values.size());
    DecodeTensor(wanted, back);
    RoundingStatistics first;
    ForEachTarget([&](const char* target) {
      for (const int threads : {1, 3}) {
        BlockTensor scratch = {.format = format, .shape = shape};
        std::vector<float> rounded(values.size());
        const RoundingStatistics got = RoundBlocks(values, {}, scratch, rounded, threads).value();
        first = first.count == 0 ? got : first;
        EXPECT_TRUE(SameStatistics(got, first)) << target << name;
        EXPECT_TRUE(SameBits(rounded, back)) << target << name;
      }
    });
    EXPECT_EQ(first.count, static_cast<std::int64_t>(values.size()));
    ExpectCounts(first, CountedOneByOne(values, back));
  }
}

TEST(RoundBlocks, TellsWhatEncodingTells) {
  BlockTensor scratch = {.format = FindBlockFormat("q4_k").value(), .shape = {1, 256}};
  const std::vector<float> values(256);
  std::vector<float> rounded(256);
  EXPECT_FALSE(RoundBlocks(values, {}, scratch, rounded));
}

}  // namespace
}  // namespace fourpiles
