#include <cfenv>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "formats/philox.h"
#include "fourpiles/arithmetic.h"

namespace fourpiles {
namespace {

NumberFormat Format(std::string_view name) {
  return FindFormat(name).value();
}

double DotOf(std::span<const double> a, std::span<const double> b, std::string_view accumulator,
             std::string_view format = "float8_e4m3fn") {
  return Dot({a, Format(format)}, {b, Format(format)}, FindAccumulator(accumulator).value())
      .value();
}

// `count` values of e4m3 from all over its codes, NaN left out; `first` is the first one's number.
std::vector<double> Codes(int count, std::int64_t first) {
  std::vector<double> values;
  for (std::int64_t k = first; k < first + count; ++k) {
    const std::int64_t code = (k * k * 7919 + k * 104729) / 8 % 256;
    const bool nan = (code & 127) == 127;
    values.push_back(
        Decode(static_cast<std::uint64_t>(nan ? code - 1 : code), Format("float8_e4m3fn")));
  }
  return values;
}

// The expected values are from whole numbers and fractions, in Python:
//   def e4m3(c):  # the value, and the exponent it is stored with
//       s = -1 if c & 128 else 1; e, m = c >> 3 & 15, c & 7
//       return (s*F(m, 512), -6) if e == 0 else (s*F(8+m, 8)*F(2)**(e-7), e-7)
//   def cut(x, step): return int(x / step) * step   # toward zero
//   def ilog(x): return max(e for e in range(-200, 200) if F(2)**e <= abs(x))
//   def rz(x, bits): return x if x == 0 else cut(x, F(2)**(max(ilog(x), -126) - bits))
//   def dot(a, b, group, kept, bits):
//       s = F(0)
//       for i in range(0, len(a), group):
//           t = [(s, ilog(s))] if s != 0 else []
//           t += [(x[0]*y[0], x[1]+y[1])
//                 for x, y in zip(a[i:i+group], b[i:i+group]) if x[0]*y[0] != 0]
//           step = F(2)**(max(e for _, e in t) - kept)
//           s = rz(sum(cut(v, step) for v, _ in t), bits)
//       return s
// with F = fractions.Fraction, which agrees with the formulas of MMA-Sim's functions.py
// (fused_dot_add, nv_fused_dot_add) on these. The exact value is 307688.1489868164.
TEST(Dot, TensorCoresCutOffWhatTheLargestExponentLeavesNoRoomFor) {
  const std::vector<double> a = Codes(4096, 0);
  const std::vector<double> b = Codes(4096, 5000);
  EXPECT_EQ(DotOf(a, b, "hopper-fp8"), 308256.0);           // dot(a, b, 32, 13, 13)
  EXPECT_EQ(DotOf(a, b, "ada-fp8"), 308160.0);              // dot(a, b, 16, 13, 13)
  EXPECT_EQ(DotOf(a, b, "blackwell-fp8"), 307687.71875);    // dot(a, b, 32, 25, 23)
  EXPECT_EQ(DotOf(a, b, "hopper-fp8-promoted"), 308296.0);  // float32 sum of dots of 128
}

// The same with s = rne(s + x*y, bits) a product.
TEST(Dot, PlainAccumulatorsRoundOnceAProduct) {
  const std::vector<double> a = Codes(4096, 0);
  const std::vector<double> b = Codes(4096, 5000);
  EXPECT_EQ(DotOf(a, b, "float32"), 307688.0);
  EXPECT_EQ(DotOf(a, b, "bfloat16"), 311296.0);
  const auto first = [](const std::vector<double>& v) { return std::span(v).first(64); };
  EXPECT_EQ(DotOf(first(a), first(b), "float16"), -18272.0);  // exact: -18289.129989624023
}

// (1 + 2^-7)^2 = 1 + 2^-6 + 2^-14, of which bfloat16 keeps 1 + 2^-6.
TEST(Dot, AProductMayBeRoundedBeforeItIsAdded) {
  const double a[] = {1, 1 + 0x1p-7};
  const double b[] = {-(1 + 0x1p-6), 1 + 0x1p-7};
  EXPECT_EQ(DotOf(a, b, "bfloat16", "bfloat16"), 0x1p-14);
  EXPECT_EQ(DotOf(a, b, "bfloat16-products", "bfloat16"), 0);
}

// 13 bits behind a largest exponent of 0 are steps of 2^-13.
TEST(Dot, AHopperGroupLosesSmallProducts) {
  std::vector<double> a(32, 0x1p-7);
  std::vector<double> b(32, 0x1p-7);  // 31 products of 2^-14 …
  a.front() = b.front() = 1;          // … beside a 1
  EXPECT_EQ(DotOf(a, b, "hopper-fp8"), 1.0);
  EXPECT_EQ(DotOf(a, b, "blackwell-fp8"), 1.0 + 31 * 0x1p-14);
  a.front() = -1;  // toward zero for either sign
  for (double& factor : std::span(b).subspan(1)) {
    factor = 0x1.8p-6;  // 31 products of 2^-13 × 1.5, of which 2^-13 is kept
  }
  EXPECT_EQ(DotOf(a, b, "hopper-fp8"), -1.0 + 31 * 0x1p-13);
}

// The next group is aligned with the sum so far.
TEST(Dot, TheSumTakesPartInTheAlignment) {
  std::vector<double> a(64, 0x1p-7);
  std::vector<double> b(64, 0x1p-7);
  a.front() = b.front() = 1;
  EXPECT_EQ(DotOf(a, b, "hopper-fp8"), 1.0);
  std::vector<double> c(128 + 32, 0x1p-7);
  c.front() = 1;
  std::vector<double> d = c;
  // After 128 products the sum, 1, has moved to float32; the 32 products behind come to 2^-9.
  EXPECT_EQ(DotOf(c, d, "hopper-fp8"), 1.0);
  EXPECT_EQ(DotOf(c, d, "hopper-fp8-promoted"), 1.0 + 0x1p-9);
}

// A product counts with the exponents of its factors: 1.5 × 1.5 = 2.25 with 0, so that 2^-13 is
// kept beside it, where 2.25 itself has the exponent 1. And 2^-9 × 4 = 2^-7 with -6 + 2.
TEST(Dot, ProductsAreAlignedAsTheirFactorsAreStored) {
  const double a[] = {1.5, 0x1p-7, 0x1p-7};
  const double b[] = {1.5, 0x1p-6, 0x1p-6};
  EXPECT_EQ(DotOf(a, b, "hopper-fp8"), 2.25 + 0x1p-12);
  const double c[] = {0x1p-9, 0x1p-9};
  const double d[] = {4, 0x1p-9};
  EXPECT_EQ(DotOf(c, d, "hopper-fp8"), 0x1p-7);
  EXPECT_EQ(DotOf(c, d, "blackwell-fp8"), 0x1p-7 + 0x1p-18);
}

// DeepSeek-V3 (arXiv 2412.19437, 3.3.2) saw a largest relative error of nearly 2 % with K = 4096,
// of matrices that it does not describe. Of uniform factors in [0, 1), where every cut goes the
// same way, a model in NumPy of 2,000 products had a mean error of 6.6 %, the largest 7.0 %; with
// promotion every 128 0.05 % and 0.058 %.
TEST(Dot, PromotionSavesLongHopperProducts) {
  const NumberFormat format = Format("float8_e4m3fn");
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    std::vector<double> a;
    std::vector<double> b;
    double exact = 0;
    for (std::uint64_t i = 0; i < 4096; ++i) {
      a.push_back(Round(RandomBits(seed, 2 * i) * 0x1p-32, format));
      b.push_back(Round(RandomBits(seed, 2 * i + 1) * 0x1p-32, format));
      exact += a.back() * b.back();
    }
    const double error = 1 - DotOf(a, b, "hopper-fp8") / exact;
    EXPECT_GT(error, 0.055);
    EXPECT_LT(error, 0.075);
    EXPECT_NEAR(DotOf(a, b, "hopper-fp8-promoted") / exact, 1 - 0.0005, 0.0002);
    EXPECT_NEAR(DotOf(a, b, "blackwell-fp8") / exact, 1, 1e-5);
  }
}

TEST(Dot, NanAndInfinityGoThrough) {
  const double a[] = {1, 2, HUGE_VAL};
  const double b[] = {1, 1, 1};
  const double zero[] = {1, 1, 0};
  for (const Accumulator& accumulator : Accumulators()) {
    const NumberFormat format = Format("float8_e5m2");
    EXPECT_EQ(Dot({a, format}, {b, format}, accumulator).value(), HUGE_VAL) << accumulator.name;
    EXPECT_TRUE(std::isnan(Dot({a, format}, {zero, format}, accumulator).value()))
        << accumulator.name;
    EXPECT_EQ(Dot({{}, format}, {{}, format}, accumulator).value(), 0) << accumulator.name;
  }
}

TEST(Dot, TheProcessorsRoundingModeChangesNothing) {
  const std::vector<double> a = Codes(4096, 0);
  const std::vector<double> b = Codes(4096, 5000);
  for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    std::fesetround(mode);
    const double hopper = DotOf(a, b, "hopper-fp8-promoted");
    const double float32 = DotOf(a, b, "float32");
    std::fesetround(FE_TONEAREST);
    EXPECT_EQ(hopper, 308296.0);
    EXPECT_EQ(float32, 307688.0);
  }
}

