#include "formats/rounding.h"

#include <cmath>

#include <gtest/gtest.h>

#include "formats/choices.h"
#include "formats/philox.h"
#include "formats/scaling.h"

namespace fourpiles {
namespace {

NumberFormat Format(const char* name) {
  return FindFormat(name).value();
}

Rounding RoundText(const char* text, const char* format, const TypedConversion& how = {},
                   std::uint64_t index = 0) {
  return RoundTyped(ParseNumber(text, "VALUE").value(), Format(format), how, index);
}

// bfloat16 has steps of 512 between 65,536 and 131,072: 70,000 lies between 69,632 and 70,144.
TEST(Rounding, NeighboursBracketTheInput) {
  const Rounding r = RoundText("70000", "bfloat16");
  EXPECT_EQ(r.value, 70144.0);
  EXPECT_EQ(r.below, 69632.0);
  EXPECT_EQ(r.above, 70144.0);
  EXPECT_EQ(r.error, 144.0);
  EXPECT_EQ(r.error_in_ulps, 144.0 / 512.0);
  EXPECT_FALSE(r.tie);
}

TEST(Rounding, AnExactValueLiesBetweenTheOnesBesideIt) {
  const Rounding r = RoundText("1", "float16");
  EXPECT_EQ(r.below, 1.0 - 0x1p-11);
  EXPECT_EQ(r.above, 1.0 + 0x1p-10);
  EXPECT_EQ(r.error_in_ulps, 0.0);
}

TEST(Rounding, SaysTies) {
  const Rounding r = RoundText("1.00048828125", "float16");
  EXPECT_TRUE(r.tie);
  EXPECT_EQ(r.error_in_ulps, 0.5);
  EXPECT_FALSE(RoundText("1.0004882812500001", "float16").tie);
}

TEST(Rounding, PastTheLargestTheNeighbourIsInfinityOrNothing) {
  const Rounding half = RoundText("70000", "float16");
  EXPECT_EQ(half.below, 65504.0);
  EXPECT_EQ(half.above, HUGE_VAL);
  EXPECT_EQ(half.error_in_ulps, std::nullopt);
  const Rounding e4m3 = RoundText("-500", "e4m3", {NearestEven(Overflow::kSaturate)});
  EXPECT_EQ(e4m3.value, -448.0);
  EXPECT_EQ(e4m3.error, 52.0);
  EXPECT_EQ(e4m3.above, -448.0);
  EXPECT_EQ(e4m3.below, std::nullopt);
}

TEST(Rounding, AroundZero) {
  const Rounding r = RoundText("-1e-8", "float16");
  EXPECT_TRUE(r.value == 0 && std::signbit(r.value));
  EXPECT_EQ(r.below, -0x1p-24);
  EXPECT_EQ(r.above, 0.0);
  EXPECT_EQ(RoundText("0", "float16").below, -0x1p-24);
  EXPECT_EQ(RoundText("0", "e8m0").above, 0x1p-127);
  EXPECT_EQ(RoundText("0", "e8m0").below, std::nullopt);
}

// float16 has steps of 2^-10 above 1: 1.0001 lies a tenth of a step above it.
TEST(Rounding, NeighboursAreTheInputsWhateverTheMode) {
  for (const RoundingMode mode : kRoundingModes) {
    const Rounding r = RoundText("-1.0001", "float16", {{.rounding = mode}});
    EXPECT_EQ(r.below, -1.0 - 0x1p-10) << Name(mode);
    EXPECT_EQ(r.above, -1.0) << Name(mode);
    EXPECT_EQ(r.mode, mode);
    EXPECT_FALSE(r.tie);
  }
  const Rounding down = RoundText("-1.0001", "float16", {{.rounding = RoundingMode::kDown}});
  EXPECT_EQ(down.value, -1.0 - 0x1p-10);
  EXPECT_NEAR(down.error_in_ulps.value(), 1 - 0.0001 * 1024, 1e-12);
  const Rounding tie = RoundText("2049", "float16", {{.rounding = RoundingMode::kUp}});
  EXPECT_EQ(tie.value, 2050.0);
  EXPECT_TRUE(tie.tie);
}

TEST(Rounding, AFlushedValueKeepsItsNeighbours) {
  const Rounding r = RoundText("-1e-5", "float16", {{.subnormals = Subnormals::kFlushedOnOutput}});
  EXPECT_TRUE(r.flushed);
  EXPECT_EQ(r.encoded.code, 0x8000U);
  EXPECT_EQ(r.encoded.status, RoundingStatus::kUnderflow);
  EXPECT_EQ(r.error, 1e-5);
  EXPECT_EQ(r.below, -168 * 0x1p-24);
  EXPECT_EQ(r.above, -167 * 0x1p-24);
}

TEST(Rounding, FlushesOnInputWhatIsSubnormalWhereItComesFrom) {
  const Conversion flush = {.subnormals = Subnormals::kFlushedOnInput};
  EXPECT_EQ(RoundText("1e-40", "float32", {flush, Format("float32")}).encoded.code, 0U);
  EXPECT_TRUE(RoundText("1e-40", "float32", {flush, Format("float32")}).flushed);
  EXPECT_EQ(RoundText("1e-40", "float32", {flush, Format("float16")}).encoded.code, 0U);
  EXPECT_FALSE(RoundText("1e-40", "float32", {flush}).flushed);
  EXPECT_FALSE(RoundText("1e-5", "float16", {flush, Format("float32")}).flushed);
  EXPECT_FALSE(RoundText("1e-310", "float64", {flush, Format("e8m0")}).flushed);
  EXPECT_TRUE(RoundText("1e-310", "float64", {flush}).flushed);
}

TEST(Rounding, ByChanceGoesByTheIndex) {
  const TypedConversion how = {{.rounding = RoundingMode::kStochastic, .seed = 1}};
  int up = 0;
  for (std::uint64_t i = 0; i < 64; ++i) {
    up += RoundText("2.5", "e2m1", how, i).value == 3.0 ? 1 : 0;
  }
  EXPECT_GT(up, 16);
  EXPECT_LT(up, 48);
}

// Ties of 53 bits, as typed: IEEE 754-2019 §4.3.1, roundTiesToAway.
TEST(Rounding, TiesIn53BitsGoAwayFromZero) {
  const TypedConversion away = {{.rounding = RoundingMode::kNearestAway}};
  for (const char* const format : {"float64", "e2m52", "e10m52"}) {
    EXPECT_EQ(RoundText("0x1.00000000000008p0", format, away).value, 1.0000000000000002) << format;
    EXPECT_EQ(RoundText("-0x1.00000000000028p0", format, away).value, -0x1.0000000000003p0);
    EXPECT_EQ(RoundText("0x1.00000000000007ffffffffffffp0", format, away).value, 1.0) << format;
    EXPECT_TRUE(RoundText("0x1.00000000000008p0", format, away).tie) << format;
  }
  EXPECT_EQ(RoundText("0x1p-1075", "float64", away).value, 0x1p-1074);
  EXPECT_EQ(RoundText("0x0.ffffffffffffffffp-1075", "float64", away).value, 0.0);
  EXPECT_EQ(RoundText("0x1p-1075", "float64", {{.rounding = RoundingMode::kUp}}).value, 0x1p-1074);
  EXPECT_EQ(RoundText("0x1p-1075", "float64").value, 0.0);
}

// The step of float64 above 1 is 2^-52, and 0xc × 2^-56 is three quarters of it.
TEST(Rounding, ByChanceIntoFloat64TooGoesByWhatIsCutOff) {
  const TypedConversion how = {{.rounding = RoundingMode::kStochastic, .seed = 1}};
  constexpr int kElements = 2000;
  int up = 0;
  for (std::uint64_t i = 0; i < kElements; ++i) {
    up += RoundText("0x1.0000000000000cp0", "float64", how, i).value > 1.0 ? 1 : 0;
  }
  EXPECT_NEAR(up, kElements * 0.75, 4.5 * std::sqrt(kElements * 0.75 * 0.25));
}

// Random123's known answer for a counter and a key of zeros begins with 6627e8d5. The 24 bits of
// float32 leave 99d8172b of the 56 here, and the two make 2^32 exactly.
TEST(Rounding, ByChanceGoesByAll32Bits) {
  ASSERT_EQ(RandomBits(0, 0), 0x6627E8D5U);
  const TypedConversion how = {{.rounding = RoundingMode::kStochastic}};
  EXPECT_EQ(RoundText("0x80000099d8172bp-55", "float32", how).encoded.code, 0x3F800001U);
  EXPECT_EQ(RoundText("0x80000099d8172a.ffffffffp-55", "float32", how).encoded.code, 0x3F800000U);
  // The same behind the 53 bits of float64.
  EXPECT_EQ(RoundText("0x1.000000000000099d8172bp0", "float64", how).value, 0x1.0000000000001p0);
  EXPECT_EQ(RoundText("0x1.000000000000099d8172afp0", "float64", how).value, 1.0);
}

// A flushed value is zero, which has a code of its own in e8m0: that of the smallest value.
TEST(Rounding, ANegativeValueTakenForZeroIsWhatZeroIs) {
  const Conversion flush = {.subnormals = Subnormals::kFlushedOnInput};
  for (const Rounding& r : {RoundText("-1e-5", "e8m0", {flush, Format("float16")}),
                            RoundText("-1e-320", "e8m0", {flush})}) {
    EXPECT_EQ(r.encoded.code, Encode(-0.0, r.format).code);
    EXPECT_EQ(r.value, 0x1p-127);
    EXPECT_EQ(r.above, 0x1p-127);
    EXPECT_EQ(r.below, std::nullopt);
  }
}

TEST(Rounding, BelowZeroWithoutASignThereIsNothing) {
  const Rounding r = RoundText("-3", "binary8p4uf", {NearestEven(Overflow::kSaturate)});
  EXPECT_EQ(r.value, 0.0);
  EXPECT_EQ(r.above, 0.0);
  EXPECT_EQ(r.below, std::nullopt);
}

// Walking up from the lowest value visits every value once, in order.
TEST(Rounding, NextAboveWalksOverEveryValue) {
  for (const NumberFormat& format : Formats()) {
    if (Bits(format) > 8) {
      continue;
    }
    std::optional<double> value = format.has_sign ? -Largest(format) : SmallestPositive(format);
    std::uint64_t count = 0;
    for (double last = -HUGE_VAL; value; value = NextAbove(*value, format)) {
      EXPECT_LT(last, *value) << format.name;
      if (std::isfinite(last)) {
        EXPECT_EQ(NextBelow(*value, format), last) << format.name;
      }
      last = *value;
      ++count;
    }
    const std::uint64_t zeros = format.has_sign && format.specials != Specials::kNanAtZero ? 1 : 0;
    const std::uint64_t codes = std::uint64_t{1} << Bits(format);
    // Without the NaNs, the second zero and −infinity, where the walk does not start.
    EXPECT_EQ(count, codes - Nans(format) - zeros - Infinities(format) / 2) << format.name;
  }
}

// The worked example: 1e-8 × 1,024 is 1.024e-5, a subnormal of float16 in steps of 2^-24; 172 steps
// are 1.0251998901e-5, and ÷ 1,024 that is 1.00117e-8.
TEST(Scaling, KeepsAValueThatFloat16WouldLose) {
  const TypedNumber tiny = ParseNumber("1e-8", "VALUE").value();
  const Scaling plain = Scale(tiny, ParseNumber("1", "--by").value(), Format("float16"), {});
  EXPECT_EQ(plain.value, 0.0);
  EXPECT_EQ(plain.relative_error, 1.0);
  const Scaling scaled = Scale(tiny, ParseNumber("1024", "--by").value(), Format("float16"), {});
  EXPECT_EQ(scaled.stored, 172 * 0x1p-24);
  EXPECT_EQ(scaled.value, 172 * 0x1p-34);
  EXPECT_NEAR(scaled.relative_error, 0.00117, 0.00001);
  EXPECT_EQ(scaled.encoded.status, RoundingStatus::kSubnormal);
}

TEST(Scaling, NeedsNoRangeOfDoubles) {
  const auto scale = [](const char* value, const char* by, const char* format) {
    return Scale(ParseNumber(value, "VALUE").value(), ParseNumber(by, "--by").value(),
                 Format(format), {});
  };
  // 1e-100 is zero in float16: all of it is lost.
  EXPECT_EQ(scale("1e-400", "1e300", "float16").relative_error, 1.0);
  // 1e10 = 2^10 × 9,765,625, and that has 24 bits.
  EXPECT_EQ(scale("1e310", "1e-300", "float32").stored, 1e10);
  EXPECT_EQ(scale("1e310", "1e-300", "float32").relative_error, 0.0);
  EXPECT_EQ(scale("1e310", "-1e-400", "float32").value, 0.0);
  EXPECT_EQ(scale("1", "1e400", "float32").value, HUGE_VAL);
  EXPECT_EQ(scale("0", "2", "float16").relative_error, 0.0);
  EXPECT_EQ(scale("1", "1e6", "float16").relative_error, HUGE_VAL);
  EXPECT_TRUE(std::isnan(scale("1", "1e6", "e4m3").relative_error));
}

}  // namespace
}  // namespace fourpiles
