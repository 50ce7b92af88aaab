#include "formats/block_codebook.h"

#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "formats/block_codec.h"
#include "formats/block_vectors.h"

namespace fourpiles {
namespace {

std::vector<std::byte> Encoded(const std::vector<float>& values, const char* name) {
  std::vector<std::byte> codes(values.size());
  EncodeCodeBookBlock(values, CodeBookScale(values, Subnormals::kKept), FindCodeBook(name), codes);
  return codes;
}

// bnb_tables.csv: the functions of bitsandbytes, executed.
TEST(CodeBook, HasTheTablesOfBitsandbytes) {
  const std::vector<Row> rows = ReadVectors("bnb_tables.csv");
  ASSERT_EQ(rows.size(), 305U);
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const std::string name = rows[i][0] == "dynamic8_signed" ? "dynamic8" : rows[i][0];
    const float value = FindCodeBook(name).values[std::stoul(rows[i][1])];
    EXPECT_EQ(std::bit_cast<std::uint32_t>(value), Hex(rows[i][2])) << name << " " << rows[i][1];
  }
}

// The kernels compare with midpoints, strictly: one itself goes down.
TEST(CodeBook, ThresholdsAreMidpoints) {
  for (const CodeBook& book : CodeBooks()) {
    for (std::size_t i = 0; i < book.thresholds.size(); ++i) {
      const double low = book.values[book.order[i]];
      const double high = book.values[book.order[i + 1]];
      const float threshold = book.thresholds[i];
      // dQuantizeFP4 has six digits of some.
      EXPECT_NEAR(threshold, (low + high) / 2, book.name == "fp4" ? 4e-7 : 3e-8) << book.name;
      EXPECT_EQ(NearestCode(threshold, book), book.order[i]) << book.name;
      EXPECT_EQ(NearestCode(std::nextafter(threshold, 2.0F), book), book.order[i + 1]) << book.name;
    }
  }
}

// Where midpoints take 25 bits, the kernel's constants go to one side: dQuantizeNF4 of
// bitsandbytes' csrc/kernels.cu.
TEST(CodeBook, ComparesNf4WithTheConstantsOfTheKernel) {
  const CodeBook& nf4 = FindCodeBook("nf4");
  EXPECT_EQ(nf4.thresholds.front(), -0.8480964004993439F);
  EXPECT_EQ(nf4.thresholds[8], 0.1202552504837513F);
  EXPECT_EQ(nf4.thresholds.back(), 0.8614784181118011F);
}

// dQuantizeFP4 of the same file, as it reads.
int KernelFp4(float x) {
  const int sign = x < 0 ? 8 : 0;
  const float m = std::abs(x);
  if (m > 0.29166667F) {
    return sign + (m > 0.583333F ? (m > 0.8333333F ? 3 : 2) : (m > 0.4166667F ? 5 : 4));
  }
  return sign + (m > 0.0859375F ? (m > 0.20833333F ? 7 : 6) : (m > 0.00260417F ? 1 : 0));
}

TEST(CodeBook, EncodesFp4AsTheKernelDoes) {
  const CodeBook& fp4 = FindCodeBook("fp4");
  std::vector<float> values = {0.0F, -0.0F, -0x1p-140F, 1.0F, -1.0F};
  for (const float threshold : fp4.thresholds) {
    for (const float near :
         {std::nextafter(threshold, 0.0F), threshold, std::nextafter(threshold, 2.0F)}) {
      values.push_back(near);
      values.push_back(-near);
    }
  }
  for (const float value : values) {
    EXPECT_EQ(NearestCode(value, fp4), KernelFp4(value)) << value;
  }
}

TEST(CodeBook, EveryEntryOfEveryTableComesBack) {
  for (const CodeBook& book : CodeBooks()) {
    for (std::size_t code = 0; code < book.values.size(); ++code) {
      const bool second_zero = book.sign_bit != 0 && code == book.sign_bit;
      EXPECT_EQ(NearestCode(book.values[code], book), second_zero ? 0 : code) << book.name;
    }
  }
}

TEST(CodeBook, MultipliesByTheReciprocal) {
  // 49 × fl(1 ÷ 49) is 0x1.fffffep-1, not 1 (Kahan); the nearest entry is 1 all the same, and
  // 49 × 1 comes back.
  EXPECT_EQ(Encoded({49.0F, 0.0F, -49.0F}, "nf4"), BytesOf("0f0700"));
}

TEST(CodeBook, ScalesWithoutAReciprocalWorkToo) {
  EXPECT_EQ(Encoded({0x1p-149F, -0x1p-149F, 0.0F}, "nf4"), BytesOf("0f0007"));
  EXPECT_EQ(Encoded({0x1p-130F, 0x1p-131F}, "fp4"), BytesOf("0305"));
}

TEST(CodeBook, BlocksOfZerosOrWithNanHaveTheCodeOfZero) {
  EXPECT_EQ(Encoded({0.0F, -0.0F}, "nf4"), BytesOf("0707"));
  EXPECT_EQ(Encoded({1.0F, HUGE_VALF}, "nf4"), BytesOf("0707"));
  const std::vector<float> wild = {1.0F, -HUGE_VALF};
  EXPECT_TRUE(std::isnan(CodeBookScale(wild, Subnormals::kKept)));
}

TEST(CodeBook, TakesTheMeanOfScales) {
  const std::vector<float> scales = {1.0F, 2.0F, 6.0F, std::nanf("")};
  EXPECT_EQ(MeanScale(scales), 3.0F);
  EXPECT_EQ(MeanScale(std::vector<float>{1.0F, 1.0F, 0.0F}), 2.0F / 3.0F);
  EXPECT_EQ(MeanScale(std::vector<float>{0x1p127F, 0x1p127F}), 0x1p127F);
  EXPECT_EQ(MeanScale(std::vector<float>{0x1p-149F, 0x1p-148F, 0x1p-148F}), 0x1p-148F);
  EXPECT_EQ(MeanScale({}), 0.0F);
}

TEST(CodeBook, PacksTheFirstElementIntoTheHighHalf) {
  BlockTensor tensor = {.format = FindBlockFormat("nf4").value(), .shape = {1, 3}};
  const std::vector<float> values = {1.0F, 0.0F, -1.0F};
  ASSERT_TRUE(EncodeTensor(values, {}, tensor));
  EXPECT_EQ(tensor.codes, BytesOf("f700"));
}

TEST(CodeBook, KeepsScalesInEightBitsWhereToldTo) {
  BlockTensor tensor = {.format = FindBlockFormat("nf4:double").value(), .shape = {2, 64}};
  std::vector<float> values(128);
  values[0] = 1.0F;
  values[64] = 3.0F;
  ASSERT_TRUE(EncodeTensor(values, {}, tensor));
  EXPECT_EQ(tensor.scale_offset, 2.0F);
  EXPECT_EQ(tensor.scale_scales, std::vector<float>{1.0F});
  EXPECT_EQ(tensor.scales, BytesOf("00ff"));  // −0.993 and 1: the map has no −1
  std::vector<float> back(128);
  DecodeTensor(tensor, back);
  EXPECT_FLOAT_EQ(back[0], 2.0F - 0.992968738F);
  EXPECT_FLOAT_EQ(back[64], 3.0F);
  EXPECT_EQ(back[1], 0.0F);
}

TEST(CodeBook, ANanSpoilsTheGroupOfItsScaleAlone) {
  BlockTensor tensor = {.format = FindBlockFormat("nf4:double").value(), .shape = {257, 64}};
  std::vector<float> values(std::size_t{257} * 64, 1.0F);
  values[5] = std::nanf("");
  ASSERT_TRUE(EncodeTensor(values, {}, tensor));
  EXPECT_EQ(tensor.scale_offset, 1.0F);
  std::vector<float> back(values.size());
  DecodeTensor(tensor, back);
  EXPECT_TRUE(std::isnan(back.front()));
  EXPECT_EQ(back.back(), 1.0F);
}

}  // namespace
}  // namespace fourpiles
