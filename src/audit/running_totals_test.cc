#include "audit/running_totals.h"

#include <vector>

#include <gtest/gtest.h>

namespace fourpiles {
namespace {

// Half of them one below the mean, half one above: deviation 1, kurtosis 1.
ValueFacts FactsOfTwoPoints(float mean) {
  std::vector<float> values(kLossBlock);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = mean + (i % 2 == 0 ? 1.0F : -1.0F);
  }
  RunningFacts all{FactsOf(values)};
  all.Add(RunningFacts(FactsOf(values)));
  return all.Facts();
}

TEST(RunningFacts, DoNotCancelWhereTheMeanIsFar) {
  for (const float mean : {0.0F, 1.0F, 10.0F, 1000.0F, 1e4F, 1e6F}) {
    const ValueFacts facts = FactsOfTwoPoints(mean);
    EXPECT_EQ(facts.mean, mean);
    EXPECT_NEAR(facts.deviation, 1, 1e-12) << mean;
    EXPECT_NEAR(facts.kurtosis.value_or(0), 1, 1e-12) << mean;
  }
}

TEST(RunningFacts, ValuesThatAreAlikeHaveNoKurtosis) {
  const std::vector<float> values(1000, 0.1F);
  const ValueFacts facts = RunningFacts(FactsOf(values)).Facts();
  EXPECT_EQ(facts.deviation, 0);
  EXPECT_FALSE(facts.kurtosis.has_value());
}

}  // namespace
}  // namespace fourpiles
