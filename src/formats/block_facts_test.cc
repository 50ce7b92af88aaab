#include "formats/block_facts.h"

#include <cmath>

#include <gtest/gtest.h>

namespace fourpiles {
namespace {

std::vector<float> ValuesOf(std::string_view name) {
  return ElementValues(FindBlockFormat(name).value());
}

// OCP Microscaling Formats 1.0, table 5; NVIDIA, arXiv 2509.25149.
TEST(BlockFacts, ListsTheValuesOfE2m1) {
  const std::vector<float> wanted = {0, 0.5F,  1,  1.5F,  2,  3,  4,  6,
                                     0, -0.5F, -1, -1.5F, -2, -3, -4, -6};
  EXPECT_EQ(ValuesOf("mxfp4"), wanted);
  EXPECT_EQ(ValuesOf("nvfp4"), wanted);
  EXPECT_EQ(ValuesOf("nvfp4:tensor-scale=divisor"), wanted);
}

TEST(BlockFacts, ListsIntegersByTheirCodes) {
  EXPECT_EQ(ValuesOf("int4"),
            (std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1}));
  EXPECT_EQ(ValuesOf("uint4").back(), 15);
  EXPECT_EQ(ValuesOf("mxint8")[0x7f], 127.0F / 64);
}

// QLoRA, arXiv 2305.14314, appendix E.
TEST(BlockFacts, ListsTheValuesOfNf4) {
  const std::vector<float> values = ValuesOf("nf4");
  ASSERT_EQ(values.size(), 16U);
  EXPECT_EQ(values[0], -1);
  EXPECT_EQ(values[1], -0.6961928009986877F);
  EXPECT_EQ(values[7], 0);
  EXPECT_EQ(values[15], 1);
  EXPECT_TRUE(ValuesOf("q4_k").empty());
}

// 6 × 2^127 and 0.5 × 2^−127; 6 × 448 and 0.5 × 2^−9.
TEST(BlockFacts, LimitsAreThoseOfElementAndScale) {
  const auto mxfp4 = LimitsOf(FindBlockFormat("mxfp4").value());
  ASSERT_TRUE(mxfp4);
  EXPECT_EQ(mxfp4->largest, std::ldexp(6.0, 127));
  EXPECT_EQ(mxfp4->smallest, std::ldexp(0.5, -127));
  const auto nvfp4 = LimitsOf(FindBlockFormat("nvfp4").value());
  ASSERT_TRUE(nvfp4);
  EXPECT_EQ(nvfp4->largest, 2688);
  EXPECT_EQ(nvfp4->smallest, 0x1p-10);
  EXPECT_FALSE(LimitsOf(FindBlockFormat("nf4").value()));
  EXPECT_FALSE(LimitsOf(FindBlockFormat("q8_0").value()));
}

}  // namespace
}  // namespace fourpiles
