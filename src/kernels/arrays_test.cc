// The kernels against Encode and Decode, on every instruction set of this machine. Those are
// themselves tested against vectors made outside this project (src/formats/encode_test.cc), and by
// tests/exhaustive.

#include "fourpiles/arrays.h"

#include <bit>
#include <cfenv>
#include <cmath>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include "base/float_environment.h"
#include "formats/philox.h"
#include "kernels/array_tasks.h"
#include "kernels/each_target.h"
#include "kernels/parallel.h"
#include "kernels/scalar_arrays.h"

namespace fourpiles {
namespace {

NumberFormat Format(std::string_view name) {
  return FindFormat(name).value();
}

constexpr std::string_view kNames[] = {"float16",
                                       "bfloat16",
                                       "tfloat32",
                                       "float8_e5m2",
                                       "float8_e5m2fnuz",
                                       "float8_e4m3fn",
                                       "float8_e4m3fnuz",
                                       "float8_e4m3b11fnuz",
                                       "float8_e4m3",
                                       "float8_e3m4",
                                       "float6_e3m2fn",
                                       "float6_e2m3fn",
                                       "float4_e2m1fn",
                                       "e8m0",
                                       "e6m9",
                                       "e3m22",
                                       "binary8p4se",
                                       "e9m10"};

// Every exponent with fractions that lie at and beside ties of many formats, and a walk over the
// rest.
std::vector<float> Inputs() {
  std::vector<float> values;
  const std::uint32_t fractions[] = {0,        1,        0x7fffff, 0x400000, 0x3fffff,
                                     0x400001, 0x200000, 0x600000, 0x500000, 0x100000,
                                     0x180000, 0x0fffff, 0x080000, 0x080001, 0x001000,
                                     0x003000, 0x002fff, 0x008000, 0x018000};
  for (std::uint32_t exponent = 0; exponent < 256; ++exponent) {
    for (const std::uint32_t fraction : fractions) {
      for (const std::uint32_t sign : {0U, 1U}) {
        values.push_back(std::bit_cast<float>(sign << 31 | exponent << 23 | fraction));
      }
    }
  }
  std::uint32_t bits = 1;
  for (int i = 0; i < 500; ++i) {
    bits = bits * 1664525U + 1013904223U;
    values.push_back(std::bit_cast<float>(bits));
    // Most formats' values lie within 2^−20 … 2^10.
    values.push_back(std::bit_cast<float>((bits & 0x807fffffU) | (107U + (bits >> 9) % 32U) << 23));
  }
  return values;
}

std::vector<Conversion> Conversions() {
  std::vector<Conversion> conversions;
  for (const auto rounding :
       {RoundingMode::kNearestEven, RoundingMode::kNearestAway, RoundingMode::kTowardZero,
        RoundingMode::kUp, RoundingMode::kDown, RoundingMode::kToOdd, RoundingMode::kStochastic}) {
    for (const auto subnormals :
         {Subnormals::kKept, Subnormals::kFlushedOnInput, Subnormals::kFlushedOnOutput}) {
      conversions.push_back(
          {.rounding = rounding, .subnormals = subnormals, .seed = 7, .first_index = 5});
    }
    for (const auto overflow : {Overflow::kSaturate, Overflow::kNan}) {
      conversions.push_back({.rounding = rounding, .overflow = overflow});
      conversions.push_back({.rounding = rounding, .infinities = overflow, .seed = 1ULL << 40});
    }
  }
  return conversions;
}

std::string Words(const NumberFormat& format, const Conversion& conversion) {
  return std::string(format.name) + " " + std::string(Name(conversion.rounding)) + " " +
         std::string(Name(conversion.overflow)) + " " + std::string(Name(conversion.infinities)) +
         " " + std::string(Name(conversion.subnormals));
}

// Where two arrays of codes differ first; nothing when they are the same.
std::string FirstDifference(std::span<const std::byte> got, std::span<const std::byte> wanted,
                            std::span<const float> values, const NumberFormat& format) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint64_t a = LoadCode(got.data(), i, format);
    const std::uint64_t b = LoadCode(wanted.data(), i, format);
    if (a != b) {
      char text[100];
      std::snprintf(text, sizeof text, "element %zu, %a: %llx, not %llx", i,
                    static_cast<double>(values[i]), static_cast<unsigned long long>(a),
                    static_cast<unsigned long long>(b));
      return text;
    }
  }
  return {};
}

