#include "formats/float32.h"

#include <cfenv>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "fourpiles/formats.h"

namespace fourpiles {
namespace {

std::uint32_t BitsOf(float value) {
  return std::bit_cast<std::uint32_t>(value);
}

// Magnitudes of every exponent, with few and with many bits.
std::vector<float> Samples() {
  std::vector<float> samples = {0.0F, std::numeric_limits<float>::infinity()};
  for (std::uint32_t exponent = 0; exponent < 255; ++exponent) {
    for (const std::uint32_t fraction : {0x0U, 0x1U, 0x2a'bcdeU, 0x40'0000U, 0x7f'ffffU}) {
      samples.push_back(std::bit_cast<float>(exponent << 23 | fraction));
    }
  }
  return samples;
}

TEST(Float32, WidensExactlyAndNarrowsBack) {
  for (const float value : Samples()) {
    for (const float signed_value : {value, -value}) {
      EXPECT_EQ(Widen(signed_value), static_cast<double>(signed_value));
      EXPECT_EQ(std::signbit(Widen(signed_value)), std::signbit(signed_value));
      EXPECT_EQ(BitsOf(Narrow(Widen(signed_value))), BitsOf(signed_value));
    }
  }
  EXPECT_TRUE(std::isnan(Widen(std::nanf(""))));
  EXPECT_TRUE(std::isnan(Narrow(std::nan(""))));
}

TEST(Float32, NarrowsAsTheProcessorDoes) {
  for (const float value : Samples()) {
    if (!std::isfinite(value)) {
      continue;
    }
    const double next = std::nextafter(value, HUGE_VALF);
    const double above = std::isfinite(next) ? next : 0x1p128;
    const double middle = (static_cast<double>(value) + above) / 2;
    for (const double between : {middle, std::nextafter(middle, 0.0), std::nextafter(middle, 1e99),
                                 -middle, middle / 1024, value * 1.0000001}) {
      EXPECT_EQ(BitsOf(Narrow(between)), BitsOf(static_cast<float>(between))) << between;
    }
  }
}

TEST(Float32, DividesAsTheProcessorDoesOnceRounded) {
  const std::vector<float> samples = Samples();
  for (std::size_t i = 2; i < samples.size(); i += 7) {
    for (std::size_t j = 2; j < samples.size(); j += 11) {
      const float a = samples[i];
      const float b = -samples[j];
      if (b == 0) {
        continue;
      }
      // IEEE 754 divides floats with one rounding; C++ leaves it at that with SSE.
      EXPECT_EQ(BitsOf(Narrow(QuotientToOdd(Widen(a), Widen(b)))), BitsOf(a / b)) << a << " " << b;
    }
  }
}

TEST(Float32, AQuotientKeepsASignOfWhatIsCutOff) {
  EXPECT_EQ(QuotientToOdd(6, 3), 2);
  EXPECT_EQ(QuotientToOdd(-7, 2), -3.5);
  EXPECT_EQ(QuotientToOdd(1, 3), 0x1.5555555555555p-2);  // 0101…|01…: odd already
  EXPECT_EQ(QuotientToOdd(2, 3), 0x1.5555555555555p-1);
  EXPECT_EQ(QuotientToOdd(1, 5), 0x1.9999999999999p-3);
  EXPECT_EQ(QuotientToOdd(1, 10), 0x1.9999999999999p-4);  // nearest: …9a
  EXPECT_EQ(QuotientToOdd(1, 0), HUGE_VAL);
  EXPECT_EQ(QuotientToOdd(0, 5), 0);
}

TEST(Float32, AddsWithOneRounding) {
  const float tiny = 0x1p-149F;
  EXPECT_EQ(SumInFloat32(1.0F, 0x1p-24F), 1.0F);
  EXPECT_EQ(SumInFloat32(0x1.000002p0F, 0x1p-24F), 0x1.000004p0F);
  EXPECT_EQ(DifferenceInFloat32(1.0F, tiny), 1.0F);
  EXPECT_EQ(DifferenceInFloat32(0.5F, 0.25F), 0.25F);
  EXPECT_EQ(SumInFloat32(tiny, tiny), 0x1p-148F);
  const float largest = std::numeric_limits<float>::max();
  EXPECT_EQ(SumInFloat32(largest, largest), largest);
  EXPECT_TRUE(std::isnan(SumInFloat32(std::nanf(""), 1.0F)));
}

TEST(Float32, GivesTheSameBitsInEveryRoundingMode) {
  for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    ASSERT_EQ(std::fesetround(mode), 0);
    const float third = Narrow(QuotientToOdd(1, 3));
    const float subnormal = Narrow(QuotientToOdd(Widen(0x1p-140F), 3));
    const float sum = SumInFloat32(1.0F, 0x1p-30F);
    std::fesetround(FE_TONEAREST);
    EXPECT_EQ(third, 1.0F / 3.0F);
    EXPECT_EQ(subnormal, 0x1p-140F / 3.0F);
    EXPECT_EQ(sum, 1.0F);
  }
}

TEST(Float32, FindsTheLargestMagnitude) {
  const std::vector<float> values = {-3.0F, 0x1p-140F, 2.0F};
  EXPECT_EQ(LargestMagnitude(values, Subnormals::kKept), 3.0F);
  const std::vector<float> tiny = {0x1p-140F};
  EXPECT_EQ(LargestMagnitude(tiny, Subnormals::kKept), 0x1p-140F);
  EXPECT_EQ(LargestMagnitude(tiny, Subnormals::kFlushedOnInput), 0.0F);
  const std::vector<float> wild = {1.0F, std::nanf(""), -HUGE_VALF, 4.0F};
  EXPECT_FALSE(std::isfinite(LargestMagnitude(wild, Subnormals::kKept)));
  EXPECT_EQ(LargestFiniteMagnitude(wild, Subnormals::kKept), 4.0F);
  EXPECT_EQ(LargestMagnitude({}, Subnormals::kKept), 0.0F);
}

}  // namespace
}  // namespace fourpiles
