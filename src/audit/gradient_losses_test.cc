#include "audit/gradient_losses.h"

#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

namespace fourpiles {
namespace {

GradientCounts CountsOf(std::string_view format, const std::vector<double>& gradients) {
  GradientCounts counts(std::vector{*FindFormat(format)});
  counts.Add(gradients);
  return counts;
}

// IEEE 754 float16: the smallest value 2^−24, the smallest normal one 2^−14, the largest 65504.
TEST(GradientLosses, ChangeWhereRoundingDoes) {
  const auto above = [](double value) { return std::nextafter(value, 1e9); };
  const auto below = [](double value) { return std::nextafter(value, 0.0); };
  const double normal = 0x1p-14 - 0x1p-25;
  const GradientCounts counts =
      CountsOf("float16", {0x1p-25, -above(0x1p-25), below(normal), normal, below(65520), -65520});
  const ScaleLosses plain = counts.LossesIn(0).scales.front();
  EXPECT_EQ(plain.vanished, 1);
  EXPECT_EQ(plain.subnormal, 2);
  EXPECT_EQ(plain.overflow, 1);
  const ScaleLosses scaled = counts.LossesIn(0).scales[11];
  EXPECT_EQ(scaled.exponent, 11);
  EXPECT_EQ(scaled.vanished, 0);
  EXPECT_EQ(scaled.subnormal, 0);  // 2^−25 × 2^11 is the smallest normal one
  EXPECT_EQ(scaled.overflow, 2);
}

// The same, one gradient at a time.
ScaleLosses RoundEach(const std::vector<double>& gradients, int exponent,
                      const NumberFormat& format) {
  ScaleLosses losses = {.exponent = exponent};
  for (const double gradient : gradients) {
    switch (Encode(std::ldexp(gradient, exponent), format).status) {
      case RoundingStatus::kUnderflow:
        ++losses.vanished;
        break;
      case RoundingStatus::kSubnormal:
        ++losses.subnormal;
        break;
      case RoundingStatus::kOverflow:
      case RoundingStatus::kNan:
        ++losses.overflow;
        break;
      default:
        break;
    }
  }
  return losses;
}

TEST(GradientLosses, AreThoseOfRoundingEachAtEachScale) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  std::vector<double> gradients(3000);
  for (double& gradient : gradients) {
    gradient = static_cast<float>(normal(random) * std::exp2(6 * normal(random) - 14));
  }
  for (const char* name : {"float16", "bfloat16", "float8_e5m2", "float8_e4m3fn"}) {
    for (const ScaleLosses& scale : CountsOf(name, gradients).LossesIn(0).scales) {
      const ScaleLosses expected = RoundEach(gradients, scale.exponent, *FindFormat(name));
      EXPECT_EQ(scale.vanished, expected.vanished) << name << " 2^" << scale.exponent;
      EXPECT_EQ(scale.subnormal, expected.subnormal) << name << " 2^" << scale.exponent;
      EXPECT_EQ(scale.overflow, expected.overflow) << name << " 2^" << scale.exponent;
    }
  }
}

// 65520 ÷ 0.15 lies between 2^18 and 2^19.
TEST(GradientLosses, LargestSafeScaleFits) {
  const GradientLosses losses = CountsOf("float16", {0.15, 1e-6}).LossesIn(0);
  EXPECT_EQ(losses.largest_safe, 18);
  EXPECT_EQ(losses.recommended, 15);
  EXPECT_EQ(losses.scales[18].overflow, 0);
  EXPECT_EQ(losses.scales[19].overflow, 1);
  EXPECT_EQ(CountsOf("float16", {65519.0}).LossesIn(0).largest_safe, 0);
  EXPECT_EQ(CountsOf("float16", {65519.0}).LossesIn(0).recommended, 0);
  EXPECT_EQ(CountsOf("float16", {65520.0}).LossesIn(0).largest_safe, -1);
  EXPECT_EQ(CountsOf("float16", {65520.0}).LossesIn(0).recommended, std::nullopt);
  EXPECT_EQ(CountsOf("float16", {1e-30}).LossesIn(0).recommended, 24);
}

TEST(GradientLosses, OfNothingAreNothing) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinite = std::numeric_limits<double>::infinity();
  const GradientCounts counts = CountsOf("float16", {nan, -infinite, 0, -0.0});
  EXPECT_EQ(counts.Facts().nan, 1);
  EXPECT_EQ(counts.Facts().infinite, 1);
  EXPECT_EQ(counts.Facts().zero, 2);
  EXPECT_EQ(counts.Facts().nonzero, 0);
  EXPECT_EQ(counts.LossesIn(0).largest_safe, std::nullopt);
  EXPECT_EQ(VanishedShare(counts.LossesIn(0).scales.front(), counts.Facts()), 0);
}

TEST(GradientFacts, HaveAHistogramOverBinades) {
  const auto at = [](int binade) { return static_cast<std::size_t>(binade - kLowestBinade); };
  GradientCounts counts = CountsOf("float16", {1.5, -1, 0x1p-149, 0x1p127, 0x1p-1074, 0x1p1023});
  counts.Add(CountsOf("float16", {1.75, 0.25}));
  const GradientFacts& facts = counts.Facts();
  EXPECT_EQ(facts.binades[at(0)], 3);
  EXPECT_EQ(facts.binades[at(-2)], 1);
  EXPECT_EQ(facts.binades[at(-149)], 2);
  EXPECT_EQ(facts.binades[at(127)], 2);
  EXPECT_EQ(facts.smallest, 0x1p-1074);
  EXPECT_EQ(facts.largest, 0x1p1023);
  EXPECT_EQ(facts.count, 8);
}

}  // namespace
}  // namespace fourpiles
