#include "audit/block_rounder.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

namespace fourpiles {
namespace {

std::vector<float> Normal(std::size_t count) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0, 0.02F);
  std::vector<float> values(count);
  std::ranges::generate(values, [&] { return normal(random); });
  values[count / 2] = 0.5F;  // the extreme that all of the tensor's scales depend on
  return values;
}

// In spans as at once.
TEST(BlockRounder, RoundsSpansAsTheWholeTensor) {
  for (const char* name : {"mxfp4", "nvfp4", "nvfp4:tensor-scale=divisor", "int8:tensor",
                           "int8:channel", "int4:group=32", "uint4", "q4_0"}) {
    SCOPED_TRACE(name);
    constexpr std::int64_t kRows = 600;
    constexpr std::int64_t kColumns = 1024;
    const std::vector<float> values = Normal(kRows * kColumns);
    BlockTensor tensor = {.format = *FindBlockFormat(name), .shape = {kRows, kColumns}};
    std::vector<float> whole(values.size());
    ASSERT_TRUE(RoundBlocks(values, {}, tensor, whole).has_value());

    const auto [lowest, highest] = std::ranges::minmax_element(values);
    const Extremes extremes = {*lowest, *highest};
    const Spans spans = Spans::Rows(kRows * kColumns, kColumns, tensor.format.block_elements);
    ASSERT_GT(spans.Count(), 1);
    std::vector<float> rounded(values.size());
    for (std::int64_t i = 0; i < spans.Count(); ++i) {
      const Span span = spans.At(i);
      BlockRounder rounder(tensor.format, {.extremes = extremes},
                           NeedsExtremes(tensor.format, false));
      const auto first = static_cast<std::size_t>(span.first);
      const auto count = static_cast<std::size_t>(span.Elements());
      ASSERT_TRUE(rounder
                      .Round(span, std::span(values).subspan(first, count),
                             std::span(rounded).subspan(first, count))
                      .has_value());
    }
    EXPECT_EQ(rounded, whole);
  }
}

// The scales of spans are quantised less the mean of all of them, whatever that of the span is.
TEST(BlockRounder, DoubleQuantisedSpansHaveTheOffsetOfTheTensor) {
  for (const char* name : {"nf4:double", "fp4:block=128,double"}) {
    SCOPED_TRACE(name);
    std::vector<float> values = Normal(600'000);
    std::ranges::for_each(std::span(values).first(200'000), [](float& value) { value *= 9; });
    BlockTensor tensor = {.format = *FindBlockFormat(name), .shape = {1, 600'000}};
    std::vector<float> whole(values.size());
    ASSERT_TRUE(RoundBlocks(values, {}, tensor, whole).has_value());

    const Spans spans = Spans::Flat(600'000, kFlatSpan);
    std::vector<float> rounded(values.size());
    for (std::int64_t i = 0; i < spans.Count(); ++i) {
      const Span span = spans.At(i);
      const auto first = static_cast<std::size_t>(span.first);
      const auto count = static_cast<std::size_t>(span.Elements());
      BlockRounder rounder(tensor.format, {.scale_offset = tensor.scale_offset}, false);
      ASSERT_TRUE(rounder
                      .Round(span, std::span(values).subspan(first, count),
                             std::span(rounded).subspan(first, count))
                      .has_value());
    }
    EXPECT_EQ(rounded, whole);
  }
}

TEST(BlockRounder, TellsTheScales) {
  // A block of zeros, one of values that a scale of the tensor loses, one that is kept.
  std::vector<float> values(48);
  std::fill_n(values.begin() + 16, 16, 1e-9F);
  std::fill_n(values.begin() + 32, 16, 6.0F);
  BlockRounder rounder(*FindBlockFormat("nvfp4"), {.extremes = {.lowest = 0, .highest = 6}}, true);
  std::vector<float> rounded(values.size());
  ASSERT_TRUE(rounder.Round({.rows = 1, .columns = 48}, values, rounded).has_value());
  const ScaleFacts facts = rounder.Scales(values);
  EXPECT_EQ(facts.scales, 3);
  EXPECT_EQ(facts.zero, 2);
  EXPECT_EQ(facts.lost_blocks, 1);
  EXPECT_NEAR(facts.largest, 1, 1e-6);  // 6 ÷ 6
  EXPECT_EQ(facts.smallest, facts.largest);
}

// The last block of a row of 20 has a scale of its own: 6 ÷ 6 beside 2688 ÷ 6, where the tensor's
// is 2688 ÷ (6 × 448). All values are ones of float4_e2m1fn times their scale.
TEST(BlockRounder, AShortBlockOfASingleRowKeepsItsScale) {
  for (const char* name : {"nvfp4", "nvfp4:tensor-scale=divisor"}) {
    std::vector<float> values(20);
    values[0] = 2688;
    values[16] = 6;
    values[17] = 3;
    values[18] = -1.5F;
    values[19] = 0.5F;
    BlockRounder rounder(*FindBlockFormat(name), {.extremes = {.lowest = -1.5, .highest = 2688}},
                         true);
    std::vector<float> rounded(values.size());
    ASSERT_TRUE(rounder.Round({.rows = 1, .columns = 20}, values, rounded).has_value());
    EXPECT_EQ(rounded, values) << name;
    const ScaleFacts facts = rounder.Scales(values);
    EXPECT_EQ(facts.scales, 2);
    EXPECT_EQ(facts.smallest, 1);
    EXPECT_EQ(facts.largest, 448);
  }
}

TEST(Spans, CoverATensorOnce) {
  struct Cut {
    std::int64_t elements, columns, block;
  };
  for (const auto& [elements, columns, block] :
       {Cut{0, 7, 1}, Cut{1, 1, 1}, Cut{7'000'000, 7, 32}, Cut{kLongestRow * 2, kLongestRow, 32},
        Cut{(kLongestRow + 96) * 3, kLongestRow + 96, 96}}) {
    const Spans spans = Spans::Rows(elements, columns, block);
    std::int64_t next = 0;
    for (std::int64_t i = 0; i < spans.Count(); ++i) {
      const Span span = spans.At(i);
      EXPECT_EQ(span.first, next);
      EXPECT_EQ(span.first % columns % block, 0);
      EXPECT_TRUE(span.columns == columns || span.rows == 1);
      next += span.Elements();
    }
    EXPECT_EQ(next, elements);
  }
}

}  // namespace
}  // namespace fourpiles
