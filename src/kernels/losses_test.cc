#include "kernels/losses.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "fourpiles/arrays.h"
#include "fourpiles/formats.h"
#include "kernels/each_target.h"

namespace fourpiles {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// float16's (IEEE 754-2019 Table 3.5).
constexpr LossLimits kHalf = {.largest = 65504, .beyond = 65520, .smallest_normal = 0x1p-14};

void ExpectSame(const BlockLosses& a, const BlockLosses& b) {
  EXPECT_EQ(a.overflow, b.overflow);
  EXPECT_EQ(a.saturated, b.saturated);
  EXPECT_EQ(a.underflow, b.underflow);
  EXPECT_EQ(a.subnormal, b.subnormal);
  EXPECT_EQ(a.changed, b.changed);
  EXPECT_EQ(a.compared, b.compared);
  EXPECT_EQ(a.squared_values, b.squared_values);
  EXPECT_EQ(a.squared_errors, b.squared_errors);
  EXPECT_EQ(a.error_products, b.error_products);
  EXPECT_EQ(a.relative_errors, b.relative_errors);
  EXPECT_EQ(a.largest_relative_error, b.largest_relative_error);
  EXPECT_EQ(a.largest_at, b.largest_at);
}

TEST(CountLosses, SaysWhatBecameOfEach) {
  //                                 kept, rounded, vanished, subnormal, saturated, past it, lost
  const std::vector<float> values = {1,         1 + 0x1p-12F, 1e-9F, 0x1.8p-20F, 65510, 7e4F,
                                     kInfinity, kNan,         0,     -0.F,       3};
  const std::vector<float> rounded = {1, 1, 0, 0x1.8p-20F, 65504, 65504, 65504, kNan, 0, 0, kNan};
  ForEachTarget([&](const char* target) {
    SCOPED_TRACE(target);
    ErrorHistogram histogram;
    const BlockLosses losses = CountLosses(values, rounded, kHalf, values.size(), histogram);
    EXPECT_EQ(losses.overflow, 2);   // 70000, and the 3 that became NaN
    EXPECT_EQ(losses.saturated, 2);  // 65510 and 70000
    EXPECT_EQ(losses.underflow, 1);
    EXPECT_EQ(losses.subnormal, 1);
    EXPECT_EQ(losses.changed, 5);
    EXPECT_EQ(losses.compared, 6);
    EXPECT_EQ(losses.largest_relative_error, 1);
    EXPECT_EQ(losses.largest_at, 2);
    EXPECT_DOUBLE_EQ(losses.squared_errors, 0x1p-24 + 1e-9F * 1e-9F + 6. * 6 + 4496. * 4496);
    EXPECT_EQ(histogram.Quantile(1), 1 + 1. / 128);
    EXPECT_EQ(histogram.Total(), losses.compared);
    EXPECT_EQ(histogram.Quantile(0.25), 0);  // two of six lost nothing
  });
}

TEST(CountLosses, IsTheSameOnEveryTarget) {
  std::mt19937 random(7);
  std::vector<float> values(66'000);
  for (float& value : values) {
    value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));  // all there are
  }
  std::vector<float> rounded(values.size());
  RoundTripArray(values, *FindFormat("float16"), {}, rounded);
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{17},
                                 std::size_t{130}, kLossBlock}) {
    for (const std::size_t start : {0U, 1U, 3U}) {
      std::vector<BlockLosses> all;
      std::vector<BlockFacts> facts;
      std::vector<double> quantiles;
      ForEachTarget([&](const char*) {
        ErrorHistogram histogram;
        all.push_back(CountLosses(std::span(values).subspan(start, size),
                                  std::span(rounded).subspan(start, size), kHalf, 9, histogram));
        facts.push_back(FactsOf(std::span(std::as_const(values)).subspan(start, size)));
        quantiles.push_back(histogram.Quantile(0.99));
      });
      for (std::size_t i = 1; i < all.size(); ++i) {
        ExpectSame(all[0], all[i]);
        EXPECT_EQ(quantiles[0], quantiles[i]);
        EXPECT_EQ(facts[0].nan, facts[i].nan);
        EXPECT_EQ(facts[0].infinite, facts[i].infinite);
        EXPECT_EQ(facts[0].zero, facts[i].zero);
        EXPECT_EQ(facts[0].smallest, facts[i].smallest);
        EXPECT_EQ(facts[0].largest, facts[i].largest);
        EXPECT_EQ(facts[0].squares, facts[i].squares);
        EXPECT_EQ(facts[0].pivot, facts[i].pivot);
        EXPECT_EQ(facts[0].powers, facts[i].powers);
      }
    }
  }
}