TEST(Dot, RefusesWhatFloat64DoesNotHold) {
  const double a[] = {1};
  const Accumulator accumulator = FindAccumulator("float32").value();
  const auto error = [&](const char* left, const char* right) {
    const Result<double> dot = Dot({a, Format(left)}, {a, Format(right)}, accumulator);
    return dot ? "none" : dot.error().text.found;
  };
  EXPECT_EQ(error("float32", "float32"), "none");
  EXPECT_EQ(error("float64", "bfloat16"),
            "float64 × bfloat16 takes 61 significant bits and exponents from -1207 to 1151");
  const Result<double> uneven = Dot({a, Format("e4m3")}, {{}, Format("e4m3")}, accumulator);
  EXPECT_EQ(uneven.error().text.found, "1 and 0 factors");
}

// A loop that never ends and sums past 64 bits are refused, not run.
TEST(Dot, RefusesAccumulatorsBeyondTheirLimits) {
  const double a[] = {1, 2, 3};
  const auto refusal = [&](const std::optional<AlignedAdder>& aligned,
                           const std::optional<Promotion>& promotion) {
    const NumberFormat float32 = Format("float32");
    const Result<double> dot = Dot({a, Format("e4m3")}, {a, Format("e4m3")},
                                   {.format = float32, .aligned = aligned, .promotion = promotion});
    return dot ? std::to_string(*dot)
               : dot.error().text.where + ": " + dot.error().text.found + ", " +
                     dot.error().text.expected;
  };
  const std::string_view limits = ", expected at least 1, at least 0, and products × 2^bits up to ";
  const auto groups = [&](std::string_view found) {
    return "accumulator: groups of " + std::string(found) + std::string(limits) + "2^50";
  };
  EXPECT_EQ(refusal({}, Promotion{Format("float32"), 0}),
            "accumulator: promotion every 0 products, expected at least 1");
  EXPECT_EQ(refusal({}, Promotion{Format("float32"), -1}),
            "accumulator: promotion every -1 products, expected at least 1");
  EXPECT_EQ(refusal(AlignedAdder{0, 13}, {}), groups("0 products with 13 fraction bits"));
  EXPECT_EQ(refusal(AlignedAdder{32, -1}, {}), groups("32 products with -1 fraction bits"));
  EXPECT_EQ(refusal(AlignedAdder{32, 46}, {}), groups("32 products with 46 fraction bits"));
  EXPECT_EQ(refusal(AlignedAdder{1, 51}, {}), groups("1 products with 51 fraction bits"));
  EXPECT_EQ(refusal(AlignedAdder{32, 45}, Promotion{Format("float32"), 1}), "14.000000");
  EXPECT_EQ(refusal(AlignedAdder{1, 50}, {}), "14.000000");
}

TEST(Dot, AccumulatorsAreFoundByName) {
  EXPECT_EQ(FindAccumulator("hopper-fp8").value().format.fraction_bits, 13);
  EXPECT_EQ(FindAccumulator("hoper-fp8").error().text.expected, "did you mean \"hopper-fp8\"?");
}

}  // namespace
}  // namespace fourpiles
