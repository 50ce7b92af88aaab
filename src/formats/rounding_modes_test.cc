// Every rounding mode against vectors made outside this project (encode_*.csv: exact fractions,
// agreeing with gfloat), and stochastic rounding against its chances.

#include <bit>
#include <cfenv>
#include <cmath>
#ifdef __SSE2__
#include <xmmintrin.h>
#endif

#include <gtest/gtest.h>

#include "formats/choices.h"
#include "formats/philox.h"
#include "formats/real.h"
#include "formats/test_vectors.h"

namespace fourpiles {
namespace {

NumberFormat Format(std::string_view name) {
  return FindFormat(name).value();
}

float FloatOf(const std::string& hex) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(Hex(hex)));
}

Conversion Saturating(RoundingMode mode) {
  return {.rounding = mode, .overflow = Overflow::kSaturate, .infinities = Overflow::kSaturate};
}

struct ModeColumn {
  const char* column;
  RoundingMode mode;
};
constexpr ModeColumn kColumns[] = {
    {"ref_rne_sat", RoundingMode::kNearestEven}, {"ref_rna_sat", RoundingMode::kNearestAway},
    {"ref_rz_sat", RoundingMode::kTowardZero},   {"ref_ru_sat", RoundingMode::kUp},
    {"ref_rd_sat", RoundingMode::kDown},         {"ref_odd_sat", RoundingMode::kToOdd},
};

class RoundingModes : public testing::TestWithParam<VectorFormat> {};

