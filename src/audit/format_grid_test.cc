#include "audit/format_grid.h"

#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace fourpiles {
namespace {

FormatGrid GridOf(std::string_view name) {
  return *FormatGrid::Of(*FindFormat(name));
}

// Values at, between and beside those of the format, and any others.
std::vector<double> ValuesFor(const NumberFormat& format) {
  std::mt19937_64 random(7);
  std::vector<double> values = {0.0, -0.0, 0x1p-1074, 0x1p1023, 1.0};
  for (int i = 0; i < 20'000; ++i) {
    const double at = Decode(random(), format);
    if (!std::isfinite(at)) {
      continue;
    }
    const double between = at * (1 + StepNearOne(format) / 2);
    for (const double value : {at, between, at + SmallestPositive(format) / 2,
                               std::nextafter(between, 0.0), std::nextafter(between, 1e300)}) {
      values.push_back(value);
    }
    const double any = std::bit_cast<double>(random());
    values.push_back(std::isfinite(any) ? any : 1.0);
  }
  return values;
}

TEST(FormatGrid, RoundsAsEncodeDoes) {
  for (const char* name : {"bfloat16", "float16", "float32", "float8_e5m2", "float8_e4m3fn", "e3m2",
                           "e4m3fn", "tfloat32", "float8_e4m3fnuz", "e10m40"}) {
    const NumberFormat format = *FindFormat(name);
    const FormatGrid grid = GridOf(name);
    for (const double value : ValuesFor(format)) {
      const Encoded encoded = Encode(value, format, Overflow::kSaturate);
      const double rounded = grid.Round(value);
      if (encoded.status == RoundingStatus::kSaturated) {
        EXPECT_TRUE(std::isinf(rounded)) << name << " " << value;
      } else {
        EXPECT_EQ(rounded, Decode(encoded.code, format)) << name << " " << value;
      }
      EXPECT_EQ(std::signbit(rounded), std::signbit(value));
    }
  }
}

// IEEE 754: float16 has 10 fraction bits and smallest numbers 2^−24 apart; bfloat16 has 7.
TEST(FormatGrid, GapsAreThoseOfTheBinade) {
  const FormatGrid half = GridOf("float16");
  EXPECT_EQ(half.GapOutward(1), 0x1p-10);
  EXPECT_EQ(half.GapInward(1), 0x1p-11);
  EXPECT_EQ(half.GapInward(-1.5), 0x1p-10);
  EXPECT_EQ(half.GapOutward(0), 0x1p-24);
  EXPECT_EQ(half.GapOutward(0x1p-24), 0x1p-24);
  EXPECT_EQ(half.GapInward(0x1p-14), 0x1p-24);
  EXPECT_EQ(half.GapInward(0x1p-13), 0x1p-24);
  EXPECT_EQ(half.GapOutward(0x1p-13), 0x1p-23);
  EXPECT_EQ(GridOf("bfloat16").GapOutward(-1), 0x1p-7);
}

TEST(FormatGrid, OfOtherKindsIsRefused) {
  for (const char* name : {"float64", "float8_e8m0fnu", "e11m4"}) {
    const auto grid = FormatGrid::Of(*FindFormat(name));
    ASSERT_FALSE(grid.has_value()) << name;
    EXPECT_EQ(grid.error().kind, ErrorKind::kUsage);
  }
}

}  // namespace
}  // namespace fourpiles
