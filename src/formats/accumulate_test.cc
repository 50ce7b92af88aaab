#include "formats/accumulate.h"

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace fourpiles {
namespace {

AccumulationJob Job(const char* start, const char* add, std::int64_t times) {
  return {ParseNumber(start, "--start").value(), ParseNumber(add, "--add").value(), times};
}

NumberFormat Format(const char* name) {
  return FindFormat(name).value();
}

TEST(Accumulate, TheUpdateStallsInFloat16) {
  const Accumulation sum = Accumulate(Job("1", "0.0001", 10000), Format("float16"));
  EXPECT_EQ(sum.value, 1.0);
  EXPECT_EQ(sum.first_stalled_step, 1);
}

TEST(Accumulate, Float32IsWhatTheProcessorAddsUp) {
  float expected = 1.0F;
  for (int i = 0; i < 10000; ++i) {
    expected += 0.0001F;
  }
  const Accumulation sum = Accumulate(Job("1", "0.0001", 10000), Format("float32"));
  EXPECT_EQ(sum.value, expected);
  EXPECT_EQ(sum.first_stalled_step, std::nullopt);
}

// Adding 1 in float32 stalls at 2^24 (IEEE 754: 24 significant bits): step 16,777,217 moves
// nothing.
TEST(Accumulate, CountingStopsAtTwoToThePrecision) {
  const Accumulation sum = Accumulate(Job("0", "1", 1'000'000'000'000), Format("float32"));
  EXPECT_EQ(sum.value, 16777216.0);
  EXPECT_EQ(sum.first_stalled_step, 16777217);
  EXPECT_EQ(Accumulate(Job("0", "1", 1'000'000'000'000), Format("bfloat16")).value, 256.0);
}

// Skipping ahead gives what single steps give, for ties, signs, subnormals and overflow alike.
TEST(Accumulate, SkippingAheadChangesNothing) {
  struct Case {
    const char* start;
    const char* add;
  };
  const Case cases[] = {
      {"0", "0.1"},        {"1", "-0.001"},     {"-3", "0.01"},     {"1", "0.00390625"},
      {"1", "0.01171875"}, {"2", "-0.0078125"}, {"0", "1e-7"},      {"1e-6", "-3e-8"},
      {"-1", "0.0625"},    {"100", "0.3"},      {"0.001", "0.125"}, {"200", "7"},
      {"65000", "20"},     {"0", "0"},          {"-0.3", "0.0003"}, {"3", "-0.00146484375"},
      {"8", "0.25"},       {"0", "0.0078125"},  {"1.5", "0.03125"}, {"0x25p-4", "0x99p-10"}};
  std::vector<NumberFormat> formats(P3109Formats().begin(), P3109Formats().end());
  for (const char* const name : {"float16", "bfloat16", "e4m3", "e5m2", "float8_e4m3fnuz", "e2m1",
                                 "e6m9", "e3m0fn", "e8m0"}) {
    formats.push_back(Format(name));
  }
  for (const NumberFormat& format : formats) {
    const std::string name(format.name);
    for (const Case& c : cases) {
      const AccumulationJob job = Job(c.start, c.add, 3000);
      double sum = Round(job.start.nearest, format);
      const double addend = Round(job.add.nearest, format);
      std::optional<std::int64_t> stalled;
      for (int step = 1; step <= 3000; ++step) {
        const double next = Round(sum + addend, format);  // exact in a double for these formats
        if (next == sum && !stalled) {
          stalled = step;
        }
        sum = next;
      }
      const Accumulation skipping = Accumulate(job, format);
      EXPECT_EQ(std::isnan(sum), std::isnan(skipping.value)) << name << c.start << c.add;
      if (!std::isnan(sum)) {
        EXPECT_EQ(skipping.value, sum) << name << " " << c.start << " " << c.add;
        EXPECT_EQ(skipping.first_stalled_step, stalled) << name << " " << c.start << " " << c.add;
      }
    }
  }
}

// IEEE P3109 draft: the last code of an unsigned extended format is NaN and the one before it
// infinity, so the largest value is three steps short of the next power of two.
TEST(Accumulate, SumsEndAtTheLargestValue) {
  EXPECT_EQ(Accumulate(Job("8", "0.25", 29), Format("binary8p6ue")).value, 15.25);
  EXPECT_EQ(Accumulate(Job("8", "0.25", 30), Format("binary8p6ue")).value, HUGE_VAL);
  EXPECT_EQ(Accumulate(Job("0", "0.0078125", 253), Format("binary8p8ue")).value, 253.0 / 128);
  EXPECT_EQ(Accumulate(Job("0", "0.0078125", 254), Format("binary8p8ue")).value, HUGE_VAL);
}

TEST(Accumulate, Float64EndsInTheTopBinadeAtOnce) {
  const Accumulation sum =
      Accumulate(Job("1.7e308", "1e292", 1'000'000'000'000), Format("float64"));
  EXPECT_TRUE(std::isfinite(sum.value));
  EXPECT_GT(sum.value, 1.7e308);
}

TEST(Accumulate, AMasterCopyMoves) {
  const Accumulation sum =
      AccumulateWithMaster(Job("1", "0.0001", 10000), Format("float16"), Format("float32"));
  EXPECT_EQ(sum.value, 2.0);  // float32's 2.00016594, read in float16 (step 2^-9 there)
  EXPECT_EQ(sum.first_stalled_step, std::nullopt);
}

TEST(Accumulate, TheExactSumIsDecimal) {
  EXPECT_EQ(ExactSum(Job("1", "0.0001", 10000)).Text(), "2");
  EXPECT_EQ(ExactSum(Job("0.1", "-0.3", 3)).Text(), "-0.8");
}

TEST(Accumulate, NoStepsGiveTheStart) {
  EXPECT_EQ(Accumulate(Job("0.1", "1", 0), Format("float16")).value, 0.0999755859375);
}

}  // namespace
}  // namespace fourpiles