TEST_P(RoundingModes, GiveTheReferenceCodes) {
  const NumberFormat format = Format(GetParam().name);
  const auto rows = ReadVectors(std::string("encode_") + GetParam().file + ".csv");
  ASSERT_GT(rows.size(), 4000U);
  for (std::size_t column = 0; column < std::size(kColumns); ++column) {
    ASSERT_EQ(rows[0][column + 2], kColumns[column].column);
    const Conversion conversion = Saturating(kColumns[column].mode);
    for (std::size_t i = 1; i < rows.size(); ++i) {
      const std::string& expected = rows[i][column + 2];
      if (expected != "nan_undef") {
        EXPECT_EQ(Encode(FloatOf(rows[i][0]), format, conversion).code, Hex(expected))
            << kColumns[column].column << " " << rows[i][0];
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, RoundingModes, testing::ValuesIn(kVectorFormats),
                         [](const auto& test) { return std::string(test.param.file); });

TEST(RoundingModes, OfE8m0AreFloorCeilingAndNearest) {
  const NumberFormat format = Format("e8m0");
  const auto rows = ReadVectors("encode_e8m0.csv");
  ASSERT_EQ(rows.size(), 401U);
  constexpr ModeColumn kE8m0Columns[] = {{"ref_floor", RoundingMode::kTowardZero},
                                         {"ref_ceil_sat", RoundingMode::kUp},
                                         {"ref_rne_sat", RoundingMode::kNearestEven}};
  for (std::size_t column = 0; column < std::size(kE8m0Columns); ++column) {
    ASSERT_EQ(rows[0][column + 1], kE8m0Columns[column].column);
    for (std::size_t i = 1; i < rows.size(); ++i) {
      const float input = FloatOf(rows[i][0]);
      EXPECT_EQ(Encode(input, format, Saturating(kE8m0Columns[column].mode)).code,
                Hex(rows[i][column + 1]))
          << kE8m0Columns[column].column << " " << rows[i][0];
    }
  }
}

// The codes on the way down are those on the way up with the sign changed, and so on.
TEST(RoundingModes, MirrorEachOther) {
  for (const NumberFormat& format : Formats()) {
    if (!format.has_sign || Bits(format) > 16) {
      continue;
    }
    for (double value = SmallestPositive(format) / 3; value < 4 * Largest(format); value *= 1.37) {
      EXPECT_EQ(Round(-value, format, Saturating(RoundingMode::kUp)),
                -Round(value, format, Saturating(RoundingMode::kDown)));
      EXPECT_EQ(Round(value, format, Saturating(RoundingMode::kDown)),
                Round(value, format, Saturating(RoundingMode::kTowardZero)));
    }
  }
}

struct PastLargestCase {
  RoundingMode mode;
  double value;
  std::uint64_t code;  // of float16 with the policy "ieee"
  RoundingStatus status;
};

TEST(RoundingModes, NeverOverflowAwayFromTheirDirection) {
  constexpr PastLargestCase kCases[] = {
      {RoundingMode::kNearestEven, 7e4, 0x7c00, RoundingStatus::kOverflow},
      {RoundingMode::kNearestAway, 65520, 0x7c00, RoundingStatus::kOverflow},
      {RoundingMode::kTowardZero, 7e4, 0x7bff, RoundingStatus::kSaturated},
      {RoundingMode::kTowardZero, -7e4, 0xfbff, RoundingStatus::kSaturated},
      {RoundingMode::kTowardZero, 65519, 0x7bff, RoundingStatus::kRounded},
      {RoundingMode::kToOdd, 1e300, 0x7bff, RoundingStatus::kSaturated},
      {RoundingMode::kUp, 65504.001, 0x7c00, RoundingStatus::kOverflow},
      {RoundingMode::kUp, -1e300, 0xfbff, RoundingStatus::kSaturated},
      {RoundingMode::kDown, 7e4, 0x7bff, RoundingStatus::kSaturated},
      {RoundingMode::kDown, -65504.001, 0xfc00, RoundingStatus::kOverflow},
      {RoundingMode::kStochastic, 7e4, 0x7c00, RoundingStatus::kOverflow},
  };
  for (const PastLargestCase& test : kCases) {
    const Encoded encoded = Encode(test.value, Format("float16"), {.rounding = test.mode});
    EXPECT_EQ(encoded.code, test.code) << Name(test.mode) << " " << test.value;
    EXPECT_EQ(encoded.status, test.status) << Name(test.mode) << " " << test.value;
  }
}

TEST(RoundingModes, InfinitiesFollowTheirOwnPolicy) {
  for (const RoundingMode mode : kRoundingModes) {
    const Conversion propagate = {.rounding = mode, .overflow = Overflow::kSaturate};
    EXPECT_EQ(Encode(-HUGE_VAL, Format("float16"), propagate).code, 0xfc00U) << Name(mode);
    EXPECT_EQ(Encode(1e300, Format("float16"), propagate).code, 0x7bffU) << Name(mode);
    EXPECT_EQ(Encode(HUGE_VAL, Format("e4m3"), propagate).code, 0x7fU) << Name(mode);
    const Conversion saturate = {.rounding = mode, .infinities = Overflow::kSaturate};
    EXPECT_EQ(Encode(HUGE_VAL, Format("float16"), saturate).code, 0x7bffU) << Name(mode);
    EXPECT_EQ(Encode(HUGE_VAL, Format("float16"), saturate).status, RoundingStatus::kSaturated);
  }
  EXPECT_EQ(Encode(1e300, Format("float16"), {.infinities = Overflow::kSaturate}).code, 0x7c00U);
}

// Rounding to odd with two bits to spare leaves the second rounding what the first cut off
// (Boldo and Melquiond 2008, "Emulation of FMA and correctly rounded sums").
TEST(RoundingModes, ToOddMakesTwoRoundingsOne) {
  const auto rows = ReadVectors("f64_double_rounding.csv");
  ASSERT_EQ(rows.size(), 5407U);
  for (std::size_t i = 1; i < rows.size(); ++i) {
    for (const VectorFormat& format : kVectorFormats) {
      if (rows[i][0] == format.file) {
        const auto input = std::bit_cast<double>(Hex(rows[i][1]));
        const double single = Round(input, Format("float32"), {.rounding = RoundingMode::kToOdd});
        EXPECT_EQ(Encode(single, Format(format.name)).code, Hex(rows[i][2])) << rows[i][1];
      }
    }
  }
}

TEST(Subnormals, AreFlushedAfterRounding) {
  const NumberFormat half = Format("float16");
  const Conversion flush = {.subnormals = Subnormals::kFlushedOnOutput};
  EXPECT_EQ(Encode(0x1p-15, half, flush).code, 0U);
  EXPECT_EQ(Encode(0x1p-15, half, flush).status, RoundingStatus::kUnderflow);
  EXPECT_FALSE(Encode(0x1p-15, half, flush).exact);
  EXPECT_EQ(Encode(-0x1p-15, half, flush).code, 0x8000U);
  EXPECT_EQ(Encode(-0x1p-9, Format("e4m3fnuz"), flush).code, 0U);  // it has no −0
  // Rounds up to the smallest normal value, 2^-14, and so stays.
  EXPECT_EQ(Encode(0x1.ffffffp-15, half, flush).code, 0x0400U);
  EXPECT_EQ(Encode(0x1p-127, Format("e8m0"), flush).code, 0U);
  EXPECT_EQ(Encode(0x1p-127, Format("e8m0"), flush).status, RoundingStatus::kExact);
}

TEST(Subnormals, AreTakenForZeroOnInput) {
  const Conversion flush = {.subnormals = Subnormals::kFlushedOnInput};
  const NumberFormat wide = Format("float64");
  EXPECT_EQ(Encode(0x1p-1022, wide, flush).code, std::uint64_t{1} << 52);
  EXPECT_EQ(Encode(-0x1p-1023, wide, flush).code, std::uint64_t{1} << 63);
  EXPECT_EQ(Encode(0x1p-1023, wide, flush).status, RoundingStatus::kUnderflow);
  EXPECT_EQ(Encode(0x1p-24, Format("float16"), flush).code, 1U);
}

TEST(Subnormals, OfAFormatAreThoseBelowItsSmallestNormal) {
  const NumberFormat single = Format("float32");
  EXPECT_EQ(FlushSubnormal(0x1p-126, single), 0x1p-126);
  EXPECT_EQ(FlushSubnormal(0x1.fffffcp-127, single), 0.0);
  const double negative = FlushSubnormal(-0x1p-149, single);
  EXPECT_TRUE(negative == 0 && std::signbit(negative));
  EXPECT_TRUE(std::isnan(FlushSubnormal(std::nan(""), single)));
  EXPECT_EQ(FlushSubnormal(-HUGE_VAL, single), -HUGE_VAL);
  EXPECT_EQ(FlushSubnormal(0x1p-130, Format("e8m0")), 0x1p-130);
}

struct ChanceCase {
  const char* format;
  double below;     // a value of the format …
  double above;     // … and the next one, or what overflow gives
  double fraction;  // of the way from one to the other
};

constexpr ChanceCase kChances[] = {
    {"float16", 1.0, 1.0 + 0x1p-10, 0.25},
    {"float16", -2047.0, -2048.0, 0.9},
    {"float16", 0.0, 0x1p-24, 0.01},
    {"float16", 0x5p-24, 0x6p-24, 0.5},
    {"float16", 65504.0, HUGE_VAL, 0.3},  // the next step would be 65,536
    {"bfloat16", 3.0, 3.015625, 0.7},
    {"bfloat16", -0x1p-133, -0x2p-133, 0.125},
    {"bfloat16", 0x1.fep127, HUGE_VAL, 0.75},
    {"e4m3", 1.0, 1.125, 0.001},
    {"e4m3", 0x1p-9, 0x2p-9, 1.0 / 3},
    {"e2m1", 4.0, 6.0, 0.6},
    {"e2m1", 0.0, -0.5, 0.05},
    {"e8m0", 2.0, 4.0, 0.2},
};

// The count of those that move away is binomial. 4.5 standard errors: by chance, one test of 11,000
// would fail (two-sided 6.8e-6 each); the seeds are fixed.
TEST(Stochastic, MovesAwayAsOftenAsTheFractionSays) {
  constexpr int kElements = 40000;
  for (const ChanceCase& test : kChances) {
    const NumberFormat format = Format(test.format);
    const double step = std::isinf(test.above) ? 2 * (OverflowThreshold(format) - Largest(format))
                                               : test.above - test.below;
    const double value = test.below + test.fraction * step;
    const double chance = (value - test.below) / step;  // of the rounded value
    int moved = 0;
    for (std::uint64_t i = 0; i < kElements; ++i) {
      const double rounded =
          Round(value, format, {.rounding = RoundingMode::kStochastic, .seed = 7}, i);
      ASSERT_TRUE(rounded == test.below || rounded == test.above) << test.format << " " << rounded;
      moved += rounded == test.above ? 1 : 0;
    }
    const double deviation = std::sqrt(kElements * chance * (1 - chance));
    EXPECT_NEAR(moved, kElements * chance, 4.5 * deviation) << test.format << " " << value;
  }
}

// A sum over many values is what it was, to the error that the chances leave.
TEST(Stochastic, IsUnbiasedOverManyValues) {
  for (const char* const name : {"float16", "bfloat16", "e4m3", "e2m1"}) {
    const NumberFormat format = Format(name);
    double error = 0;
    double variance = 0;
    for (std::uint64_t i = 0; i < 50000; ++i) {
      const double value = Largest(format) * std::sin(static_cast<double>(i)) / 1.01;
      const double rounded =
          Round(value, format, {.rounding = RoundingMode::kStochastic, .seed = 3}, i);
      const double low = std::abs(Round(value, format, Saturating(RoundingMode::kTowardZero)));
      const double high = std::abs(
          Round(value, format,
                Saturating(std::signbit(value) ? RoundingMode::kDown : RoundingMode::kUp)));
      error += (rounded - value) / Largest(format);
      variance +=
          (std::abs(value) - low) / Largest(format) * (high - std::abs(value)) / Largest(format);
    }
    EXPECT_LT(std::abs(error), 4.5 * std::sqrt(variance)) << name;
  }
}

TEST(Stochastic, GoesByTheFirst32BitsCutOff) {
  const NumberFormat half = Format("float16");
  constexpr std::uint64_t kSeed = 0x0123456789ABCDEF;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const Conversion conversion = {.rounding = RoundingMode::kStochastic, .seed = kSeed};
    // 2^32 − R of 2^32 parts of the step above 1.0 is the least that moves.
    const auto least = static_cast<double>((std::uint64_t{1} << 32) - RandomBits(kSeed, i));
    EXPECT_EQ(Round(1.0 + least * 0x1p-42, half, conversion, i), 1.0 + 0x1p-10) << i;
    EXPECT_EQ(Round(1.0 + (least - 0x1p-10) * 0x1p-42, half, conversion, i), 1.0) << i;
    EXPECT_EQ(Round(-1.0 - least * 0x1p-42, half, conversion, i), -1.0 - 0x1p-10) << i;
  }
}

TEST(Stochastic, LeavesExactValues) {
  for (const NumberFormat& format : Formats()) {
    for (const std::uint64_t code : {0x1U, 0x2U, 0x3U}) {
      const double value = Decode(code, format);
      for (std::uint64_t i = 0; i < 100; ++i) {
        EXPECT_EQ(Encode(value, format, {.rounding = RoundingMode::kStochastic}, i).code, code);
      }
    }
  }
}

// Codes of hard values in every mode, and what float64's own subnormals become.
std::vector<std::uint64_t> HardCodes() {
  std::vector<std::uint64_t> codes;
  for (const char* const name : {"float64", "float32", "float16", "e4m3", "e2m1"}) {
    const NumberFormat format = Format(name);
    for (const double value :
         {0x1p-1074, 0x1.9p-1030, -0x1.3p-140, 0x1.7p-16, 1.0 / 3, -5.1, 450.1, -7e4, 1e39}) {
      for (const RoundingMode rounding : kRoundingModes) {
        const Encoded encoded = Encode(value, format, {.rounding = rounding, .seed = 5}, 11);
        codes.push_back(encoded.code);
        codes.push_back(std::bit_cast<std::uint64_t>(Decode(encoded.code, format)));
      }
      codes.push_back(std::bit_cast<std::uint64_t>(FlushSubnormal(value, format)));
    }
  }
  return codes;
}

TEST(RoundingModes, OfTheProcessorChangeNothing) {
  const std::vector<std::uint64_t> expected = HardCodes();
  for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    ASSERT_EQ(std::fesetround(mode), 0);
    const std::vector<std::uint64_t> codes = HardCodes();
    std::fesetround(FE_TONEAREST);
    EXPECT_EQ(codes, expected);
  }
#ifdef __SSE2__
  const unsigned plain = _mm_getcsr();
  _mm_setcsr(plain | 0x8040);  // subnormals are zero, as results and as operands
  const std::vector<std::uint64_t> codes = HardCodes();
  _mm_setcsr(plain);
  EXPECT_EQ(codes, expected);
#endif
}

TEST(Choices, HaveNamesOfTheirOwn) {
  EXPECT_EQ(Name(RoundingMode::kNearestEven), "nearest-even");
  EXPECT_EQ(Name(RoundingMode::kNearestAway), "nearest-away");
  EXPECT_EQ(Name(RoundingMode::kTowardZero), "toward-zero");
  EXPECT_EQ(Name(RoundingMode::kUp), "up");
  EXPECT_EQ(Name(RoundingMode::kDown), "down");
  EXPECT_EQ(Name(RoundingMode::kToOdd), "to-odd");
  EXPECT_EQ(Name(RoundingMode::kStochastic), "stochastic");
  EXPECT_EQ(Name(Subnormals::kKept), "keep");
  EXPECT_EQ(Name(Subnormals::kFlushedOnInput), "flush-input");
  EXPECT_EQ(Name(Subnormals::kFlushedOnOutput), "flush-output");
}

}  // namespace
}  // namespace fourpiles
