#include "formats/block_rounding.h"

#include <cmath>
#include <string>

#include <gtest/gtest.h>

namespace fourpiles {
namespace {

std::vector<TypedNumber> Typed(const std::vector<std::string_view>& texts) {
  std::vector<TypedNumber> numbers;
  for (const std::string_view text : texts) {
    numbers.push_back(ParseNumber(text, "VALUE").value());
  }
  return numbers;
}

Result<BlockRounding> Rounded(const std::vector<std::string_view>& texts, std::string_view format,
                              const Conversion& conversion = {}) {
  return RoundInBlocks(Typed(texts), FindBlockFormat(format).value(), conversion);
}

struct Wanted {
  std::uint64_t code;
  double value;
  RoundingStatus status;
};

void ExpectElements(const BlockRounding& rounding, const std::vector<Wanted>& wanted) {
  ASSERT_EQ(rounding.elements.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const BlockElement& element = rounding.elements[i];
    EXPECT_EQ(element.code, wanted[i].code) << i;
    EXPECT_EQ(element.value, wanted[i].value) << i;
    EXPECT_EQ(Name(element.status), Name(wanted[i].status)) << i;
  }
}

// OCP MX 1.0, 6.3: floor(log2 7.9) − 2 = 0. 7.9 lies past 7, half a step past 6; 6.5 does not.
TEST(BlockRounding, TellsWhatBecameOfEachElement) {
  const auto rounding = Rounded({"0.1", "-0.3", "4", "6.5", "7.9"}, "mxfp4");
  ASSERT_TRUE(rounding);
  ExpectElements(*rounding, {{0x0, 0, RoundingStatus::kUnderflow},
                             {0x9, -0.5, RoundingStatus::kRounded},
                             {0x6, 4, RoundingStatus::kExact},
                             {0x7, 6, RoundingStatus::kRounded},
                             {0x7, 6, RoundingStatus::kSaturated}});
  ASSERT_EQ(rounding->scales.size(), 1U);
  EXPECT_EQ(rounding->scales[0].code, 0x7fU);
  EXPECT_EQ(rounding->scales[0].value, 1);
  EXPECT_DOUBLE_EQ(rounding->elements[4].error.value(), 6 - 7.9);
}

TEST(BlockRounding, ErrorsAreOfWhatWasTyped) {
  const auto rounding = Rounded({"1.00000000000000000001", "1"}, "int8:tensor");
  ASSERT_TRUE(rounding);
  EXPECT_EQ(rounding->elements[0].status, RoundingStatus::kRounded);
  EXPECT_EQ(rounding->elements[0].error, -1e-20);
  EXPECT_EQ(rounding->elements[1].status, RoundingStatus::kExact);
}

TEST(BlockRounding, ANanIsOneOfItsWholeBlock) {
  const auto rounding = Rounded({"1", "nan", "2"}, "int4:group=2");
  ASSERT_TRUE(rounding);
  ASSERT_EQ(rounding->scales.size(), 2U);
  EXPECT_EQ(rounding->elements[0].status, RoundingStatus::kNan);
  EXPECT_EQ(rounding->elements[1].status, RoundingStatus::kNan);
  EXPECT_EQ(rounding->elements[2].value, 2);
  EXPECT_TRUE(std::isnan(rounding->scales[0].value.value()));
  EXPECT_EQ(rounding->scales[1].first, 2U);
  EXPECT_EQ(rounding->scales[1].count, 1U);
}

// NVFP4: t = 2688 ÷ 2688 = 1, s = 2688 ÷ 6 = 448; with a divisor the same.
TEST(BlockRounding, HasTheScalesOfBothLevels) {
  for (const std::string_view name : {"nvfp4", "nvfp4:tensor-scale=divisor"}) {
    const auto rounding = Rounded({"2688", "-224", "10"}, name);
    ASSERT_TRUE(rounding);
    EXPECT_EQ(rounding->tensor.tensor_scale, 1);
    EXPECT_EQ(rounding->scales[0].code, 0x7eU);
    EXPECT_EQ(rounding->scales[0].value, 448);
    ExpectElements(*rounding, {{0x7, 2688, RoundingStatus::kExact},
                               {0x9, -224, RoundingStatus::kExact},
                               {0x0, 0, RoundingStatus::kUnderflow}});
  }
}

TEST(BlockRounding, ZerosFillTheLastBlockOfGgml) {
  const auto rounding = Rounded({"127", "-1"}, "q8_0");
  ASSERT_TRUE(rounding);
  EXPECT_EQ(rounding->zeros, 30);
  ASSERT_EQ(rounding->elements.size(), 2U);
  EXPECT_EQ(rounding->elements[0].value, 127);
  EXPECT_EQ(rounding->elements[1].value, -1);
  EXPECT_FALSE(rounding->elements[0].code);
  ASSERT_EQ(rounding->scales.size(), 1U);
  EXPECT_EQ(rounding->scales[0].count, 2U);
  ASSERT_EQ(rounding->scales[0].bytes.size(), 34U);  // d = 1.0, float16, then 32 int8
  EXPECT_EQ(rounding->scales[0].bytes[1], std::byte{0x3c});
  EXPECT_EQ(rounding->scales[0].bytes[3], std::byte{0xff});
}

TEST(BlockRounding, RefusesWhatAFormatHasNoChoiceIn) {
  EXPECT_FALSE(Rounded({"1"}, "q8_0", {.rounding = RoundingMode::kUp}));
  EXPECT_FALSE(Rounded({"1"}, "q8_0", {.subnormals = Subnormals::kFlushedOnInput}));
  EXPECT_FALSE(Rounded({"1"}, "nf4", {.rounding = RoundingMode::kUp}));
  EXPECT_FALSE(Rounded({"1"}, "q4_k"));
}

}  // namespace
}  // namespace fourpiles
