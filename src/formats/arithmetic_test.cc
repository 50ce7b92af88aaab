#include "fourpiles/arithmetic.h"

#include <cmath>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace fourpiles {
namespace {

NumberFormat Format(std::string_view name) {
  return FindFormat(name).value();
}

// Values that float16 and float32 hold.
std::vector<double> Values16() {
  std::vector<double> values;
  for (int i = 0; i < 3000; ++i) {
    values.push_back(std::ldexp((i * i * 7919LL + i * 104729LL) % 2048 - 700, -(6 + i % 7)));
  }
  return values;
}
std::vector<double> Values32() {
  std::vector<double> values;
  for (int i = 0; i < 3000; ++i) {
    const std::int64_t number = (i * i * 7919LL + i * 104729LL) % 16777213 - 7000000;
    values.push_back(std::ldexp(static_cast<double>(number), -(20 + i % 11)));
  }
  return values;
}

// The expected sums are NumPy 1.24's, whose float16 and float32 operations round once each:
//   import numpy as np
//   def xs16(n): return [np.float16(((i*i*7919+i*104729)%2048-700)*2.0**-(6+i%7))
//                        for i in range(n)]
//   def xs32(n): return [np.float32(((i*i*7919+i*104729)%16777213-7000000)*2.0**-(20+i%11))
//                        for i in range(n)]
//   def seq(x):
//       s = x[0]
//       for v in x[1:]: s = s + v
//       return s
//   def pair(x, block):
//       if len(x) <= block: return seq(x)
//       half = len(x) // 2
//       return pair(x[:half], block) + pair(x[half:], block)
//   def kahan(x):
//       s, c = x[0], type(x[0])(0)
//       for v in x[1:]: y = v - c; t = s + y; c = (t - s) - y; s = t
//       return s
//   def neumaier(x):
//       s, c = x[0], type(x[0])(0)
//       for v in x[1:]:
//           t = s + v
//           c = c + (((s - t) + v) if abs(s) >= abs(v) else ((v - t) + s)); s = t
//       return s + c
// for xs16(3000) and xs32(3000), whose exact sums are 4510.2236328125 and 465.8330834778026.
TEST(Arithmetic, SumsInFloat16AreNumPys) {
  const std::vector<double> values = Values16();
  const NumberFormat format = Format("float16");
  EXPECT_EQ(SumSequential(values, format), 4380.0);
  EXPECT_EQ(SumPairwise(values, format), 4512.0);
  EXPECT_EQ(SumPairwise(values, format, {}, 8), 4512.0);
  EXPECT_EQ(SumKahan(values, format), 4512.0);
  EXPECT_EQ(SumNeumaier(values, format), 4512.0);
}

TEST(Arithmetic, SumsInFloat32AreNumPys) {
  const std::vector<double> values = Values32();
  const NumberFormat format = Format("float32");
  EXPECT_EQ(SumSequential(values, format), 465.8335266113281);
  EXPECT_EQ(SumPairwise(values, format), 465.83306884765625);
  EXPECT_EQ(SumPairwise(values, format, {}, 8), 465.83306884765625);
  EXPECT_EQ(SumKahan(values, format), 465.83306884765625);
  EXPECT_EQ(SumNeumaier(values, format), 465.83306884765625);
}

// The processor's own float64, with intermediate results that are no sums of doubles exactly.
TEST(Arithmetic, SumsInFloat64AreTheProcessors) {
  std::vector<double> values;
  double sum = 0;
  for (int i = 1; i <= 1000; ++i) {
    values.push_back((i % 3 == 0 ? -1.0 : 1.0) / i);
    sum += values.back();
  }
  EXPECT_EQ(SumSequential(values, Format("float64")), sum);
}

TEST(Arithmetic, SumsOfNothingAndOfOneValue) {
  const NumberFormat format = Format("bfloat16");
  const double one[] = {-0.0};
  EXPECT_EQ(SumSequential({}, format), 0);
  EXPECT_EQ(SumPairwise({}, format), 0);
  EXPECT_EQ(SumKahan({}, format), 0);
  EXPECT_EQ(SumNeumaier({}, format), 0);
  EXPECT_TRUE(std::signbit(SumSequential(one, format)));
  EXPECT_TRUE(std::signbit(SumPairwise(one, format)));
  EXPECT_TRUE(std::signbit(SumKahan(one, format)));
}

// The example that Neumaier's variant is for (1974): the second value swallows the first. NumPy's
// float16 by the loops above: 0, 0, 0, 2.
TEST(Arithmetic, NeumaierKeepsWhatALargerValueSwallows) {
  const double values[] = {1, 4096, 1, -4096};
  const NumberFormat format = Format("float16");
  EXPECT_EQ(SumSequential(values, format), 0);
  EXPECT_EQ(SumPairwise(values, format), 0);
  EXPECT_EQ(SumKahan(values, format), 0);
  EXPECT_EQ(SumNeumaier(values, format), 2);
}

// bfloat16 has 8 significant bits: 256 + 1 is a tie, to the even 256 (IEEE 754-2019 §4.3.1).
TEST(Arithmetic, TheBlockOfATreeIsAddedFromTheLeft) {
  const std::vector<double> values = {256, 1, 1, 1};
  const NumberFormat format = Format("bfloat16");
  EXPECT_EQ(SumPairwise(values, format, {}, 4), 256);  // ((256 + 1) + 1) + 1
  EXPECT_EQ(SumPairwise(values, format, {}, 2), 258);  // (256 + 1) + (1 + 1)
}

TEST(Arithmetic, EveryAdditionRoundsAsToldTo) {
  const double values[] = {256, 1, 1};
  const NumberFormat format = Format("bfloat16");
  EXPECT_EQ(SumSequential(values, format, {.rounding = RoundingMode::kUp}), 260);
  EXPECT_EQ(SumSequential(values, format, {.rounding = RoundingMode::kTowardZero}), 256);
  EXPECT_EQ(SumSequential(values, format, {.rounding = RoundingMode::kNearestAway}), 260);
}

TEST(Arithmetic, OverflowIsAsToldTo) {
  const double values[] = {448, 448, -448};
  const NumberFormat format = Format("float8_e4m3fn");
  EXPECT_TRUE(std::isnan(SumSequential(values, format)));
  EXPECT_EQ(SumSequential(values, format, NearestEven(Overflow::kSaturate)), 0);
  const double infinite[] = {HUGE_VAL, 1, -HUGE_VAL};
  EXPECT_TRUE(std::isnan(SumSequential(infinite, Format("float16"))));
  EXPECT_EQ(SumSequential(std::span(infinite).first(2), Format("float16")), HUGE_VAL);
}

// 2^-14 is float16's smallest normal number.
TEST(Arithmetic, SubnormalsAreFlushedGoingInOrComingOut) {
  const NumberFormat format = Format("float16");
  const double sum_of_subnormals[] = {0x1p-15, 0x1p-15};
  const double subnormal_sum[] = {0x1p-14, -0x1.8p-15};
  EXPECT_EQ(SumSequential(sum_of_subnormals, format), 0x1p-14);
  EXPECT_EQ(SumSequential(sum_of_subnormals, format, {.subnormals = Subnormals::kFlushedOnInput}),
            0);
  EXPECT_EQ(SumSequential(sum_of_subnormals, format, {.subnormals = Subnormals::kFlushedOnOutput}),
            0x1p-14);
  EXPECT_EQ(SumSequential(subnormal_sum, format), 0x1p-16);
  EXPECT_EQ(SumSequential(subnormal_sum, format, {.subnormals = Subnormals::kFlushedOnOutput}), 0);
}

// 1,000 times 1 on top of 1,024 in bfloat16, whose step there is 8: each addition moves it with the
// chance 1/8, so the mean of the sums is 2,024 exactly. The expectation is right whatever was drawn
// before; below 2,048 a sum has the variance 1000 × 8² × 1/8 × 7/8 = 7,000. Above 2,048 the step is
// 16 and the variance of an addition 15 rather than 7, so 15,000 bounds it.
TEST(Arithmetic, StochasticSumsAreRightOnAverage) {
  std::vector<double> values(1001, 1.0);
  values.front() = 1024;
  const NumberFormat format = Format("bfloat16");
  constexpr int kSums = 400;
  double total = 0;
  double squares = 0;
  for (std::uint64_t seed = 0; seed < kSums; ++seed) {
    const double sum =
        SumSequential(values, format, {.rounding = RoundingMode::kStochastic, .seed = seed});
    total += sum;
    squares += (sum - 2024) * (sum - 2024);
  }
  EXPECT_NEAR(total / kSums, 2024, 4 * std::sqrt(15000.0 / kSums));
  EXPECT_GT(squares / kSums, 5000);
  EXPECT_LT(squares / kSums, 18000);
  EXPECT_EQ(SumSequential(values, format), 1024);
}

}  // namespace
}  // namespace fourpiles
