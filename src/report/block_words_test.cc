#include "report/block_words.h"

#include <gtest/gtest.h>

namespace fourpiles {
namespace {

TEST(BlockWords, EveryFormatHasAllOfThem) {
  for (const BlockFormat& format : BlockFormats()) {
    for (const auto text : {ElementText, ValueText, SharedText, ScaleText, RuleText, PackingText,
                            NanText, ChoicesText, BitsText}) {
      EXPECT_FALSE(text(format).empty()) << format.name;
    }
    EXPECT_FALSE(PackingText(format).ends_with(": ")) << format.name;
  }
}

TEST(BlockWords, TheRuleFollowsTheChoice) {
  const auto rule = [](std::string_view name) { return RuleText(FindBlockFormat(name).value()); };
  EXPECT_EQ(rule("mxfp4"), "2^k, k = floor(log2 largest) − 2");
  EXPECT_EQ(rule("mxint8"), "2^k, k = floor(log2 largest)");
  EXPECT_EQ(rule("mxfp8:scale=rceil"), "2^k, k = ceil(log2 (largest ÷ 448))");
  EXPECT_EQ(rule("int4:asymmetric"), "(largest − smallest, zero among them) ÷ 15");
  EXPECT_EQ(rule("int8"), "largest magnitude ÷ 127");
}

}  // namespace
}  // namespace fourpiles
