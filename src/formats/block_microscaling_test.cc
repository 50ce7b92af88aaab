#include "formats/block_microscaling.h"

#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "formats/block_vectors.h"

namespace fourpiles {
namespace {

Microscaling Find(const std::string& name) {
  return MicroscalingOf(FindBlockFormat(name).value());
}

// mx_blocks.csv: six element types, four rules, 17 blocks each, by exact rational arithmetic; the
// floor rule agrees with microxcaling but for its logarithm just below a power of two.
TEST(Microscaling, GivesTheScalesAndCodesOfTheVectors) {
  const std::vector<Row> rows = ReadVectors("mx_blocks.csv");
  ASSERT_EQ(rows.size(), 409U);
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const Row& row = rows[i];
    const Microscaling format = Find(row[0] + ":scale=" + row[1]);
    const std::vector<float> values = FloatsOf(row[2]);
    std::vector<std::byte> codes(values.size());
    const std::uint8_t scale = EncodeMxBlock(values, format, {}, 0, codes);
    EXPECT_EQ(scale, Hex(row[3])) << row[0] << " " << row[1] << ", row " << i;
    EXPECT_EQ(codes, BytesOf(row[4])) << row[0] << " " << row[1] << ", row " << i;
  }
}

// encode_e8m0.csv, columns floor and ceil: powers of two of all magnitudes, subnormals too. An
// element whose largest value is 2^0 leaves the exponent as it is: int8 has one.
TEST(Microscaling, ReadsExponentsFromBits) {
  const Microscaling floor = Find("mxint8:scale=floor");
  const Microscaling ceil = Find("mxint8:scale=ceil");
  for (const Row& row : ReadVectors("encode_e8m0.csv")) {
    if (row[0] == "f32_hex" || row[1] == "ff" || row[0].front() >= '8') {
      continue;
    }
    const float largest = std::bit_cast<float>(static_cast<std::uint32_t>(Hex(row[0])));
    EXPECT_EQ(MxScaleCode(largest, floor), Hex(row[1])) << row[0];
    EXPECT_EQ(MxScaleCode(largest, ceil), Hex(row[2])) << row[0];
  }
}

TEST(Microscaling, RceilNeverSaturates) {
  for (const char* const name :
       {"mxfp8_e4m3", "mxfp8_e5m2", "mxfp6_e2m3", "mxfp6_e3m2", "mxfp4", "mxint8"}) {
    const Microscaling format = Find(std::string(name) + ":scale=rceil");
    const double most = format.is_integer ? 127.0 / 64 : Largest(format.element);
    for (std::uint32_t bits = 0x0c00'0000; bits < 0x7000'0000; bits += 0x1'2345) {
      const float largest = std::bit_cast<float>(bits);
      const double k = std::ldexp(1.0, MxScaleCode(largest, format) - 127);
      EXPECT_LE(largest / k, most) << name;
      EXPECT_GT(largest / k, most / 2) << name;  // and no power of two less would do
    }
  }
}

TEST(Microscaling, ABlockWithANanOrAnInfinityIsNan) {
  for (const float wild : {std::nanf(""), HUGE_VALF, -HUGE_VALF}) {
    for (const char* const name : {"mxfp8_e4m3", "mxfp8_e5m2", "mxfp6_e2m3", "mxfp4", "mxint8"}) {
      const Microscaling format = Find(name);
      const std::vector<float> values = {1.0F, wild, 2.0F};
      std::vector<std::byte> codes(3);
      EXPECT_EQ(EncodeMxBlock(values, format, {}, 0, codes), 0xff);  // OCP MX 1.0, 5.1
      std::vector<float> back(3);
      DecodeMxBlock(codes, 0xff, format, back);
      for (const float value : back) {
        EXPECT_TRUE(std::isnan(value)) << name;
      }
    }
  }
}

TEST(Microscaling, KeepsTheSignOfZeroWhereCodesHaveOne) {
  const std::vector<float> values = {0.0F, -0.0F};
  std::vector<std::byte> codes(2);
  EXPECT_EQ(EncodeMxBlock(values, Find("mxfp4"), {}, 0, codes), 0);
  EXPECT_EQ(codes, BytesOf("0008"));
  EXPECT_EQ(EncodeMxBlock(values, Find("mxint8"), {}, 0, codes), 0);
  EXPECT_EQ(codes, BytesOf("0000"));
}

TEST(Microscaling, ScalesOfBothEndsWork) {
  const Microscaling format = Find("mxfp8_e5m2");
  std::vector<float> back(1);
  DecodeMxBlock(BytesOf("01"), 0, format, back);  // 2^−16 × 2^−127
  EXPECT_EQ(std::bit_cast<std::uint32_t>(back[0]), std::bit_cast<std::uint32_t>(0x1p-143F));
  DecodeMxBlock(BytesOf("7b"), 254, format, back);  // 57344 × 2^127
  EXPECT_EQ(back[0], HUGE_VALF);
}

TEST(Microscaling, FlushesSubnormalsWhereToldTo) {
  const std::vector<float> values = {0x1p-130F, -0x1p-140F};
  std::vector<std::byte> codes(2);
  const Conversion flush = {.subnormals = Subnormals::kFlushedOnInput};
  const Microscaling format = Find("mxfp8_e4m3");
  EXPECT_EQ(EncodeMxBlock(values, format, flush, 0, codes), 0);
  EXPECT_EQ(codes, BytesOf("0080"));
  EXPECT_EQ(EncodeMxBlock(values, format, {}, 0, codes), 0);
  EXPECT_EQ(codes, BytesOf("2080"));  // 2^−3 = 0 0100 000; 2^−13 is under half of 2^−9
}

}  // namespace
}  // namespace fourpiles
