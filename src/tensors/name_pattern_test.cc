#include "tensors/name_pattern.h"

#include <gtest/gtest.h>

namespace fourpiles {
namespace {

TEST(NamePattern, TakesWholePartsThatAreNumbers) {
  const NamePattern pattern = PatternOf("model.layers.3.mlp.experts.12.w1.weight");
  EXPECT_EQ(pattern.text, "model.layers.{}.mlp.experts.{}.w1.weight");
  EXPECT_EQ(pattern.numbers, (std::vector<std::int64_t>{3, 12}));
  EXPECT_EQ(PatternOf("h/0/attn").text, "h/{}/attn");
  EXPECT_EQ(PatternOf("").text, "");
  EXPECT_EQ(PatternOf("7").numbers, std::vector<std::int64_t>{7});
  EXPECT_EQ(PatternOf("a.12345678901234567890").numbers.size(), 0U);
}

TEST(NamePattern, WritesTheValuesOfEachNumber) {
  EXPECT_EQ(WithValues("l.{}.e.{}.w", {{0, 1, 2, 3}, {5}}), "l.{0..3}.e.5.w");
  EXPECT_EQ(WithValues("l.{}", {{0, 1, 4}}), "l.{0..1,4}");
  EXPECT_EQ(WithValues("l.{}", {{0, 2, 4, 6}}), "l.{0,2,…,6}");
  EXPECT_EQ(WithValues("l.{}", {{0, 2, 5, 9, 10}}), "l.{0..10: 5}");
}

TEST(NamePattern, GroupsNamesThatAreAlikeButForTheirNumbers) {
  NameGroups groups;
  EXPECT_EQ(groups.GroupOf("a.0.b", "x"), 0U);
  EXPECT_EQ(groups.GroupOf("a.0.b", "y"), 1U);
  EXPECT_EQ(groups.GroupOf("a.2.b", "x"), 0U);
  EXPECT_EQ(groups.GroupOf("a.1.b", "x"), 0U);
  EXPECT_EQ(groups.NameOf(0), "a.{0..2}.b");
  EXPECT_EQ(groups.NameOf(1), "a.0.b");
}

TEST(NamePattern, KnowsItsModule) {
  EXPECT_EQ(ModuleOf("model.layers.3.mlp.experts.1.w1.weight"), "model.layers.3.mlp");
  EXPECT_EQ(ModuleOf("blk.3.attn_q.weight"), "blk.3.attn");
  EXPECT_EQ(ModuleOf("model.norm.weight"), "model.norm");
  EXPECT_EQ(ModuleOf("weight"), "weight");
  EXPECT_EQ(ModuleOf("layers.7"), "layers.7");
  EXPECT_EQ(ModuleOf("0.weight"), "0.weight");
  EXPECT_EQ(ModuleOf(""), "");
}

TEST(NamePattern, MatchesStarsAnywhereAndPlainWordsWithin) {
  EXPECT_TRUE(Matches("model.layers.3.mlp.up_proj.weight", "mlp"));
  EXPECT_TRUE(Matches("model.layers.3.mlp.up_proj.weight", "*.mlp.*.weight"));
  EXPECT_TRUE(Matches("model.layers.3.mlp", "model.layers.?.mlp"));
  EXPECT_FALSE(Matches("model.layers.33.mlp", "model.layers.?.mlp"));
  EXPECT_FALSE(Matches("model.layers.3.mlp.up_proj.weight", "mlp*"));
  EXPECT_TRUE(Matches("", "*"));
  EXPECT_FALSE(Matches("", "?"));
  EXPECT_FALSE(Matches(std::string(20000, 'a'), "*a*a*a*a*a*b"));
}

}  // namespace
}  // namespace fourpiles
