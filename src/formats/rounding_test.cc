#include "formats/rounding.h"

#include <cmath>

#include <gtest/gtest.h>

#include "formats/choices.h"
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

}  // namespace
}  // namespace fourpiles