std::vector<std::byte> ScalarCodes(std::span<const float> values, const NumberFormat& format,
                                   const Conversion& conversion) {
  std::vector<std::byte> codes(values.size() * static_cast<std::size_t>(CodeBytes(format)));
  ConvertScalar({Format("float32"), std::as_bytes(values)}, {format, codes}, conversion,
                {0, values.size()});
  return codes;
}

class ArraysOf : public testing::TestWithParam<std::string_view> {};

TEST_P(ArraysOf, EveryConversionGivesTheScalarCodes) {
  const NumberFormat format = Format(GetParam());
  const std::vector<float> values = Inputs();
  for (const Conversion& conversion : Conversions()) {
    const std::vector<std::byte> wanted = ScalarCodes(values, format, conversion);
    ForEachTarget([&](const char* target) {
      std::vector<std::byte> codes(wanted.size());
      EncodeArray(values, {format, codes}, conversion);
      EXPECT_EQ(FirstDifference(codes, wanted, values, format), "")
          << target << " " << Words(format, conversion);
    });
  }
}

TEST_P(ArraysOf, EveryCodeOf16BitsAndLessDecodesToItsValue) {
  const NumberFormat format = Format(GetParam());
  if (Bits(format) > 16) {
    GTEST_SKIP() << "more than 16 bits";
  }
  const std::size_t count = std::size_t{1} << Bits(format);
  std::vector<std::byte> codes(count * static_cast<std::size_t>(CodeBytes(format)));
  for (std::size_t i = 0; i < count; ++i) {
    StoreCode(codes.data(), i, format, i);
  }
  ForEachTarget([&](const char* target) {
    std::vector<float> values(count);
    DecodeArray({format, codes}, values);
    for (std::size_t i = 0; i < count; ++i) {
      const auto wanted = static_cast<float>(Decode(i, format));
      ASSERT_EQ(std::bit_cast<std::uint32_t>(values[i]), std::bit_cast<std::uint32_t>(wanted))
          << target << " " << format.name << " " << i;
    }
  });
}

void ExpectSame(const RoundingStatistics& a, const RoundingStatistics& b, const std::string& what) {
  EXPECT_EQ(std::memcmp(&a, &b, sizeof a), 0)
      << what << ": count " << a.count << " " << b.count << ", NaN " << a.nan << " " << b.nan
      << ", infinite " << a.infinite << " " << b.infinite << ", zero " << a.zero << " " << b.zero
      << ", overflow " << a.overflow << " " << b.overflow << ", saturated " << a.saturated << " "
      << b.saturated << ", underflow " << a.underflow << " " << b.underflow << ", subnormal "
      << a.subnormal << " " << b.subnormal << ", changed " << a.changed << " " << b.changed
      << ", largest " << a.largest << " " << b.largest << ", smallest " << a.smallest << " "
      << b.smallest << ", squares " << a.sum_of_squares << " " << b.sum_of_squares << ", errors "
      << a.sum_of_squared_errors << " " << b.sum_of_squared_errors;
}

