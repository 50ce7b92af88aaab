#include "formats/typed_number.h"

#include <cmath>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

namespace fourpiles {
namespace {

double ValueIn(const char* text, const char* format) {
  const NumberFormat f = FindFormat(format).value();
  return Decode(Encode(ParseNumber(text, "VALUE").value().AsReal(), f).code, f);
}

TEST(TypedNumber, ReadsDecimalHexadecimalAndNames) {
  EXPECT_EQ(ParseNumber("0.1", "V").value().nearest, 0.1);
  EXPECT_EQ(ParseNumber("-3", "V").value().nearest, -3.0);
  EXPECT_EQ(ParseNumber("+1E-8", "V").value().nearest, 1e-8);
  EXPECT_EQ(ParseNumber(".5", "V").value().nearest, 0.5);
  EXPECT_EQ(ParseNumber("5.", "V").value().nearest, 5.0);
  EXPECT_EQ(ParseNumber("0x1.8p3", "V").value().nearest, 12.0);
  EXPECT_EQ(ParseNumber("-0X.8P-3", "V").value().nearest, -0.0625);
  EXPECT_EQ(ParseNumber("0xff", "V").value().nearest, 255.0);
  EXPECT_EQ(ParseNumber("-inf", "V").value().nearest, -HUGE_VAL);
  EXPECT_EQ(ParseNumber("Infinity", "V").value().nearest, HUGE_VAL);
  EXPECT_TRUE(std::isnan(ParseNumber("NaN", "V").value().nearest));
  EXPECT_TRUE(std::signbit(ParseNumber("-0", "V").value().nearest));
}

TEST(TypedNumber, RefusesWhatIsNoNumber) {
  for (const char* const text :
       {"",      "1e",   "0x",      "ten", "1.2.3", "--1",     "+-1",   "1e+-3", "1 ",  " 1", "1,5",
        "1e5.0", "0x1p", "0x1.gp3", "e5",  ".",     "1e99999", "nan()", "1_000", "0b1", "1f"}) {
    const Result<TypedNumber> number = ParseNumber(text, "VALUE");
    ASSERT_FALSE(number) << text;
    EXPECT_EQ(number.error().kind, ErrorKind::kUsage);
    EXPECT_EQ(number.error().text.where, "VALUE");
    EXPECT_EQ(number.error().text.found, "\"" + std::string(text) + "\" is not a number");
    EXPECT_EQ(number.error().text.expected,
              "expected one such as 0.1, -3, 1e-8, 0x1.8p3, inf or nan");
  }
  EXPECT_FALSE(ParseNumber(std::string(1001, '1'), "V"));
  EXPECT_TRUE(ParseNumber(std::string(1000, '1'), "V"));
}

TEST(TypedNumber, RefusesInfinityWhereAFiniteNumberBelongs) {
  EXPECT_EQ(ParseFiniteNumber("inf", "--by").error().text.found, "\"inf\" is not finite");
}

// The middle between float16's 1 and 1 + 2^-10 is 1.00048828125; ties go to 1.
TEST(TypedNumber, RoundsWhatWasTypedAndNotItsNearestDouble) {
  EXPECT_EQ(ValueIn("1.00048828125", "float16"), 1.0);
  EXPECT_EQ(ValueIn("1.00048828125000000000000000001", "float16"), 1.0009765625);
  EXPECT_EQ(ValueIn("1.00048828124999999999999999999", "float16"), 1.0);
  EXPECT_EQ(ValueIn("-1.00048828125000000000000000001", "float16"), -1.0009765625);
  // One more than 2^-9 as typed: the middle of 1 + 2^-10 and 1 + 2^-9 is 1.00146484375, up to even.
  EXPECT_EQ(ValueIn("1.00146484374999999999999999999", "float16"), 1.0009765625);
  EXPECT_EQ(ValueIn("0x1.002000000000000000000000001p0", "float16"), 1.0009765625);
}

TEST(TypedNumber, Float64GetsTheNearestDouble) {
  for (const char* const text : {"0.1", "1e23", "2.2250738585072011e-308", "5e-324", "2e-324",
                                 "1.7976931348623158e308", "9007199254740993"}) {
    EXPECT_EQ(ValueIn(text, "float64"), std::strtod(text, nullptr)) << text;
  }
  EXPECT_EQ(ValueIn("1e400", "float64"), HUGE_VAL);
  EXPECT_EQ(ValueIn("-1e400", "float16"), -HUGE_VAL);
  EXPECT_EQ(ValueIn("1e-400", "bfloat16"), 0.0);
}

// The C library rounds any decimal number correctly to nearest-even.
TEST(TypedNumber, Float64IsWhatTheCLibraryReads) {
  std::uint64_t bits = 1;
  for (int i = 0; i < 3000; ++i) {
    std::string text = i % 2 == 0 ? "-" : "";
    for (int digit = 0; digit < 3 + i % 60; ++digit) {
      bits = bits * 6364136223846793005U + 1442695040888963407U;
      text += static_cast<char>('0' + (bits >> 33) % 10);
    }
    text += "e" + std::to_string(static_cast<int>((bits >> 40) % 720) - 380);
    EXPECT_EQ(ValueIn(text.c_str(), "float64"), std::strtod(text.c_str(), nullptr)) << text;
  }
}

TEST(TypedNumber, Has122BitsExactly) {
  const auto real = [](const char* text) { return ParseNumber(text, "V").value().AsReal(); };
  const Real short_one = real("0x123456789abcdef0123456789abcdefp-100");  // 121 bits
  EXPECT_EQ(short_one.significand, 0x91A2B3C4D5E6F780U);
  EXPECT_EQ(short_one.lower, 0x91A2B3C4D5E6F780U);
  EXPECT_EQ(short_one.exponent, 64 - 100 - 7);
  EXPECT_FALSE(short_one.more);
  const Real long_one = real("-0x123456789abcdef0123456789abcdef00000001p-1100");
  EXPECT_EQ(long_one.significand, short_one.significand);
  EXPECT_EQ(long_one.lower >> 6, short_one.lower >> 6);
  EXPECT_EQ(long_one.exponent, 64 - 1100 + 32 - 7);
  EXPECT_TRUE(long_one.more);
  EXPECT_TRUE(long_one.negative);
}

TEST(TypedNumber, SaysOverflowAndUnderflowBeyondDoubles) {
  const NumberFormat wide = FindFormat("float64").value();
  EXPECT_EQ(Encode(ParseNumber("1e400", "V").value().AsReal(), wide).status,
            RoundingStatus::kOverflow);
  EXPECT_EQ(Encode(ParseNumber("1e-400", "V").value().AsReal(), wide).status,
            RoundingStatus::kUnderflow);
}

}  // namespace
}  // namespace fourpiles