// Each of the values so many times, as if they stood one after another.
TEST(CountLosses, OfCountedValuesIsThatOfAllThatOccur) {
  const std::vector<double> values = {1,         1 + 0x1p-12, 1e-9, 0x1.8p-20, 65510, 7e4,
                                      kInfinity, kNan,        0,    -0.,       3,     -5};
  const std::vector<double> rounded = {1,     1,    0, 0x1.8p-20, 65504, 65504,
                                       65504, kNan, 0, 0,         kNan,  -kInfinity};
  const std::vector<double> counts = {3, 1, 2, 5, 1, 4, 2, 6, 7, 1, 2, 3};
  std::vector<double> each;
  std::vector<double> each_rounded;
  for (std::size_t i = 0; i < values.size(); ++i) {
    each.insert(each.end(), static_cast<std::size_t>(counts[i]), values[i]);
    each_rounded.insert(each_rounded.end(), static_cast<std::size_t>(counts[i]), rounded[i]);
  }
  ErrorHistogram histogram;
  const BlockLosses expected = CountLosses(each, each_rounded, kHalf, each.size(), histogram);
  ForEachTarget([&](const char* target) {
    SCOPED_TRACE(target);
    std::vector<double> relatives(values.size());
    const BlockLosses losses = CountLosses({values, rounded, counts}, kHalf, relatives);
    EXPECT_EQ(losses.overflow, 9);   // 70000, and the 3 and −5 that became NaN and infinity
    EXPECT_EQ(losses.saturated, 5);  // 65510 and 70000
    EXPECT_EQ(losses.underflow, 2);
    EXPECT_EQ(losses.subnormal, 5);
    EXPECT_EQ(losses.changed, 13);
    EXPECT_EQ(losses.compared, 16);
    EXPECT_EQ(losses.overflow, expected.overflow);
    EXPECT_EQ(losses.saturated, expected.saturated);
    EXPECT_EQ(losses.changed, expected.changed);
    EXPECT_EQ(losses.compared, expected.compared);
    EXPECT_DOUBLE_EQ(losses.squared_values, expected.squared_values);
    EXPECT_DOUBLE_EQ(losses.squared_errors, expected.squared_errors);
    EXPECT_DOUBLE_EQ(losses.error_products, expected.error_products);
    EXPECT_DOUBLE_EQ(losses.relative_errors, expected.relative_errors);
    EXPECT_EQ(losses.largest_relative_error, 1);
    EXPECT_EQ(relatives, (std::vector<double>{0, 0x1p-12 / (1 + 0x1p-12), 1, 0, 6. / 65510,
                                              4496. / 7e4, -1, -1, -1, -1, -1, -1}));
  });
}

TEST(CountLosses, OfCountedValuesIsTheSameOnEveryTarget) {
  std::mt19937 random(9);
  std::vector<double> values(133);
  std::vector<double> rounded(values.size());
  std::vector<double> counts(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = std::bit_cast<float>(static_cast<std::uint32_t>(random()));  // all there are
    rounded[i] = Decode(Encode(values[i], *FindFormat("float16"), {}).code, *FindFormat("float16"));
    counts[i] = static_cast<double>(random() % 1000);
  }
  for (const std::size_t size : {0U, 1U, 7U, 17U, 128U, 133U}) {
    const CountedValues some = {std::span(values).first(size), std::span(rounded).first(size),
                                std::span(counts).first(size)};
    std::vector<BlockLosses> all;
    std::vector<std::vector<double>> relatives;
    ForEachTarget([&](const char*) {
      relatives.emplace_back(size);
      all.push_back(CountLosses(some, kHalf, relatives.back()));
    });
    for (std::size_t i = 1; i < all.size(); ++i) {
      ExpectSame(all[0], all[i]);
      EXPECT_EQ(relatives[0], relatives[i]);
    }
  }
}

