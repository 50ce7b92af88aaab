#include "kernels/fused_losses.h"

#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "formats/codes.h"
#include "fourpiles/formats.h"
#include "kernels/each_target.h"

namespace fourpiles {
namespace {

// With the largest value and half a step more, as a reader of OCP's tables would write them.
struct Named {
  const char* name;
  LossLimits limits;
};
const std::vector<Named> named = {
    {"float16", {.largest = 65504, .beyond = 65520, .smallest_normal = 0x1p-14}},
    {"bfloat16", {.largest = 0x1.fep127, .beyond = 0x1.ffp127, .smallest_normal = 0x1p-126}},
    {"float8_e4m3fn",
     {.largest = 448, .beyond = std::nextafter(464., INFINITY), .smallest_normal = 0x1p-6}},
    {"float8_e5m2", {.largest = 57344, .beyond = 61440, .smallest_normal = 0x1p-14}},
    {"float4_e2m1fn", {.largest = 6, .beyond = std::nextafter(7., INFINITY), .smallest_normal = 1}},
};

// Values over many binades, with ties and zeros among them.
std::vector<float> ManyValues(std::size_t count, int binades) {
  std::mt19937 random(3);
  std::uniform_int_distribution<int> exponent(-binades, binades);
  std::uniform_real_distribution<float> fraction(1, 2);
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    float significand = fraction(random);
    if (i % 3 == 0) {  // few bits: ties of narrow formats
      significand = std::round(significand * 64) / 64;
    }
    values[i] =
        i % 101 == 0 ? 0 : std::ldexp(i % 2 == 0 ? significand : -significand, exponent(random));
  }
  return values;
}

// What EncodeArray and DecodeArray say, counted in float64.
TEST(RoundFused, EqualsRoundingAndThenCounting) {
  for (const auto& [name, limits] : named) {
    SCOPED_TRACE(name);
    const NumberFormat format = *FindFormat(name);
    for (const int binades : {4, 20}) {
      const std::vector<float> values = ManyValues(30'000, binades);
      std::vector<float> rounded(values.size());
      RoundTripArray(values, format, NearestEven(Overflow::kSaturate), rounded);
      ErrorHistogram plain_histogram;
      const BlockLosses plain =
          CountLosses(values, rounded, limits, values.size(), plain_histogram);
      const BlockFacts facts = FactsOf(std::span<const float>(values));
      ASSERT_TRUE(CanRoundFused(facts));
      const FusedFormat fused = *FusedFormatOf(format, limits);
      BlockLosses losses;
      ErrorHistogram histogram;
      RoundFused({.values = values, .facts = facts, .sampled = values.size()}, {&fused, 1},
                 {&losses, 1}, {&histogram, 1});
      EXPECT_EQ(losses.overflow, plain.overflow);
      EXPECT_EQ(losses.saturated, plain.saturated);
      EXPECT_EQ(losses.underflow, plain.underflow);
      EXPECT_EQ(losses.subnormal, plain.subnormal);
      EXPECT_EQ(losses.changed, plain.changed);
      EXPECT_EQ(losses.compared, plain.compared);
      EXPECT_EQ(losses.squared_values, plain.squared_values);
      EXPECT_NEAR(losses.squared_errors / plain.squared_errors, 1, 0x1p-20);
      EXPECT_NEAR(losses.error_products, plain.error_products, 1e-6 * plain.squared_values);
      EXPECT_NEAR(losses.relative_errors / plain.relative_errors, 1, 0x1p-20);
      EXPECT_NEAR(losses.largest_relative_error, plain.largest_relative_error, 0x1p-23);
      EXPECT_NEAR(histogram.Quantile(0.99), plain_histogram.Quantile(0.99), 0.01);
    }
  }
}

TEST(RoundFused, IsTheSameOnEveryTarget) {
  const std::vector<float> all = ManyValues(kLossBlock + 3, 12);
  const std::vector<NumberFormat> formats = {*FindFormat("float16"), *FindFormat("e4m3")};
  std::vector<FusedFormat> fused = {*FusedFormatOf(formats[0], named[0].limits),
                                    *FusedFormatOf(formats[1], named[2].limits)};
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{255}, std::size_t{257}, kLossBlock}) {
    const auto values = std::span<const float>(all).subspan(3, size);
    std::vector<std::vector<BlockLosses>> losses;
    std::vector<double> quantiles;
    ForEachTarget([&](const char*) {
      std::vector<BlockLosses> of_target(2);
      std::vector<ErrorHistogram> histograms(2);
      RoundFused({.values = values, .facts = FactsOf(values), .sampled = 4096}, fused, of_target,
                 histograms);
      quantiles.push_back(histograms[1].Quantile(0.99));
      losses.push_back(std::move(of_target));
    });
    for (std::size_t target = 1; target < losses.size(); ++target) {
      EXPECT_EQ(quantiles[0], quantiles[target]);
      for (std::size_t i = 0; i < 2; ++i) {
        const BlockLosses& a = losses[0][i];
        const BlockLosses& b = losses[target][i];
        EXPECT_EQ(a.overflow, b.overflow);
        EXPECT_EQ(a.saturated, b.saturated);
        EXPECT_EQ(a.underflow, b.underflow);
        EXPECT_EQ(a.subnormal, b.subnormal);
        EXPECT_EQ(a.changed, b.changed);
        EXPECT_EQ(a.squared_errors, b.squared_errors);
        EXPECT_EQ(a.error_products, b.error_products);
        EXPECT_EQ(a.relative_errors, b.relative_errors);
        EXPECT_EQ(a.largest_relative_error, b.largest_relative_error);
        EXPECT_EQ(a.largest_at, b.largest_at);
      }
    }
  }
}

// 41 × (1 ÷ 41) is 1 − 2^−24 in float32: so far off is what is clipped to next to nothing, and what
// vanished is off by more, by 1.
TEST(RoundFused, FindsWhatVanishedBehindWhatIsClippedToNextToNothing) {
  std::vector<float> values(1024, 1);
  values[10] = 41 * 0x1p30F;
  values[700] = 41 * 0x1p-30F;
  const FusedFormat format = *FusedFormatOf(*FindFormat("float8_e4m3fn"), named[2].limits);
  ForEachTarget([&](const char* target) {
    BlockLosses losses;
    ErrorHistogram histogram;
    RoundFused({.values = values, .facts = FactsOf(std::span<const float>(values))}, {&format, 1},
               {&losses, 1}, {&histogram, 1});
    EXPECT_EQ(losses.largest_relative_error, 1) << target;
    EXPECT_EQ(losses.largest_at, 700) << target;
  });
}

TEST(RoundFused, LeavesExtremesToTheOtherWay) {
  EXPECT_FALSE(CanRoundFused({.count = 1, .nan = 1}));
  EXPECT_FALSE(CanRoundFused({.count = 1, .infinite = 1}));
  EXPECT_FALSE(CanRoundFused({.count = 1, .smallest = 0x1p120, .largest = 0x1p120}));
  EXPECT_FALSE(CanRoundFused({.count = 1, .smallest = 0x1p-120, .largest = 1}));
  EXPECT_TRUE(CanRoundFused({.count = 1, .zero = 1}));
  EXPECT_FALSE(FusedFormatOf(*FindFormat("float32"), {}).has_value());
  EXPECT_FALSE(FusedFormatOf(*FindFormat("float8_e8m0fnu"), {}).has_value());
}

}  // namespace
}  // namespace fourpiles
