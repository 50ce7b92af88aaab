#include <cmath>

#include <gtest/gtest.h>

#include "formats/test_vectors.h"
#include "fourpiles/formats.h"

namespace fourpiles {
namespace {

// format_facts.csv was computed with exact fractions over all codes of each format.
TEST(Facts, AreThoseCountedOverAllCodes) {
  const auto rows = ReadVectors("format_facts.csv");
  ASSERT_EQ(rows.size(), 13U);
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const Row& row = rows[i];
    const std::string name = row[0] == "e4m3" ? "float8_e4m3" : row[0];  // e4m3 is OFP8's elsewhere
    const NumberFormat format = FindFormat(name).value();
    SCOPED_TRACE(row[0]);
    EXPECT_EQ(Bits(format), std::stoi(row[1]));
    EXPECT_EQ(format.exponent_bits, std::stoi(row[2]));
    EXPECT_EQ(format.fraction_bits, std::stoi(row[3]));
    EXPECT_EQ(format.bias, std::stoi(row[4]));
    EXPECT_EQ(Nans(format), std::stoull(row[8]));
    EXPECT_EQ(Infinities(format), std::stoull(row[9]));
    EXPECT_EQ(Largest(format), std::stod(row[10]));
    EXPECT_EQ(SmallestNormal(format), std::stod(row[11]));
    EXPECT_EQ(SmallestPositive(format), std::stod(row[12]));
    EXPECT_EQ(StepNearOne(format), std::stod(row[13]));
    EXPECT_EQ(OverflowThreshold(format), std::stod(row[14]));
  }
}

TEST(Facts, OfTheWideFormatsAreTheProcessors) {
  const NumberFormat single = FindFormat("fp32").value();
  const NumberFormat wide = FindFormat("fp64").value();
  EXPECT_EQ(Largest(single), std::numeric_limits<float>::max());
  EXPECT_EQ(SmallestNormal(single), std::numeric_limits<float>::min());
  EXPECT_EQ(SmallestPositive(single), std::numeric_limits<float>::denorm_min());
  EXPECT_EQ(StepNearOne(single), std::numeric_limits<float>::epsilon());
  EXPECT_EQ(Largest(wide), std::numeric_limits<double>::max());
  EXPECT_EQ(SmallestPositive(wide), std::numeric_limits<double>::denorm_min());
}

TEST(Facts, TheThresholdOverflowsWhereTheLargestCodeIsOdd) {
  // 65,520 becomes infinite in float16; 464 stays 448 in float8_e4m3fn (formats vectors: 464.0).
  EXPECT_TRUE(ThresholdOverflows(FindFormat("float16").value()));
  EXPECT_FALSE(ThresholdOverflows(FindFormat("float8_e4m3fn").value()));
}

}  // namespace
}  // namespace fourpiles
