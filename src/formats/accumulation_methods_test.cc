#include "formats/accumulation_methods.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "fourpiles/arithmetic.h"

namespace fourpiles {
namespace {

AccumulationJob Job(const char* start, const char* add, std::int64_t times) {
  return {ParseNumber(start, "--start").value(), ParseNumber(add, "--add").value(), times};
}

NumberFormat Format(std::string_view name) {
  return FindFormat(name).value();
}

std::optional<Accumulation> By(SumMethod method, const AccumulationJob& job, const char* format) {
  return AccumulateBy({.method = method, .format = Format(format)}, job);
}

// NumPy 1.24's float16 and float32, by the loops in arithmetic_test.cc over [start] + [add] ×
// times:
//   def upd(t, start, add, n):
//       x = [t(start)] + [t(add)] * n
//       return seq(x), pair(x, 1), kahan(x)
TEST(AccumulationMethods, AreNumPysLoops) {
  struct Case {
    const char* format;
    const char* start;
    const char* add;
    std::int64_t times;
    double sequential, pairwise, kahan;
  };
  const Case cases[] = {
      {"float16", "1", "0.0001", 10000, 1.0, 2.0, 2.0},
      {"float16", "0", "0.1", 9999, 256.0, 999.0, 1000.0},
      {"float16", "1", "-0.001", 1234, -0.208740234375, -0.23388671875, -0.2344970703125},
      {"float16", "100", "0.3", 1, 100.3125, 100.3125, 100.3125},
      {"float16", "0.5", "0.001", 7, 0.5068359375, 0.5068359375, 0.5068359375},
      {"float32", "1", "0.0001", 10000, 2.0001657009124756, 2.0, 2.0},
      {"float32", "0", "0.1", 9999, 999.8029174804688, 999.9000244140625, 999.9000244140625},
      {"float32", "1", "-0.001", 1234, -0.23399096727371216, -0.23399972915649414,
       -0.2340000569820404},
      {"float32", "100", "0.3", 1, 100.30000305175781, 100.30000305175781, 100.30000305175781},
      {"float32", "0.5", "0.001", 7, 0.5069999098777771, 0.5069999694824219, 0.5070000290870667},
  };
  for (const Case& c : cases) {
    const AccumulationJob job = Job(c.start, c.add, c.times);
    EXPECT_EQ(By(SumMethod::kSequential, job, c.format)->value, c.sequential) << c.format << c.add;
    EXPECT_EQ(By(SumMethod::kPairwise, job, c.format)->value, c.pairwise) << c.format << c.add;
    EXPECT_EQ(By(SumMethod::kKahan, job, c.format)->value, c.kahan) << c.format << c.add;
  }
}

// The tree over equal leaves is the tree over an array of them.
TEST(AccumulationMethods, EqualLeavesChangeNothing) {
  for (const char* const name : {"float16", "bfloat16", "e4m3", "e2m1", "float64"}) {
    const NumberFormat format = Format(name);
    for (std::int64_t times = 0; times < 300; ++times) {
      std::vector<double> values(static_cast<std::size_t>(times) + 1, Round(0.3, format));
      values.front() = Round(-5.0, format);
      const double expected = SumPairwise(values, format);
      const double value = By(SumMethod::kPairwise, Job("-5", "0.3", times), name)->value;
      EXPECT_TRUE(value == expected || (std::isnan(value) && std::isnan(expected)))
          << name << times << " " << value << " " << expected;
    }
  }
}

TEST(AccumulationMethods, ATreeOfManyLeavesIsAnsweredAtOnce) {
  // 2^53 leaves of 1 are 2^53; with the start 1 as one of them too. Float32 holds every sum.
  const AccumulationJob job = Job("1", "1", (std::int64_t{1} << 53) - 1);
  EXPECT_EQ(By(SumMethod::kPairwise, job, "float32")->value, 0x1p53);
  EXPECT_EQ(TreeDepth(job.times), 53);
  EXPECT_EQ(TreeDepth(0), 0);
  EXPECT_EQ(TreeDepth(1), 1);
  EXPECT_EQ(TreeDepth(2), 2);
  EXPECT_EQ(TreeDepth(3), 2);
  EXPECT_EQ(TreeDepth(4), 3);
}

// By the loop in NumPy's float16: at step 65,521 the sum becomes infinite, and infinity − infinity
// is NaN.
TEST(AccumulationMethods, KahansSumOverflows) {
  const std::optional<Accumulation> sum =
      By(SumMethod::kKahan, Job("0", "1", 1'000'000'000'000), "float16");
  ASSERT_TRUE(sum);
  EXPECT_TRUE(std::isnan(sum->value));
}

// bfloat16 has 8 significant bits for the sum and 8 for the correction: −256 − 1 is −256 again. The
// same loop in Python, each operation rounded to 8 bits: at rest from step 65,793 on.
TEST(AccumulationMethods, KahansSumComesToRestWhenItsCorrectionDoes) {
  const std::optional<Accumulation> sum =
      By(SumMethod::kKahan, Job("0", "1", 1'000'000'000'000), "bfloat16");
  ASSERT_TRUE(sum);
  EXPECT_EQ(sum->value, 0x1p16);
  EXPECT_EQ(sum->first_stalled_step, 65793);
}

TEST(AccumulationMethods, LongPlaysAreNotRun) {
  const AccumulationJob job = Job("1", "1e-3", kMostPlayedSteps + 1);
  EXPECT_FALSE(By(SumMethod::kStochastic, job, "bfloat16"));
  EXPECT_TRUE(By(SumMethod::kPairwise, job, "bfloat16"));
  EXPECT_TRUE(By(SumMethod::kSequential, job, "bfloat16"));
}

// A weight of 1 that 10,000 updates of 0.0001 should double (exactly 10,000 × the addend that
// bfloat16 has, 0.00010013580322265625). A step is 2^-7 below 2: 128 moves, each with the chance p
// of 0.0001001358 × 128, so the mean is 2.001358 and the variance below 10000 × 2^-14 × p.
TEST(AccumulationMethods, StochasticUpdatesAreRightOnAverage) {
  const AccumulationJob job = Job("1", "0.0001", 10000);
  constexpr int kWeights = 60;
  const double chance = 0.00010013580322265625 * 128;
  const double deviation = std::sqrt(10000 * 0x1p-14 * chance);
  double total = 0;
  for (std::uint64_t seed = 0; seed < kWeights; ++seed) {
    const SumPlan plan = {
        .method = SumMethod::kStochastic, .format = Format("bfloat16"), .seed = seed};
    total += AccumulateBy(plan, job)->value;
  }
  EXPECT_NEAR(total / kWeights, 1 + 1.0013580322265625, 4 * deviation / std::sqrt(kWeights));
}

// 2^52 × 1e-19 of a step of float64: so often, of a million, the sum moves by one.
TEST(AccumulationMethods, StochasticUpdatesMoveFloat64Too) {
  const std::optional<Accumulation> sum =
      By(SumMethod::kStochastic, Job("1", "1e-19", 1'000'000), "float64");
  ASSERT_TRUE(sum);
  const double expected = 0x1p52 * 1e-13;
  EXPECT_NEAR((sum->value - 1) * 0x1p52, expected, 4.5 * std::sqrt(expected));
}

TEST(AccumulationMethods, AStochasticSumRestsWhereThereIsNoOtherValue) {
  const std::optional<Accumulation> largest =
      By(SumMethod::kStochastic, Job("0", "1", 1'000'000'000), "e2m1");
  ASSERT_TRUE(largest);
  EXPECT_EQ(largest->value, 6);
  const std::optional<Accumulation> zero =
      By(SumMethod::kStochastic, Job("3", "0", 1'000'000'000), "float16");
  ASSERT_TRUE(zero);
  EXPECT_EQ(zero->value, 3);
  EXPECT_EQ(zero->first_stalled_step, 1);
}

TEST(AccumulationMethods, AllPlansHaveTheMasterCopySecond) {
  const std::vector<SumPlan> plans = AllPlans(Format("float16"), Format("float32"), 7);
  ASSERT_EQ(plans.size(), 5U);
  EXPECT_EQ(plans[1].master->name, "float32");
  EXPECT_EQ(AccumulateBy(plans[1], Job("1", "0.0001", 10000))->value, 2.0);
  EXPECT_EQ(Name(plans[2].method), "pairwise");
  EXPECT_EQ(plans[4].seed, 7U);
}

}  // namespace
}  // namespace fourpiles
