#include "units/parse.h"

#include <string>

#include <gtest/gtest.h>

#include "base/checked.h"
#include "units/print.h"

namespace fourpiles {
namespace {

std::int64_t BytesOf(std::string_view text) {
  return ParseBytes(text, "--device").value().value();
}
std::int64_t CountOf(std::string_view text) {
  return ParseCount(text, "MODEL").value();
}

TEST(ParseBytes, KnowsBothFamiliesOfUnits) {
  EXPECT_EQ(BytesOf("80GB"), 80'000'000'000);
  EXPECT_EQ(BytesOf("80 GB"), 80'000'000'000);
  EXPECT_EQ(BytesOf("80gb"), 80'000'000'000);
  EXPECT_EQ(BytesOf("80G"), 80'000'000'000);
  EXPECT_EQ(BytesOf("81559MiB"), 81559LL << 20);
  EXPECT_EQ(BytesOf("1TiB"), 1LL << 40);
  EXPECT_EQ(BytesOf("1.5kB"), 1500);
  EXPECT_EQ(BytesOf("4096"), 4096);
  EXPECT_EQ(BytesOf("1e9"), 1'000'000'000);
  EXPECT_EQ(BytesOf("0"), 0);
}

// 79.65 × 2^30 is 85,523,536,281.6.
TEST(ParseBytes, RoundsAFractionOfAByte) {
  EXPECT_EQ(BytesOf("79.65GiB"), 85'523'536'282);
  EXPECT_EQ(BytesOf("0.5"), 1);
  EXPECT_EQ(BytesOf("0.49"), 0);
}

TEST(ParseBytes, RefusesNonsenseByName) {
  for (const char* const text :
       {"",        "GB",    "1e",   "0x",     "0x10",  "ten",
        "1.2.3GB", "-1GB",  "+1GB", "80GBit", "80 ",   " 80",
        "80  GB",  "1,5GB", "nan",  "inf",    "80GB!", "99999999999999999999",
        "1e100",   "."}) {
    const Result<Bytes> bytes = ParseBytes(text, "--device");
    ASSERT_FALSE(bytes) << text;
    EXPECT_EQ(bytes.error().kind, ErrorKind::kUsage);
    EXPECT_EQ(bytes.error().text.found, "\"" + std::string(text) + "\" is not a size");
    EXPECT_EQ(bytes.error().text.expected, "expected one such as 80GB, 79.6GiB or 4096");
  }
  EXPECT_FALSE(ParseBytes(std::string_view("80\0GB", 5), "--device"));
}

TEST(ParseBytes, RefusesMoreThan2To53) {
  EXPECT_EQ(BytesOf("9007199254740992"), kLargestAmount);
  for (const char* const text :
       {"9007199254740993", "9.1PB", "8PiB1", "1e16", "100000000000000000PB"}) {
    EXPECT_FALSE(ParseBytes(text, "--device")) << text;
  }
  EXPECT_EQ(ParseBytes("1e16", "--device").error().text.found, "\"1e16\" is more than 2^53");
  EXPECT_EQ(ParseBytes("9PiB", "--device").error().text.found, "\"9PiB\" is more than 2^53");
}

TEST(ParseCount, KnowsTheLettersOfParameterCounts) {
  EXPECT_EQ(CountOf("1.5B"), 1'500'000'000);
  EXPECT_EQ(CountOf("70b"), 70'000'000'000);
  EXPECT_EQ(CountOf("350M"), 350'000'000);
  EXPECT_EQ(CountOf("0.5B"), 500'000'000);
  EXPECT_EQ(CountOf("1T"), 1'000'000'000'000);
  EXPECT_EQ(CountOf("1e12"), 1'000'000'000'000);
  EXPECT_EQ(CountOf("1.50e3"), 1500);
  EXPECT_EQ(CountOf("4096"), 4096);
}

TEST(ParseCount, RefusesFractionsAndValuesOutOfRange) {
  EXPECT_EQ(ParseCount("1.5", "--devices").error().text.found, "\"1.5\" is not a whole number");
  EXPECT_EQ(ParseCount("0", "--layers", {1, 100}).error().text.expected,
            "expected a whole number from 1 to 100");
  EXPECT_EQ(ParseCount("-3", "-b").error().text.found, "\"-3\" is not a count");
  EXPECT_EQ(ParseCount("8x7B", "MODEL").error().text.found, "\"8x7B\" is not a count");
}

// What is printed with all its digits reads back, over all powers of two and their neighbours.
TEST(Units, WholeAmountsComeBack) {
  for (std::int64_t power = 1; power <= kLargestAmount; power *= 2) {
    for (const std::int64_t value : {power - 1, power, power + 1}) {
      if (value <= kLargestAmount) {
        EXPECT_EQ(BytesOf(std::to_string(value)), value);
        EXPECT_EQ(CountOf(std::to_string(value)), value);
      }
    }
  }
}

// A printed size reads back to within half of its last digit.
TEST(Units, PrintedSizesReadBackToTheirDigits) {
  for (std::int64_t value = 1; value < kLargestAmount / 3; value = value * 3 + 1) {
    for (const ByteUnit unit : {ByteUnit::kGib, ByteUnit::kGb}) {
      const std::string printed = PrintBytes(Bytes(value), unit);
      const auto back = static_cast<double>(BytesOf(printed));
      EXPECT_NEAR(back / static_cast<double>(value), 1.0, 0.051) << printed;
    }
  }
}

template <class A, class B>
concept Addable = requires(A a, B b) {
  a + b;
};

TEST(Units, BytesAndElementsDoNotMix) {
  static_assert(Addable<Bytes, Bytes>);
  static_assert(!Addable<Bytes, Elements>);
  static_assert(!Addable<Bytes, std::int64_t>);
  static_assert(!std::is_convertible_v<std::int64_t, Bytes>);
  EXPECT_LT(Bytes(3) - Bytes(5), Bytes(0));  // headroom may be negative
}

}  // namespace
}  // namespace fourpiles
