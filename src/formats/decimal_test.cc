#include "formats/decimal.h"

#include <cmath>

#include <gtest/gtest.h>

namespace fourpiles {
namespace {

Decimal D(const char* digits, std::int64_t exponent) {
  return {false, digits, exponent};
}

TEST(Decimal, AddsAndSubtractsExactly) {
  EXPECT_EQ((D("1", 0) + D("1", -30)).Text(), "1.000000000000000000000000000001");
  EXPECT_EQ((D("1", 0) - D("1", -3)).Text(), "0.999");
  EXPECT_EQ((D("1", -3) - D("1", 0)).Text(), "-0.999");
  EXPECT_TRUE((D("25", -2) - D("250", -3)).IsZero());
  EXPECT_EQ((Decimal() + D("7", 2)).Text(), "700");
}

TEST(Decimal, MultipliesExactly) {
  EXPECT_EQ((D("99999999999", 0) * D("99999999999", 0)).Text(), "9999999999800000000001");
  EXPECT_EQ((D("1", -4) * Decimal(10000)).Text(), "1");
  EXPECT_EQ((D("3", 0) * Decimal(-2)).Text(), "-6");
  EXPECT_TRUE((D("3", 0) * Decimal()).IsZero());
}

TEST(Decimal, HoldsEveryDoubleExactly) {
  // 0.1's exact value: IEEE 754 binary64 0x3fb999999999999a.
  EXPECT_EQ(Decimal::Of(0.1) - D("1000000000000000055511151231257827021181583404541015625", -55),
            Decimal());
  for (const double value : {0x1p-1074, 0x1.fffffffffffffp1023, -1.5, 0x1p-1022, 3.0}) {
    EXPECT_EQ(Decimal::Of(value).Nearest(), value);
  }
}

TEST(Decimal, NearestLeavesTheRangeOfDoublesInOrder) {
  EXPECT_EQ(D("1", 400).Nearest(), HUGE_VAL);
  EXPECT_EQ(D("1", -400).Nearest(), 0.0);
  EXPECT_EQ(Decimal(true, "1", 5000).Nearest(), -HUGE_VAL);
}

TEST(Decimal, ComparesAcrossScales) {
  EXPECT_TRUE(D("999", -3) < D("1", 0));
  EXPECT_TRUE(Decimal(-2) < Decimal(-1));
  EXPECT_FALSE(D("10", 0) < D("1", 1));
}

TEST(Decimal, HasWholeDigits) {
  EXPECT_EQ(D("12345", -2).WholeDigits(), "123");
  EXPECT_EQ(Decimal(true, "12345", 2).WholeDigits(), "1234500");
  EXPECT_EQ(D("12345", -5).WholeDigits(), "");
  EXPECT_EQ(D("12345", -9).WholeDigits(), "");
  EXPECT_EQ(Decimal().WholeDigits(), "");
}

TEST(Decimal, PrintsWithAnExponentOnlyWhenLong) {
  EXPECT_EQ(D("15", -1).Text(), "1.5");
  EXPECT_EQ(D("1", -8).Text(), "0.00000001");
  EXPECT_EQ(D("125", -300).Text(), "1.25e-298");
  EXPECT_EQ(D("1", 100).Text(), "1e100");
  EXPECT_EQ(Decimal().Text(), "0");
}

TEST(RelativeError, NeedsNoRangeOfDoubles) {
  EXPECT_EQ(RelativeError(1, Decimal(2)), 0.5);
  EXPECT_EQ(RelativeError(-1, Decimal(-1)), 0);
  EXPECT_EQ(RelativeError(0, D("1", -4000)), 1);
  EXPECT_EQ(RelativeError(1, D("1", 4000)), 1);
  EXPECT_EQ(RelativeError(1, Decimal()), HUGE_VAL);
  EXPECT_EQ(RelativeError(0, Decimal()), 0);
  EXPECT_EQ(RelativeError(-HUGE_VAL, Decimal(1)), HUGE_VAL);
  EXPECT_TRUE(std::isnan(RelativeError(std::nan(""), Decimal(1))));
}

}  // namespace
}  // namespace fourpiles
