// Against the value tables of the working group (P3109/Public, "Value Tables/HexStrings/K8"), of
// which some rows stand here, and the rules of the draft: 4.7.5 for what becomes of values out of
// range.

#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "formats/choices.h"
#include "formats/codes.h"
#include "formats/rounding.h"

namespace fourpiles {
namespace {

NumberFormat Format(std::string_view name) {
  return FindFormat(name).value();
}

struct TableRow {
  const char* format;
  std::uint64_t code;
  double value;
};

constexpr TableRow kTable[] = {
    {"Binary8p1sf", 0x01, 0x1p-63},    {"Binary8p1sf", 0x40, 1.0},
    {"Binary8p1sf", 0x7f, 0x1p+63},    {"Binary8p1sf", 0x81, -0x1p-63},
    {"Binary8p1sf", 0xff, -0x1p+63},   {"Binary8p1ue", 0x00, 0.0},
    {"Binary8p1ue", 0x01, 0x1p-127},   {"Binary8p1ue", 0x80, 1.0},
    {"Binary8p1ue", 0xfd, 0x1p+125},   {"Binary8p1ue", 0xfe, HUGE_VAL},
    {"Binary8p3se", 0x01, 0x0.8p-16},  {"Binary8p3se", 0x03, 0x0.18p-12},
    {"Binary8p3se", 0x04, 0x1p-15},    {"Binary8p3se", 0x40, 1.0},
    {"Binary8p3se", 0x7e, 0x1.8p+15},  {"Binary8p3se", 0x7f, HUGE_VAL},
    {"Binary8p3se", 0xfe, -0x1.8p+15}, {"Binary8p3se", 0xff, -HUGE_VAL},
    {"Binary8p4se", 0x01, 0x0.4p-8},   {"Binary8p4se", 0x07, 0x0.1cp-4},
    {"Binary8p4se", 0x08, 0x1p-7},     {"Binary8p4se", 0x45, 0x1.ap+0},
    {"Binary8p4se", 0x7e, 0x1.cp+7},   {"Binary8p4se", 0x7f, HUGE_VAL},
    {"Binary8p4se", 0x83, -0x0.cp-8},  {"Binary8p4se", 0xff, -HUGE_VAL},
    {"Binary8p4ue", 0x05, 0x0.14p-12}, {"Binary8p4ue", 0x08, 0x1p-15},
    {"Binary8p4ue", 0x80, 1.0},        {"Binary8p4ue", 0xfd, 0x1.ap+15},
    {"Binary8p4ue", 0xfe, HUGE_VAL},   {"Binary8p8uf", 0x01, 0x0.2p-4},
    {"Binary8p8uf", 0x7f, 0x0.fep+0},  {"Binary8p8uf", 0x80, 1.0},
    {"Binary8p8uf", 0xfe, 0x1.fcp+0},
};

TEST(P3109, CodesHaveTheValuesOfTheWorkingGroupsTables) {
  for (const TableRow& row : kTable) {
    EXPECT_EQ(Decode(row.code, Format(row.format)), row.value) << row.format << " " << row.code;
    EXPECT_EQ(Encode(row.value, Format(row.format)).code, row.code) << row.format;
  }
}

// gfloat, formats.py, test_decode.py and test_finfo.py: the extended signed formats by precision.
// (Its binary8p1 is that of an earlier draft.)
TEST(P3109, FactsAreGfloats) {
  EXPECT_EQ(Largest(Format("binary8p4se")), 224.0);
  EXPECT_EQ(Largest(Format("binary8p3se")), 49152.0);
  EXPECT_EQ(SmallestPositive(Format("binary8p4se")), 0x1p-10);
  EXPECT_EQ(SmallestPositive(Format("binary8p7se")), 0x1p-6);
  for (int precision = 2; precision <= 7; ++precision) {
    const NumberFormat format = Format("binary8p" + std::to_string(precision) + "se");
    EXPECT_EQ(std::ilogb(Largest(format)), (1 << (7 - precision)) - 1) << format.name;
    EXPECT_EQ(Encode(std::nan(""), format).code, 0x80U);
    EXPECT_EQ(Encode(HUGE_VAL, format).code, 0x7fU);
    EXPECT_EQ(Encode(-HUGE_VAL, format).code, 0xffU);
    EXPECT_EQ(Encode(-0.0, format).code, 0U);
  }
}

TEST(P3109, TheFiniteSignedOnesAreFnuzFormats) {
  for (std::uint64_t code = 0; code < 256; ++code) {
    const double p4 = Decode(code, Format("binary8p4sf"));
    const double e4m3 = Decode(code, Format("float8_e4m3fnuz"));
    EXPECT_TRUE(p4 == e4m3 || (std::isnan(p4) && std::isnan(e4m3))) << code;
    const double p3 = Decode(code, Format("binary8p3sf"));
    const double e5m2 = Decode(code, Format("float8_e5m2fnuz"));
    EXPECT_TRUE(p3 == e5m2 || (std::isnan(p3) && std::isnan(e5m2))) << code;
  }
}

TEST(P3109, ThereAreThirtyWithEightBitsOneZeroAndOneNan) {
  std::set<std::string_view> names;
  for (const NumberFormat& format : P3109Formats()) {
    EXPECT_TRUE(names.insert(format.name).second) << format.name;
    EXPECT_EQ(Bits(format), 8) << format.name;
    EXPECT_EQ(Nans(format), 1U) << format.name;
    const bool extended = format.name.ends_with('e');
    EXPECT_EQ(Infinities(format), extended ? (format.has_sign ? 2U : 1U) : 0U) << format.name;
    EXPECT_EQ(Encode(1.0, format).code, format.has_sign ? 0x40U : 0x80U) << format.name;
    EXPECT_EQ(Format(format.name).name, format.name);
  }
  EXPECT_EQ(names.size(), 30U);
}

TEST(P3109, EveryCodeComesBack) {
  for (const NumberFormat& format : P3109Formats()) {
    for (std::uint64_t code = 0; code < 256; ++code) {
      const double value = Decode(code, format);
      const bool nan = code == (format.has_sign ? 0x80U : 0xffU);
      EXPECT_EQ(std::isnan(value), nan) << format.name << " " << code;
      for (const RoundingMode rounding : kRoundingModes) {
        EXPECT_EQ(Encode(value, format, {.rounding = rounding}).code, code) << format.name;
      }
    }
  }
}

TEST(P3109, ValuesFollowEachOther) {
  for (const NumberFormat& format : P3109Formats()) {
    int count = 0;
    std::optional<double> value = format.has_sign ? -Largest(format) : 0.0;
    for (double last = -HUGE_VAL; value; value = NextAbove(*value, format)) {
      EXPECT_LT(last, *value) << format.name;
      last = *value;
      ++count;
    }
    // All but NaN and −infinity.
    EXPECT_EQ(count, 255 - (format.has_sign && HasInfinity(format) ? 1 : 0)) << format.name;
  }
}

// A precision of 1 leaves no fraction: the code says what is even (draft 4.7.4, CodeIsEven).
TEST(P3109, TiesOfPrecisionOneGoToTheEvenCode) {
  const NumberFormat p1 = Format("binary8p1se");
  EXPECT_EQ(Encode(1.5, p1).code, 0x40U);
  EXPECT_EQ(Encode(3.0, p1).code, 0x42U);
  EXPECT_EQ(Encode(0x1p-63, p1).code, 1U);
  EXPECT_EQ(Encode(0x1p-64, p1).code, 0U);
}

struct RangeCase {
  const char* format;
  double value;
  Conversion conversion;
  std::uint64_t code;
};

// SatNone, SatFinite and SatPropagate of the draft are overflow and infinities ieee, both saturate,
// and saturate with ieee. To odd differs: the draft lets it overflow.
TEST(P3109, ValuesOutOfRangeFollowThePolicy) {
  const Conversion none;
  const Conversion finite = NearestEven(Overflow::kSaturate);
  const Conversion propagate = {.overflow = Overflow::kSaturate};
  const auto directed = [](RoundingMode mode) { return Conversion{.rounding = mode}; };
  const RangeCase cases[] = {
      {"binary8p4se", 232.0, none, 0x7e},  // a tie with 240, where infinity lies; 0x7e is even
      {"binary8p4se", 232.1, none, 0x7f},
      {"binary8p4se", -1e9, none, 0xff},
      {"binary8p4se", -1e9, finite, 0xfe},
      {"binary8p4se", -HUGE_VAL, finite, 0xfe},
      {"binary8p4se", -HUGE_VAL, propagate, 0xff},
      {"binary8p4se", 1e9, directed(RoundingMode::kDown), 0x7e},
      {"binary8p4sf", 1e9, none, 0x80},
      {"binary8p4ue", 1e9, none, 0xfe},
      {"binary8p4ue", HUGE_VAL, none, 0xfe},
      {"binary8p4ue", HUGE_VAL, finite, 0xfd},
      {"binary8p4uf", HUGE_VAL, none, 0xff},
      {"binary8p4ue", -3.0, none, 0xff},
      {"binary8p4ue", -3.0, finite, 0x00},
      {"binary8p4ue", -3.0, propagate, 0x00},
      {"binary8p4ue", -3.0, directed(RoundingMode::kUp), 0x00},
      {"binary8p4ue", -3.0, directed(RoundingMode::kTowardZero), 0x00},
      {"binary8p4ue", -3.0, directed(RoundingMode::kDown), 0xff},
      {"binary8p4ue", -HUGE_VAL, none, 0xff},
      {"binary8p4ue", -HUGE_VAL, finite, 0x00},
      {"binary8p4ue", -1e-30, none, 0x00},  // it rounds to zero first
      {"binary8p4ue", -1e-30, directed(RoundingMode::kDown), 0xff},
  };
  for (const RangeCase& test : cases) {
    EXPECT_EQ(Encode(test.value, Format(test.format), test.conversion).code, test.code)
        << test.format << " " << test.value;
  }
}

}  // namespace
}  // namespace fourpiles
