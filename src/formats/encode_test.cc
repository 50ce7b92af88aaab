// Against vectors made outside this project: decode_*.csv and encode_*.csv were computed with exact
// fractions and agree with ml_dtypes 0.5.4 (numpy 1.24 for float16) and with gfloat on every row;
// f64_double_rounding.csv holds float64 inputs that a detour through float32 rounds wrongly.

#include <bit>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "formats/test_vectors.h"
#include "fourpiles/formats.h"

namespace fourpiles {
namespace {

NumberFormat Format(const char* name) {
  return FindFormat(name).value();
}

float FloatOf(const std::string& hex) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(Hex(hex)));
}

class EncodeVectors : public testing::TestWithParam<VectorFormat> {};

TEST_P(EncodeVectors, EveryCodeDecodesToItsValue) {
  const NumberFormat format = Format(GetParam().name);
  const auto rows = ReadVectors(std::string("decode_") + GetParam().file + ".csv");
  ASSERT_EQ(rows.size(), (std::size_t{1} << Bits(format)) + 1);
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const double value = Decode(Hex(rows[i][0]), format);
    if (rows[i][1] == "nan") {
      EXPECT_TRUE(std::isnan(value)) << rows[i][0];
    } else {
      const double expected = FloatOf(rows[i][1]);
      EXPECT_EQ(std::bit_cast<std::uint64_t>(value), std::bit_cast<std::uint64_t>(expected))
          << rows[i][0];
    }
  }
}

TEST_P(EncodeVectors, EveryInputEncodesToTheReferenceCodes) {
  const NumberFormat format = Format(GetParam().name);
  const auto rows = ReadVectors(std::string("encode_") + GetParam().file + ".csv");
  ASSERT_GT(rows.size(), 4000U);
  ASSERT_EQ(rows[0][1], "ref_rne_nosat");
  ASSERT_EQ(rows[0][2], "ref_rne_sat");
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const float input = FloatOf(rows[i][0]);
    if (rows[i][1] == "nan_undef") {  // the format has no NaN: the peer column, ml_dtypes
      EXPECT_EQ(Encode(input, format).code, Hex(rows[i].back())) << rows[i][0];
      EXPECT_EQ(Encode(input, format, Overflow::kSaturate).code, Hex(rows[i].back()));
      continue;
    }
    EXPECT_EQ(Encode(input, format).code, Hex(rows[i][1])) << rows[i][0];
    EXPECT_EQ(Encode(input, format, Overflow::kSaturate).code, Hex(rows[i][2])) << rows[i][0];
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, EncodeVectors, testing::ValuesIn(kVectorFormats),
                         [](const auto& test) { return std::string(test.param.file); });

TEST(Encode, Float64IsRoundedOnce) {
  const auto rows = ReadVectors("f64_double_rounding.csv");
  ASSERT_EQ(rows.size(), 5407U);
  for (std::size_t i = 1; i < rows.size(); ++i) {
    for (const VectorFormat& format : kVectorFormats) {
      if (rows[i][0] == format.file) {
        const auto input = std::bit_cast<double>(Hex(rows[i][1]));
        EXPECT_EQ(Encode(input, Format(format.name)).code, Hex(rows[i][2]))
            << rows[i][0] << " " << rows[i][1];
      }
    }
  }
}

TEST(Encode, PowersOfTwoOfE8m0) {
  const NumberFormat format = Format("e8m0");
  const auto rows = ReadVectors("encode_e8m0.csv");
  ASSERT_EQ(rows.size(), 401U);
  ASSERT_EQ(rows[0][3], "ref_rne_sat");
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const float input = FloatOf(rows[i][0]);
    EXPECT_EQ(Encode(input, format, Overflow::kSaturate).code, Hex(rows[i][3])) << rows[i][0];
  }
  EXPECT_EQ(Decode(0, format), std::ldexp(1.0, -127));
  EXPECT_EQ(Decode(254, format), std::ldexp(1.0, 127));
  EXPECT_TRUE(std::isnan(Decode(255, format)));
}