TEST_P(ArraysOf, RoundTripsAndStatisticsAreTheScalarOnes) {
  const NumberFormat format = Format(GetParam());
  const std::vector<float> values = Inputs();
  for (const Conversion& conversion : Conversions()) {
    std::vector<float> wanted(values.size());
    const RoundingStatistics expected = RoundAndCountScalar(values, format, conversion, wanted, 0);
    ForEachTarget([&](const char* target) {
      const std::string what = target + (" " + Words(format, conversion));
      std::vector<float> rounded(values.size());
      ExpectSame(RoundArray(values, format, conversion, rounded), expected, what);
      EXPECT_EQ(std::memcmp(rounded.data(), wanted.data(), values.size() * sizeof(float)), 0)
          << what;
      ExpectSame(RoundArray(values, format, conversion, {}), expected, what);
      std::vector<float> in_place = values;
      RoundTripArray(in_place, format, conversion, in_place);
      EXPECT_EQ(std::memcmp(in_place.data(), wanted.data(), values.size() * sizeof(float)), 0)
          << what;
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, ArraysOf, testing::ValuesIn(kNames),
                         [](const auto& test) { return std::string(test.param); });

TEST(Arrays, AnyWidthAndAnyStart) {
  std::vector<float> values = Inputs();
  for (const std::string_view name : {"e4m3", "float16", "bfloat16", "tfloat32"}) {
    const NumberFormat format = Format(name);
    const auto size = static_cast<std::size_t>(CodeBytes(format));
    ForEachTarget([&](const char* target) {
      for (const auto rounding : {RoundingMode::kNearestEven, RoundingMode::kStochastic}) {
        for (std::size_t width = 0; width <= 130; ++width) {
          const std::size_t start = width * 31 % 3000;
          const Conversion conversion = {.rounding = rounding, .first_index = start};
          const std::span<const float> part = std::span(values).subspan(start, width);
          const std::vector<std::byte> wanted = ScalarCodes(part, format, conversion);
          std::vector<std::byte> memory((width + 2) * size + 1, std::byte{0xAB});
          const std::span<std::byte> codes = std::span(memory).subspan(width % 5 % 2, width * size);
          EncodeArray(part, {format, codes}, conversion);
          ASSERT_TRUE(std::ranges::equal(codes, wanted)) << target << " " << name << " " << width;
          ASSERT_EQ(memory[width % 5 % 2 + width * size], std::byte{0xAB}) << "wrote past the end";
          std::vector<float> back(width + 1, 77.0F);
          DecodeArray({format, codes}, std::span(back).first(width));
          ASSERT_EQ(back[width], 77.0F);
          std::vector<float> rounded(width + 1, 77.0F);
          const RoundingStatistics statistics =
              RoundArray(part, format, conversion, std::span(rounded).first(width));
          ASSERT_EQ(statistics.count, static_cast<std::int64_t>(width));
          ASSERT_EQ(std::memcmp(back.data(), rounded.data(), (width + 1) * sizeof(float)), 0)
              << target << " " << name << " " << width;
        }
      }
    });
  }
}

// More than one block of sums, and enough to be written past the caches.
TEST(Arrays, ThreadsAndSizeChangeNothing) {
  std::vector<float> values;
  for (const std::vector<float> inputs = Inputs(); values.size() < 3'000'000;) {
    values.insert(values.end(), inputs.begin(), inputs.end());
  }
  for (const std::string_view name : {"e4m3", "float16", "e8m0"}) {
    const NumberFormat format = Format(name);
    const std::size_t count = name == "e8m0" ? 200'000 : values.size();
    const std::span<const float> part = std::span(values).first(count).subspan(1);
    const Conversion conversion = {.rounding = RoundingMode::kStochastic, .seed = 11};
    std::vector<std::byte> wanted(part.size() * static_cast<std::size_t>(CodeBytes(format)));
    EncodeArray(part, {format, wanted}, conversion);
    std::vector<float> rounded(part.size());
    const RoundingStatistics expected = RoundArray(part, format, conversion, rounded);
    for (const int threads : {2, 3, 7}) {
      std::vector<std::byte> codes(wanted.size());
      EncodeArray(part, {format, codes}, conversion, threads);
      EXPECT_TRUE(codes == wanted) << name << " " << threads;
      std::vector<float> again(part.size());
      ExpectSame(RoundArray(part, format, conversion, again, threads), expected, std::string(name));
      EXPECT_EQ(std::memcmp(again.data(), rounded.data(), again.size() * sizeof(float)), 0);
    }
    std::vector<std::byte> nearest(wanted.size());
    EncodeArray(part, {format, nearest}, {}, 2);
    EXPECT_EQ(FirstDifference(nearest, ScalarCodes(part.first(200'000), format, {}),
                              part.first(199'999), format),
              "");
    std::vector<float> decoded(part.size());
    DecodeArray({format, nearest}, decoded, 2);
    RoundTripArray(part, format, {}, rounded, 2);
    EXPECT_EQ(std::memcmp(decoded.data(), rounded.data(), decoded.size() * sizeof(float)), 0);
  }
}

TEST(Arrays, TheProcessorsRoundingModeChangesNothing) {
  const std::vector<float> values = Inputs();
  for (const std::string_view name : {"e4m3", "float16", "bfloat16", "e2m1"}) {
    const NumberFormat format = Format(name);
    const std::vector<std::byte> wanted = ScalarCodes(values, format, {});
    std::vector<float> rounded(values.size());
    const RoundingStatistics expected = RoundArray(values, format, {}, rounded);
    ForEachTarget([&](const char* target) {
      for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
        std::fesetround(mode);
#if defined(__x86_64__)
        _mm_setcsr(_mm_getcsr() | 0x8040);  // flush to zero, denormals are zero
#endif
        std::vector<std::byte> codes(wanted.size());
        EncodeArray(values, {format, codes});
        std::vector<float> again(values.size());
        const RoundingStatistics statistics = RoundArray(values, format, {}, again);
        EXPECT_EQ(std::fegetround(), mode) << "was changed";
        std::fesetenv(FE_DFL_ENV);
        EXPECT_EQ(FirstDifference(codes, wanted, values, format), "") << target << " " << name;
        ExpectSame(statistics, expected, target);
        EXPECT_EQ(std::memcmp(again.data(), rounded.data(), again.size() * sizeof(float)), 0);
      }
    });
  }
}

TEST(Arrays, ConvertsBetweenFormatsWithOneRounding) {
  std::vector<float> values = Inputs();
  for (const std::string_view from_name :
       {"float16", "bfloat16", "float8_e5m2", "e8m0", "float64"}) {
    for (const std::string_view to_name :
         {"float8_e4m3fn", "float16", "bfloat16", "float32", "e2m1"}) {
      const NumberFormat from = Format(from_name);
      const NumberFormat to = Format(to_name);
      for (const Conversion& conversion :
           {Conversion{.rounding = RoundingMode::kNearestAway},
            Conversion{.subnormals = Subnormals::kFlushedOnInput},
            Conversion{.overflow = Overflow::kSaturate, .infinities = Overflow::kNan},
            Conversion{.overflow = Overflow::kNan, .infinities = Overflow::kSaturate}}) {
        const std::vector<std::byte> codes = ScalarCodes(values, from, {});
        std::vector<std::byte> wanted(values.size() * static_cast<std::size_t>(CodeBytes(to)));
        ConvertScalar({from, codes}, {to, wanted}, conversion, {0, values.size()});
        ForEachTarget([&](const char* target) {
          std::vector<std::byte> got(wanted.size());
          ConvertArray({from, codes}, {to, got}, conversion);
          EXPECT_EQ(FirstDifference(got, wanted, values, to), "")
              << target << " " << from_name << " to " << to_name;
        });
      }
    }
  }
}

// A record is a format of its own, whatever it is called.
TEST(Arrays, RecordsOfOnesOwn) {
  const std::vector<float> values = Inputs();
  NumberFormat wide_half = Format("float16");
  wide_half.unused_bits = 16;
  const NumberFormat narrow = {.name = "own", .exponent_bits = 7, .fraction_bits = 7, .bias = 127};
  for (const NumberFormat& format : {wide_half, narrow}) {
    const std::vector<std::byte> wanted = ScalarCodes(values, format, {});
    std::vector<float> decoded(values.size());
    ForEachTarget([&](const char* target) {
      std::vector<std::byte> codes(wanted.size());
      EncodeArray(values, {format, codes});
      EXPECT_EQ(FirstDifference(codes, wanted, values, format), "") << target;
      DecodeArray({format, codes}, decoded);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const auto value = static_cast<float>(Decode(LoadCode(codes.data(), i, format), format));
        ASSERT_EQ(std::bit_cast<std::uint32_t>(decoded[i]), std::bit_cast<std::uint32_t>(value))
            << target << " " << i;
      }
    });
  }
}

// NVIDIA's TF32 is a float32 whose low 13 bits are zero.
TEST(Arrays, Tfloat32IsKeptInTheUpperBitsOfAFloat32) {
  const std::vector<float> values = {1.0F, -2.5F, 1.0F + 0x1p-11F};
  std::vector<float> kept(3);
  EncodeArray(values, {Format("tfloat32"), std::as_writable_bytes(std::span(kept))});
  EXPECT_EQ(kept, (std::vector<float>{1.0F, -2.5F, 1.0F}));
}

TEST(Arrays, WhatAThreadThrowsIsThrownHere) {
  EXPECT_THROW(ForRanges(10, 1, 3,
                         [](std::size_t begin, std::size_t /*end*/) {
                           if (begin > 0) {
                             throw std::length_error("no");
                           }
                         }),
               std::length_error);
}

TEST(Arrays, RandomWordsArePhiloxs) {
  ForEachTarget([&](const char* target) {
    if (!HasVectors()) {
      return;
    }
    for (const std::uint64_t first : {0ULL, 1ULL, 6ULL, (1ULL << 34) - 9}) {
      std::vector<std::uint32_t> random(300);
      FillRandom({.seed = 0x123456789abcdefULL, .first = first}, random.data(), 300);
      for (std::size_t i = 0; i < 300; ++i) {
        ASSERT_EQ(random[i], RandomBits(0x123456789abcdefULL, first + i)) << target << " " << i;
      }
    }
  });
}

TEST(Arrays, SignalToNoise) {
  // 6.02 dB a bit: 1 ± 0.5 against its error, Σx² ÷ Σe² = 4.
  RoundingStatistics statistics;
  statistics.sum_of_squares = 4;
  statistics.sum_of_squared_errors = 1;
  EXPECT_NEAR(SignalToNoise(statistics), 6.0206, 1e-4);
  statistics.sum_of_squared_errors = 0;
  EXPECT_EQ(SignalToNoise(statistics), std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace fourpiles
