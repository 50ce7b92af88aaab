#include "audit/update_losses.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace fourpiles {
namespace {

struct Element {
  double weight;
  double update;
};

UpdateSums SumsOf(std::string_view format, std::initializer_list<Element> elements) {
  std::vector<double> weights;
  std::vector<double> updates;
  for (const auto& [weight, update] : elements) {
    weights.push_back(weight);
    updates.push_back(update);
  }
  UpdateSums sums;
  AddUpdates(weights, updates, *FormatGrid::Of(*FindFormat(format)), sums);
  return sums;
}

// Above 1 bfloat16 has a value every 2^−7, below it every 2^−8.
TEST(UpdateLosses, OfBfloat16AroundOne) {
  const UpdateLosses losses =
      SumsOf("bfloat16", {{1, 0x1p-9}, {1, -0x1p-9}, {1, 0x1.8p-8}, {1, 0}}).Total();
  EXPECT_EQ(losses.elements, 4);
  EXPECT_EQ(losses.nonzero, 3);
  EXPECT_EQ(losses.lost, 2);  // the second is a tie, which goes to 1
  EXPECT_EQ(losses.mass, 5 * 0x1p-9);
  EXPECT_EQ(LostMassShare(losses), 2.0 / 5);
  // 1 − ¼, 1 − ½, 1 − ¾
  EXPECT_EQ(losses.stochastic_unmoved, 1.5);
  EXPECT_EQ(StochasticUnmovedShare(losses), 0.5);
  EXPECT_EQ(StochasticKeptShare(losses), 1);
  // Two steps of 2^−9 make 2^−8, a tie, three pass it; of the second one makes a tie, two pass it.
  EXPECT_EQ(losses.median_steps, 2);
  EXPECT_EQ(losses.largest_steps, 3);
}

TEST(UpdateLosses, OfTiesGoToTheEvenValue) {
  // 1 + 2^−7 is odd: half a gap is enough to leave it.
  EXPECT_EQ(SumsOf("bfloat16", {{1 + 0x1p-7, 0x1p-8}}).losses.lost, 0);
  const UpdateLosses losses = SumsOf("bfloat16", {{1 + 0x1p-7, 0x1p-9}}).Total();
  EXPECT_EQ(losses.lost, 1);
  EXPECT_EQ(losses.median_steps, 2);
}

TEST(UpdateLosses, OfWeightsBeyondTheFormatAreLost) {
  const UpdateLosses losses = SumsOf("float16", {{70'000, -100}, {1, 1}}).Total();
  EXPECT_EQ(losses.overflowing_weights, 1);
  EXPECT_EQ(losses.lost, 1);
  EXPECT_EQ(losses.stochastic_unmoved, 1);
  EXPECT_EQ(StochasticKeptShare(losses), 1.0 / 101);
  EXPECT_EQ(losses.largest_steps, 0);  // no number of steps helps
}

// The smallest numbers of float16 are 2^−24 apart.
TEST(UpdateLosses, OfSubnormalWeightsHaveTheirSpacing) {
  const UpdateLosses losses =
      SumsOf("float16", {{0x1p-20, 0x1p-26}, {0x1p-30, 0x1p-30}, {0x1p-20, 0x1p-24}}).Total();
  EXPECT_EQ(losses.subnormal_weights, 2);
  EXPECT_EQ(losses.underflowing_weights, 1);
  EXPECT_EQ(losses.lost, 2);
  EXPECT_EQ(losses.largest_steps, 33);  // of 2^−30 from zero: 32 make a tie with zero
}

TEST(UpdateLosses, OfWhatIsNotFiniteAreLeftOut) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinite = std::numeric_limits<double>::infinity();
  const UpdateLosses losses = SumsOf("float16", {{nan, 1}, {1, nan}, {infinite, 1}}).Total();
  EXPECT_EQ(losses.not_finite, 3);
  EXPECT_EQ(losses.nonzero, 0);
  EXPECT_EQ(LostShare(losses), 0);
  EXPECT_EQ(LostMassShare(losses), 0);
  EXPECT_EQ(StochasticKeptShare(losses), 1);
  EXPECT_EQ(losses.median_steps, 0);
}

TEST(StepHistogram, MediansAreExactUpTo255AndWithinAPercentBeyond) {
  StepHistogram few;
  for (const double steps : {7.0, 2.0, 255.0}) {
    few.Add(steps);
  }
  EXPECT_EQ(few.Median(), 7);
  StepHistogram many;
  for (const double steps : {300.0, 1e6, 1e300}) {
    many.Add(steps);
  }
  EXPECT_NEAR(many.Median(), 1e6, 1e6 / 128);
  many.Add(few);
  EXPECT_EQ(many.Count(), 6);
  EXPECT_EQ(many.Median(), 255);
}

}  // namespace
}  // namespace fourpiles
