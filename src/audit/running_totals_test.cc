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

TEST(RunningFacts, HaveAKurtosisWhereRoundingLeavesOne) {
  for (const float mean : {0.0F, 1.0F, 100.0F, 1000.0F}) {
    const ValueFacts facts = FactsOfTwoPoints(mean);
    EXPECT_NEAR(facts.mean, mean, 1e-9);
    EXPECT_NEAR(facts.deviation, 1, 1e-6);
    EXPECT_NEAR(facts.kurtosis.value_or(0), 1, 0.01) << mean;
  }
}

TEST(RunningFacts, AKurtosisThatRoundingHidesIsNotKnown) {
  for (const float mean : {1e4F, 1e5F, 1e6F}) {
    const ValueFacts facts = FactsOfTwoPoints(mean);
    EXPECT_EQ(facts.mean, mean);
    EXPECT_NEAR(facts.deviation, 1, 0.01);
    EXPECT_FALSE(facts.kurtosis.has_value()) << mean;
  }
}

}  // namespace
}  // namespace fourpiles
