#include "report/explanation.h"

#include <gtest/gtest.h>

namespace fourpiles {
namespace {

Budget OfThousandMillion() {
  const Settings settings = {{"layers", {"32", ""}},
                             {"width", {"4096", ""}},
                             {"sequence-length", {"2048", ""}},
                             {"recipe", {"mixed-fp16", ""}}};
  Budget budget = PlayedBudget(MakeJob(JobKind::kTrain, "1B", settings).value()).value();
  return budget;
}

// The worked example: of each layer one output, 2048 × 4096 float16.
TEST(Explanation, TheTableOfALayerEndsWithItsSum) {
  const std::vector<Table> tables = ExplanationTables(OfThousandMillion(), {});
  ASSERT_EQ(tables.size(), 4U);
  EXPECT_EQ(tables[2].title, "Kept by layers.1 for the backward pass, in bytes");
  ASSERT_EQ(tables[2].rows.size(), 3U);
  EXPECT_EQ(tables[2].rows[1][2], "1 × 2048 × 4096");
  EXPECT_EQ(tables[2].rows[1][4], "16,777,216");
  EXPECT_EQ(tables[2].rows[2][4], "16,777,216");
  EXPECT_EQ(tables[3].rows.back()[1], "536,870,912");
}

TEST(Explanation, JsonHasTheSameNumbers) {
  const Budget budget = OfThousandMillion();
  Json::Object object;
  AddExplanation(budget, object);
  const Json json = object;
  EXPECT_EQ(*json.Find("layer")->Find("name")->AsString(), "layers.1");
  EXPECT_EQ(*json.Find("layer")->Find("bytes")->AsInteger(), 16'777'216);
  const Json& saved = json.Find("layer")->Find("saved")->AsArray()->front();
  EXPECT_EQ(saved.Find("shape")->AsArray()->size(), 3U);
  EXPECT_EQ(*saved.Find("bytes")->AsInteger(), 16'777'216);
  EXPECT_EQ(*json.Find("by_operator")->AsArray()->front().Find("bytes")->AsInteger(), 536'870'912);
}

TEST(Explanation, TheLargestComeFirstAndAreAtMostTen) {
  const Settings settings = {{"recipe", {"fp32", ""}}};
  const Budget budget = PlayedBudget(MakeJob(JobKind::kTrain, "gpt2", settings).value()).value();
  Json::Object object;
  AddExplanation(budget, object);
  const Json json = object;
  const Json::Array& largest = *json.Find("largest")->AsArray();
  EXPECT_EQ(largest.size(), 10U);
  for (std::size_t i = 1; i < largest.size(); ++i) {
    EXPECT_GE(*largest[i - 1].Find("bytes")->AsInteger(), *largest[i].Find("bytes")->AsInteger());
  }
}

}  // namespace
}  // namespace fourpiles
