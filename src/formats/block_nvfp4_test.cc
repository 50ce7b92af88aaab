#include "formats/block_nvfp4.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "formats/block_vectors.h"
#include "formats/float32.h"

namespace fourpiles {
namespace {

// One digit a code.
std::vector<std::byte> CodesOf(const std::string& digits) {
  std::vector<std::byte> codes;
  for (const char digit : digits) {
    codes.push_back(static_cast<std::byte>(Hex(std::string(1, digit))));
  }
  return codes;
}

// nvfp4_blocks.csv, columns "exact": 24 tensors of four blocks by exact rational arithmetic; the
// rule is torchao's but for its least scale.
TEST(NvFp4, GivesTheScalesAndCodesOfTheVectors) {
  const std::vector<Row> rows = ReadVectors("nvfp4_blocks.csv");
  ASSERT_EQ(rows.size(), 25U);
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const std::vector<float> values = FloatsOf(rows[i][1]);
    const NvFp4Scale tensor =
        NvFp4TensorScale(LargestMagnitude(values, Subnormals::kKept), TensorScale::kMultiplier);
    EXPECT_EQ(std::bit_cast<std::uint32_t>(tensor.value), Hex(rows[i][2]));
    std::vector<std::byte> codes(values.size());
    std::vector<std::byte> scales;
    for (std::size_t first = 0; first < values.size(); first += 16) {
      scales.push_back(
          std::byte{EncodeNvFp4Block(std::span<const float>(values).subspan(first, 16), tensor, {},
                                     first, std::span<std::byte>(codes).subspan(first, 16))});
    }
    EXPECT_EQ(scales, BytesOf(rows[i][3])) << "case " << rows[i][0];
    EXPECT_EQ(codes, CodesOf(rows[i][4])) << "case " << rows[i][0];
  }
}

// The nearest of 0 0.5 1 1.5 2 3 4 6 by products alone, all exact in double: |x| × over against
// s × midpoint × under, ties to the even code.
int NearestByProducts(double x, double scale, double over, double under) {
  constexpr double kMidpoints[] = {0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5};
  int code = 0;
  for (const double midpoint : kMidpoints) {
    const double left = std::abs(x) * over;
    const double right = scale * midpoint * under;
    code += left > right || (left == right && code % 2 == 1) ? 1 : 0;
  }
  return code;
}

TEST(NvFp4, RoundsTheExactQuotientInBothConventions) {
  const NumberFormat e4m3 = FindFormat("e4m3").value();
  std::uint32_t state = 1;
  for (int trial = 0; trial < 3000; ++trial) {
    std::vector<float> values;
    for (int i = 0; i < 16; ++i) {
      state = state * 1664525U + 1013904223U;
      // Few bits at times, so that ties occur.
      const std::uint32_t fraction = trial % 2 == 0 ? state >> 9 : (state >> 9) & 0x70'0000U;
      values.push_back(std::bit_cast<float>((120U + (state >> 3) % 8U) << 23 | fraction));
    }
    const float largest = LargestMagnitude(values, Subnormals::kKept);
    for (const TensorScale kind : {TensorScale::kMultiplier, TensorScale::kDivisor}) {
      NvFp4Scale tensor = NvFp4TensorScale(largest * 8, kind);
      if (trial % 3 == 0) {
        tensor.value = 0.25F;  // ties need a scale of few bits
      }
      std::vector<std::byte> codes(16);
      const double scale = Decode(EncodeNvFp4Block(values, tensor, {}, 0, codes), e4m3);
      const bool divides = kind == TensorScale::kDivisor;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const int expected = NearestByProducts(values[i], scale, divides ? tensor.value : 1,
                                               divides ? 1 : tensor.value);
        ASSERT_EQ(std::to_integer<int>(codes[i]), expected) << values[i] << " " << trial;
      }
    }
  }
}

TEST(NvFp4, TheDivisorIsTheInverse) {
  EXPECT_EQ(NvFp4TensorScale(2688, TensorScale::kDivisor).value, 1.0F);
  EXPECT_EQ(NvFp4TensorScale(3, TensorScale::kDivisor).value, 896.0F);
  EXPECT_EQ(NvFp4TensorScale(3, TensorScale::kMultiplier).value, 3.0F / 2688.0F);
  // 2688 ÷ 2^−149 is past float32.
  EXPECT_EQ(NvFp4TensorScale(0x1p-149F, TensorScale::kDivisor).value,
            std::numeric_limits<float>::max());
}

TEST(NvFp4, ATensorOfZerosIsZeros) {
  const std::vector<float> values = {0.0F, -0.0F, 0.0F};
  for (const TensorScale kind : {TensorScale::kMultiplier, TensorScale::kDivisor}) {
    const NvFp4Scale tensor = NvFp4TensorScale(0, kind);
    std::vector<std::byte> codes(3);
    EXPECT_EQ(EncodeNvFp4Block(values, tensor, {}, 0, codes), 0);
    EXPECT_EQ(codes, CodesOf("080"));
    std::vector<float> back(3, 1.0F);
    DecodeNvFp4Block(codes, 0, tensor, back);
    EXPECT_EQ(back, values);
  }
}

TEST(NvFp4, ABlockTooSmallForItsScaleIsZeros) {
  // 2^−10 ÷ 2^−9 of the smallest scale, 2^−9, is a tie with zero; a little more is not.
  const NvFp4Scale tensor = {1, TensorScale::kMultiplier};
  EXPECT_EQ(NvFp4BlockScale(6 * 0x1p-10F, tensor), 0);
  EXPECT_EQ(NvFp4BlockScale(std::nextafter(6 * 0x1p-10F, 1.0F), tensor), 1);
  EXPECT_EQ(NvFp4BlockScale(6 * 500.0F, tensor), 0x7e);  // 448: never the NaN byte
  const std::vector<float> values = {0.005F, -0.005F};
  std::vector<std::byte> codes(2);
  EXPECT_EQ(EncodeNvFp4Block(values, tensor, {}, 0, codes), 0);
  EXPECT_EQ(codes, CodesOf("08"));
}

TEST(NvFp4, ABlockWithANanOrAnInfinityIsNanAndItsNeighboursAreNot) {
  BlockTensor tensor = {.format = FindBlockFormat("nvfp4").value(), .shape = {1, 32}};
  for (const float wild : {std::nanf(""), HUGE_VALF}) {
    std::vector<float> values(32, 6.0F);
    values[3] = wild;
    tensor.codes.assign(16, std::byte{0});
    tensor.scales.assign(2, std::byte{0});
    EncodeNvFp4(values, {}, tensor);
    EXPECT_EQ(tensor.tensor_scale, 6.0F / 2688.0F);
    EXPECT_EQ(tensor.scales, BytesOf("7f7e"));
    std::vector<float> back(32);
    DecodeNvFp4(tensor, back);
    EXPECT_TRUE(std::isnan(back[0]) && std::isnan(back[3]) && std::isnan(back[15]));
    EXPECT_FLOAT_EQ(back[16], 6.0F);
  }
}

}  // namespace
}  // namespace fourpiles
