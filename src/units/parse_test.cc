#include "units/parse.h"

#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/checked.h"
#include "base/testing.h"
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
  EXPECT_EQ(BytesOf("0.0005kB"), 1);
  EXPECT_EQ(BytesOf("0.00049kB"), 0);
  EXPECT_EQ(BytesOf("1e-100GB"), 0);
}

// The product is 6,561,027,665,116,843.21; with doubles it comes out as ….844.
TEST(ParseBytes, IsExact) {
  EXPECT_EQ(BytesOf("6110433.1772GiB"), 6'561'027'665'116'843);
  EXPECT_EQ(BytesOf("0.1GB"), 100'000'000);
  EXPECT_EQ(BytesOf("0.123456789GB"), 123'456'789);
  EXPECT_EQ(BytesOf("000000000000000000000000001.50kB"), 1500);
  EXPECT_EQ(BytesOf("1e-3MB"), 1000);
}

TEST(ParseBytes, RefusesAFractionWithoutAUnit) {
  for (const char* const text : {"79.65", "0.5", "1.5 bytes", "1e-3"}) {
    EXPECT_EQ(
        ErrorLine(ParseBytes(text, "--device")),
        "--device | \"" + std::string(text) +
            "\" is not a whole number of bytes | expected one such as 80GB, 79.6GiB or 4096 | "
            "GB is 10^9 bytes, GiB is 2^30");
  }
  EXPECT_EQ(BytesOf("80.0"), 80);
}

TEST(ParseBytes, RefusesNonsenseByName) {
  for (const char* const text : {"",     "GB",   "1e",     "0x",  "0x10",  "ten",    "1.2.3GB",
                                 "-1GB", "+1GB", "80GBit", "80 ", " 80",   "80  GB", "1,5GB",
                                 "nan",  "inf",  "80GB!",  ".",   "1e+GB", "80Gi",   "80e"}) {
    EXPECT_EQ(ErrorLine(ParseBytes(text, "--device")),
              "--device | \"" + std::string(text) +
                  "\" is not a size | expected one such as 80GB, 79.6GiB or 4096 | "
                  "GB is 10^9 bytes, GiB is 2^30");
  }
  EXPECT_FALSE(ParseBytes(std::string_view("80\0GB", 5), "--device"));
  EXPECT_EQ(ParseBytes("ten", "--device").error().kind, ErrorKind::kUsage);
}

TEST(ParseBytes, RefusesHugeStringsOfDigits) {
  const std::string digits(1'000'000, '9');  // NOLINT(bugprone-string-constructor): long on purpose
  EXPECT_EQ(ErrorLine(ParseBytes(digits, "--device")),
            "--device | \"" + digits.substr(0, 40) +
                "…\" has more than 18 digits | expected one such as 80GB, 79.6GiB or 4096 | "
                "GB is 10^9 bytes, GiB is 2^30");
  EXPECT_FALSE(ParseBytes("1e" + digits, "--device"));
}

TEST(ParseBytes, RefusesMoreThan2To53) {
  EXPECT_EQ(BytesOf("9007199254740992"), kLargestAmount);
  EXPECT_EQ(BytesOf("8PiB"), kLargestAmount);
  for (const std::string text :
       {"9007199254740993", "9.1PB", "8.1PiB", "1e16", "1e100", "100000000000000000PB"}) {
    EXPECT_EQ(ParseBytes(text, "--device").error().text.found, '"' + text + "\" is more than 2^53");
  }
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
  EXPECT_EQ(ParseCount("0.0000001M", "-b").error().text.found,
            "\"0.0000001M\" is not a whole number");
}

TEST(ParseCount, RefusesAMixtureOfExpertsByItsNickname) {
  EXPECT_EQ(ErrorLine(ParseCount("8x7B", "MODEL")),
            "MODEL | \"8x7B\" is not a count | "
            "expected the parameters in all, 46.7B for Mixtral-8x7B | "
            "experts share the rest of the network; or give the model's name or config.json");
  EXPECT_EQ(ErrorLine(ParseCount("0x10", "MODEL")),
            "MODEL | \"0x10\" is not a count | expected one such as 4096, 1.5B, 70b or 1e12 | "
            "k, M, B and T are 10^3, 10^6, 10^9 and 10^12");
}

// Zero, and the neighbours of each power of two up to the limit.
std::vector<std::int64_t> ManyAmounts() {
  std::vector<std::int64_t> amounts = {0};
  for (std::int64_t power = 2; power < kLargestAmount; power *= 2) {
    amounts.insert(amounts.end(), {power - 1, power, power + 1});
  }
  amounts.insert(amounts.end(), {kLargestAmount - 1, kLargestAmount});
  return amounts;
}

TEST(Units, WholeAmountsReadBack) {
  for (const std::int64_t amount : ManyAmounts()) {
    EXPECT_EQ(BytesOf(std::to_string(amount)), amount);
    EXPECT_EQ(CountOf(std::to_string(amount)), amount);
  }
}

// Printing cuts digits off, at most one in twenty ("1.0 KiB"), and once only.
void ExpectPrintedReadsBack(std::int64_t amount, ByteUnit unit) {
  const std::string printed = PrintBytes(Bytes(amount), unit);
  const std::int64_t back = BytesOf(printed);
  EXPECT_LE(std::abs(back - amount), amount / 20) << printed;
  EXPECT_EQ(PrintBytes(Bytes(back), unit), printed);
}

TEST(Units, PrintedSizesReadBackToTheirDigits) {
  for (const std::int64_t amount : ManyAmounts()) {
    ExpectPrintedReadsBack(amount, ByteUnit::kGib);
    ExpectPrintedReadsBack(amount, ByteUnit::kGb);
  }
}

}  // namespace
}  // namespace fourpiles