TEST(FactsOf, AddsPowersOfFiniteValues) {
  const std::vector<float> values = {1, -2, 3, 0, kNan, kInfinity, -kInfinity, 0x1p-149F, -0.F};
  ForEachTarget([&](const char* target) {
    SCOPED_TRACE(target);
    const BlockFacts facts = FactsOf(values);
    EXPECT_EQ(facts.count, 9);
    EXPECT_EQ(facts.nan, 1);
    EXPECT_EQ(facts.infinite, 2);
    EXPECT_EQ(facts.zero, 2);
    EXPECT_EQ(facts.smallest, 0x1p-149);
    EXPECT_EQ(facts.largest, 3);
    EXPECT_EQ(facts.powers, (std::array<double, 4>{2, 14, 20, 98}));
  });
}

TEST(FactsOf, AddsPowersAboutAMeanThatIsFarFromZero) {
  ForEachTarget([&](const char* target) {
    SCOPED_TRACE(target);
    const BlockFacts facts = FactsOf(std::vector<float>{99, 101, 98, 102, kNan});
    EXPECT_EQ(facts.squares, 99. * 99 + 101 * 101 + 98 * 98 + 102 * 102);
    EXPECT_EQ(facts.pivot, 100);
    EXPECT_EQ(facts.powers, (std::array<double, 4>{0, 10, 0, 34}));
  });
}

TEST(Extremes, AreThoseOfFiniteValues) {
  ForEachTarget([&](const char* target) {
    SCOPED_TRACE(target);
    for (const std::size_t place : {std::size_t{0}, std::size_t{20}, std::size_t{98}}) {
      std::vector<float> values(99, 1);
      values[50] = -kInfinity;
      values[90] = kNan;
      values[place] = -3e38F;
      Extremes extremes = ExtremesOf(values);
      EXPECT_EQ(extremes.lowest, static_cast<double>(-3e38F));
      EXPECT_EQ(extremes.highest, 1);
      ZeroNonFinite(values);
      EXPECT_EQ(values[50], 0);
      EXPECT_EQ(values[90], 0);
      EXPECT_EQ(values[place], -3e38F);
      EXPECT_EQ(std::ranges::count(values, 1.0F), 96);
      values[place] = kInfinity;
      extremes = ExtremesOf(values);
      EXPECT_EQ(extremes.lowest, 0);
      EXPECT_EQ(extremes.highest, 1);
      ZeroNonFinite(values);
      EXPECT_EQ(values[place], 0);
    }
    EXPECT_EQ(ExtremesOf(std::span<const float>()).highest, 0);
  });
  EXPECT_EQ(ExtremesOf(std::vector<double>{1, -1e300, kNan, -kInfinity}).lowest, -1e300);
}

TEST(Codes, AreSearched) {
  ForEachTarget([&](const char*) {
    std::vector<std::uint16_t> many(99, 1);
    many[10] = 0xffff;
    const CodeRange range = {.mask = 0x7fff, .lowest = 2, .highest = 3};
    EXPECT_EQ(FirstOf(many, range), 99);
    many[98] = 3;
    EXPECT_EQ(FirstOf(many, range), 98);
    many[40] = 0x8002;
    EXPECT_EQ(FirstOf(many, range), 40);
    EXPECT_EQ(FirstOf(many, {.mask = 0xffff, .lowest = 0xffff, .highest = 0xffff}), 10);
  });
}

}  // namespace
}  // namespace fourpiles
