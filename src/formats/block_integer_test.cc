#include "formats/block_integer.h"

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "formats/block_vectors.h"

namespace fourpiles {
namespace {

constexpr IntegerCodes kInt8 = {.bits = 8};
constexpr IntegerCodes kInt4 = {.bits = 4};
constexpr IntegerCodes kUint8 = {.bits = 8, .is_signed = false, .asymmetric = true};

IntegerScale ScaleOf(const std::vector<float>& values, const IntegerCodes& codes) {
  return IntegerScaleOf(RangeOf(values, Subnormals::kKept), codes);
}

std::vector<std::byte> Encoded(const std::vector<float>& values, const IntegerScale& scale) {
  std::vector<std::byte> codes(values.size());
  EncodeIntegers(values, scale, {}, 0, codes);
  return codes;
}

TEST(Integers, SymmetricCodesReachFromMinusQToQ) {
  const std::vector<float> values = {-127.0F, 0.0F, 63.5F, 64.5F, 126.6F};
  const IntegerScale scale = ScaleOf(values, kInt8);
  EXPECT_EQ(scale.scale, 1.0F);
  EXPECT_EQ(Encoded(values, scale), BytesOf("810040407f"));  // ties to even
  const std::vector<float> small = {7.0F, -7.0F, 3.5F, 2.5F};
  EXPECT_EQ(Encoded(small, ScaleOf(small, kInt4)), BytesOf("07090402"));
}

TEST(Integers, AZeroPointIsTheCodeOfZero) {
  // ONNX, DynamicQuantizeLinear, its own example: x = 0 2 −3 −2.5 1.34 0.5 gives scale
  // 0.0196078438, zero point 153, y = 153 255 0 26 221 179.
  const std::vector<float> values = {0.0F, 2.0F, -3.0F, -2.5F, 1.34F, 0.5F};
  const IntegerScale scale = ScaleOf(values, kUint8);
  EXPECT_EQ(scale.scale, 0.0196078438F);
  EXPECT_EQ(scale.zero_point, 153);
  EXPECT_EQ(Encoded(values, scale), BytesOf("99ff001addb2"));
}

TEST(Integers, SignedCodesWithAZeroPointAreTheSameLessHalf) {
  const std::vector<float> values = {0.0F, 2.0F, -3.0F, -2.5F, 1.34F, 0.5F};
  const IntegerScale scale = ScaleOf(values, {.bits = 8, .is_signed = true, .asymmetric = true});
  EXPECT_EQ(scale.zero_point, 153 - 128);
  EXPECT_EQ(Encoded(values, scale), BytesOf("197f809a5d32"));
}

TEST(Integers, OneSidedRangesIncludeZero) {
  // The second and third examples of ONNX's DynamicQuantizeLinear: all negative, all positive.
  const std::vector<float> negative = {-1.0F, -2.1F, -1.3F, -2.5F, -3.34F, -4.0F};
  const IntegerScale below = ScaleOf(negative, kUint8);
  EXPECT_EQ(below.scale, 0.0156862754F);
  EXPECT_EQ(below.zero_point, 255);
  EXPECT_EQ(Encoded(negative, below), BytesOf("bf79ac602a00"));
  const std::vector<float> positive = {1,    2.1F, 1.3F, 2.5F, 3.34F, 4,
                                       1.5F, 2.6F, 3.9F, 4,    3,     2.345F};
  const IntegerScale above = ScaleOf(positive, kUint8);
  EXPECT_EQ(above.scale, 0.0156862754F);
  EXPECT_EQ(above.zero_point, 0);
  EXPECT_EQ(Encoded(positive, above), BytesOf("4086539fd5ff60a6f9ffbf95"));
}

// The quotient of two float32, rounded half to even without being rounded before: x = n + ½ steps
// of s is a tie only where the product is exact.
TEST(Integers, DividesExactly) {
  const IntegerScale scale = {.codes = kInt8, .scale = 0.03F};
  const double s = scale.scale;
  for (int n = 0; n < 127; ++n) {
    const auto near = static_cast<float>((n + 0.5) * s);
    for (const float x : {std::nextafter(near, 0.0F), near, std::nextafter(near, 9.0F)}) {
      // (n + ½) × s has at most 32 bits: exact in double.
      const double half = (n + 0.5) * s;
      const int expected = x > half || (x == half && n % 2 == 1) ? n + 1 : n;
      EXPECT_EQ(std::to_integer<int>(Encoded({x}, scale)[0]), expected) << n;
    }
  }
}

TEST(Integers, ZerosNansAndExtremes) {
  EXPECT_EQ(Encoded({0.0F, -0.0F}, ScaleOf({0.0F, -0.0F}, kInt8)), BytesOf("0000"));
  EXPECT_EQ(Encoded({0.0F}, ScaleOf({0.0F}, kUint8)), BytesOf("00"));
  const IntegerScale wild = ScaleOf({1.0F, HUGE_VALF}, kInt8);
  EXPECT_TRUE(std::isnan(wild.scale));
  EXPECT_EQ(Encoded({1.0F, HUGE_VALF}, wild), BytesOf("0000"));
  std::vector<float> back(1);
  DecodeIntegers(BytesOf("00"), wild, back);
  EXPECT_TRUE(std::isnan(back[0]));
  const float largest = std::numeric_limits<float>::max();
  const std::vector<float> extremes = {largest, -largest};
  EXPECT_EQ(Encoded(extremes, ScaleOf(extremes, kInt8)), BytesOf("7f81"));
  // Smaller than half a step of the smallest scale that float32 has: zero, whatever the code.
  EXPECT_EQ(Encoded({0x1p-149F}, ScaleOf({0x1p-149F}, kInt8)), BytesOf("00"));
}

// Python's fractions: (largest − smallest) ÷ 255 in float32, and 3e38 ÷ that is 127.500004.
TEST(Integers, ASpanPastFloat32HasAFiniteScale) {
  const std::vector<float> values = {3e38F, -3e38F, 1.0F};
  const IntegerScale scale = ScaleOf(values, {.bits = 8, .is_signed = true, .asymmetric = true});
  EXPECT_EQ(scale.scale, 0x1.c528f4p+120F);
  EXPECT_EQ(scale.zero_point, 0);
  EXPECT_EQ(Encoded(values, scale), BytesOf("7f8000"));
}

TEST(Integers, DecodesEveryCode) {
  const IntegerScale scale = {.codes = kUint8, .scale = 0.5F, .zero_point = 100};
  for (int code = 0; code < 256; ++code) {
    std::vector<float> back(1);
    const std::vector<std::byte> codes = {static_cast<std::byte>(code)};
    DecodeIntegers(codes, scale, back);
    EXPECT_EQ(back[0], static_cast<float>(code - 100) * 0.5F);
  }
  std::vector<float> back(3);
  DecodeIntegers(BytesOf("070809"), {.codes = kInt4, .scale = 1}, back);
  EXPECT_EQ(back, (std::vector<float>{7, -8, -7}));
}

}  // namespace
}  // namespace fourpiles
