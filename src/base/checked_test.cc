#include "base/checked.h"

#include <limits>

#include <gtest/gtest.h>

#include "base/range.h"

namespace fourpiles {
namespace {

constexpr std::int64_t kInt64Most = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kInt64Least = std::numeric_limits<std::int64_t>::min();

// 32 samples of Llama-3.1-8B's logits at 8,192 tokens: 32 × 8,192 × 128,256.
TEST(Checked, ComputesAsOnPaper) {
  const Checked logits = Checked(32) * 8192 * 128256;
  EXPECT_TRUE(logits.ok());
  EXPECT_EQ(logits.value(), 33'621'540'864);
  EXPECT_EQ((Checked(5) - 7).value(), -2);
  EXPECT_EQ((Checked(2) + 3 * Checked(4)).value(), 14);
}

TEST(Checked, HoldsUpTo2To53AndNoFurther) {
  EXPECT_TRUE((Checked(kLargestAmount - 1) + 1).ok());
  EXPECT_FALSE((Checked(kLargestAmount) + 1).ok());
  EXPECT_TRUE((Checked(1 - kLargestAmount) - 1).ok());
  EXPECT_FALSE((Checked(-kLargestAmount) - 1).ok());
  EXPECT_TRUE((Checked(std::int64_t{1} << 26) * (std::int64_t{1} << 27)).ok());
  EXPECT_FALSE((Checked(std::int64_t{1} << 27) * (std::int64_t{1} << 27)).ok());
}

TEST(Checked, NeverWrapsAround) {
  EXPECT_FALSE(Checked(kInt64Most).ok());
  EXPECT_FALSE(Checked(kInt64Least).ok());
  EXPECT_FALSE((Checked(kLargestAmount) * kLargestAmount).ok());
  EXPECT_FALSE((Checked(kInt64Most) * kInt64Most).ok());
  EXPECT_FALSE((Checked(kInt64Least) + kInt64Least).ok());
}

// 2^32 × 2^32 × 0 is 0, but it went through 2^64.
TEST(Checked, RemembersAnOverflowOnTheWay) {
  EXPECT_FALSE((Checked(std::int64_t{1} << 32) * (std::int64_t{1} << 32) * 0).ok());
  EXPECT_FALSE((Checked(kLargestAmount) + 1 - 1).ok());
  EXPECT_THROW((Checked(kLargestAmount) + 1).value(), CheckFailure);
}

TEST(Checked, DividesRoundingUp) {
  EXPECT_EQ(DivideRoundingUp(7, Checked(2)).value(), 4);
  EXPECT_EQ(DivideRoundingUp(8, Checked(2)).value(), 4);
  EXPECT_EQ(DivideRoundingUp(0, Checked(2)).value(), 0);
  EXPECT_EQ(DivideRoundingUp(Checked(kLargestAmount), 1).value(), kLargestAmount);
  EXPECT_FALSE(DivideRoundingUp(Checked(1), 0).ok());
  EXPECT_FALSE(DivideRoundingUp(Checked(-1), 2).ok());
}

TEST(Check, NamesThePlaceAndTheCondition) {
  CHECK(true);
  try {
    CHECK(1 + 1 == 3);
    FAIL() << "passed a false condition";
  } catch (const CheckFailure& failure) {
    EXPECT_TRUE(std::string(failure.what()).ends_with(": 1 + 1 == 3")) << failure.what();
    EXPECT_NE(std::string(failure.what()).find("checked_test.cc:"), std::string::npos);
  }
}

TEST(Range, HoldsItsEnds) {
  constexpr Range kRange = {1, 3};
  EXPECT_TRUE(kRange.Holds(1) && kRange.Holds(3));
  EXPECT_FALSE(kRange.Holds(0) || kRange.Holds(4));
}

TEST(Range, IsNamedInMessages) {
  EXPECT_EQ(ExpectedWholeNumber({1, 1048576}), "expected a whole number from 1 to 1048576");
  EXPECT_EQ(ExpectedWholeNumber({}), "expected a whole number from 0 to 2^53");
  EXPECT_THROW(ExpectedWholeNumber({2, 1}), CheckFailure);
  EXPECT_THROW(ExpectedWholeNumber({0, kLargestAmount + 1}), CheckFailure);
}

}  // namespace
}  // namespace fourpiles