TEST(Encode, EveryCodeOfEveryNamedFormatOf16BitsComesBack) {
  for (const NumberFormat& format : Formats()) {
    if (Bits(format) > 16) {
      continue;
    }
    for (std::uint64_t code = 0; code < (std::uint64_t{1} << Bits(format)); ++code) {
      const double value = Decode(code, format);
      if (!std::isnan(value)) {
        EXPECT_EQ(Encode(value, format).code, code) << format.name << " " << code;
        EXPECT_TRUE(Encode(value, format).exact);
      }
    }
  }
}

TEST(Encode, Float32AndFloat64AreTheProcessorsOwn) {
  const NumberFormat single = Format("float32");
  const NumberFormat wide = Format("float64");
  std::uint64_t bits = 0x9E3779B97F4A7C15U;  // a walk over all exponents
  for (int i = 0; i < 200000; ++i) {
    bits = bits * 6364136223846793005U + 1442695040888963407U;
    const auto value = std::bit_cast<double>(bits);
    if (std::isnan(value)) {
      continue;
    }
    EXPECT_EQ(Encode(value, wide).code, bits);
    EXPECT_EQ(std::bit_cast<std::uint64_t>(Decode(bits, wide)), bits);
    const auto narrow = static_cast<float>(value);
    EXPECT_EQ(Encode(value, single).code, std::bit_cast<std::uint32_t>(narrow)) << value;
  }
}

TEST(Encode, OverflowFollowsThePolicy) {
  const NumberFormat half = Format("float16");
  const NumberFormat e4m3 = Format("e4m3");
  const NumberFormat e2m1 = Format("e2m1");
  EXPECT_EQ(Encode(70000.0, half).code, 0x7c00U);
  EXPECT_EQ(Encode(70000.0, half).status, RoundingStatus::kOverflow);
  EXPECT_EQ(Encode(-70000.0, half, Overflow::kSaturate).code, 0xfbffU);
  EXPECT_EQ(Encode(-70000.0, half, Overflow::kSaturate).status, RoundingStatus::kSaturated);
  EXPECT_EQ(Encode(70000.0, half, Overflow::kNan).code, 0x7e00U);
  EXPECT_EQ(Encode(500.0, e4m3).status, RoundingStatus::kNan);  // OFP8 has no infinity in E4M3
  EXPECT_EQ(Encode(500.0, e4m3, Overflow::kSaturate).code, 0x7eU);
  EXPECT_EQ(Encode(100.0, e2m1, Overflow::kNan).code, 0x7U);  // no NaN either: the largest
}

TEST(Encode, StatusIsTheFirstThatHolds) {
  const NumberFormat half = Format("float16");
  EXPECT_EQ(Encode(std::nan(""), half).status, RoundingStatus::kNan);
  EXPECT_EQ(Encode(HUGE_VAL, half).status, RoundingStatus::kExact);
  EXPECT_EQ(Encode(1e-8, half).status, RoundingStatus::kUnderflow);
  EXPECT_EQ(Encode(6e-8, half).status, RoundingStatus::kSubnormal);
  EXPECT_EQ(Encode(0x1p-24, half).status, RoundingStatus::kSubnormal);
  EXPECT_TRUE(Encode(0x1p-24, half).exact);
  EXPECT_EQ(Encode(0.1, half).status, RoundingStatus::kRounded);
  EXPECT_EQ(Encode(65504.0, half).status, RoundingStatus::kExact);
  EXPECT_EQ(Encode(0.0, half).status, RoundingStatus::kExact);
}

TEST(Encode, TheSubnormalsOfFloat64AreExactToo) {
  const double tiny = std::numeric_limits<double>::denorm_min();
  EXPECT_EQ(Encode(tiny, Format("float64")).code, 1U);
  EXPECT_EQ(Encode(tiny, Format("float64")).status, RoundingStatus::kSubnormal);
}

}  // namespace
}  // namespace fourpiles
