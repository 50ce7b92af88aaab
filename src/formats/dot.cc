// Dot products as hardware adds them up.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/nearest_name.h"
#include "base/try.h"
#include "formats/adder.h"
#include "formats/codes.h"
#include "fourpiles/arithmetic.h"

namespace fourpiles {
namespace {

constexpr std::string_view kIeee754 = "IEEE 754-2019 §5.4.1, fusedMultiplyAdd";
// 14 bits of each product: DeepSeek-V3, arXiv 2412.19437, 3.3.2 and 3.5.2. That a group is 32
// products and the sum, that each is cut toward zero, and that the sum is e8m13, cut toward zero:
// the reference model checked bit by bit against the hardware, arXiv 2511.10909 (MMA-Sim).
constexpr std::string_view kTensorCores = "arXiv 2511.10909 (MMA-Sim); arXiv 2412.19437, 3.5.2";
constexpr std::string_view kPromoted = "arXiv 2412.19437 (DeepSeek-V3), 3.3.2";

constexpr Conversion kTowardZero = {.rounding = RoundingMode::kTowardZero};

NumberFormat Named(std::string_view name) {
  return FindFormat(name).value();
}

std::array<Accumulator, 9> MakeAccumulators() {
  const NumberFormat float32 = Named("float32");
  const NumberFormat bfloat16 = Named("bfloat16");
  const NumberFormat fp22 = Named("e8m13");
  const auto tensor_core = [](std::string_view name, const NumberFormat& sum,
                              const AlignedAdder& aligned) {
    return Accumulator{.name = name,
                       .format = sum,
                       .conversion = kTowardZero,
                       .aligned = aligned,
                       .source = kTensorCores};
  };
  Accumulator promoted = tensor_core("hopper-fp8-promoted", fp22, {32, 13});
  promoted.promotion = Promotion{float32, 128};
  promoted.source = kPromoted;
  return {{
      {.name = "float32", .format = float32, .source = kIeee754},
      {.name = "float16", .format = Named("float16"), .source = kIeee754},
      {.name = "bfloat16", .format = bfloat16, .source = kIeee754},
      {.name = "bfloat16-products",
       .format = bfloat16,
       .rounds_products = true,
       .source = "IEEE 754-2019 §5.4.1, multiplication and addition"},
      tensor_core("hopper-fp8", fp22, {32, 13}),
      promoted,
      tensor_core("ada-fp8", fp22, {16, 13}),
      tensor_core("hopper-fp16", float32, {16, 25}),
      tensor_core("blackwell-fp8", float32, {32, 25}),
  }};
}

Result<void> CheckExact(const Factors& a, const Factors& b) {
  if (a.values.size() != b.values.size()) {
    return WrongUsage({.where = "dot product",
                       .found = fmt::format("{} and {} factors", a.values.size(), b.values.size()),
                       .expected = "expected as many on both sides"});
  }
  using Float64 = std::numeric_limits<double>;
  const int bits = a.format.fraction_bits + b.format.fraction_bits + 2;
  const int lowest = LowestExponent(a.format) + LowestExponent(b.format) + 2 - bits;
  const int highest = HighestExponent(a.format) + HighestExponent(b.format) + 1;
  if (bits <= Float64::digits && lowest >= Float64::min_exponent - 1 &&
      highest < Float64::max_exponent) {
    return {};
  }
  return WrongUsage(
      {.where = "dot product",
       .found = fmt::format("{} × {} takes {} significant bits and exponents from {} to {}",
                            a.format.name, b.format.name, bits, lowest, highest),
       .expected = "expected products that float64 holds exactly: 53 bits, from -1022 to 1023"});
}

// The limits of an accumulator's parts: with them an aligned sum is exact and every loop ends.
Result<void> CheckParts(const Accumulator& accumulator) {
  constexpr int kMostBits = 50;
  const auto refuse = [&](std::string found, std::string expected) {
    return WrongUsage(
        {.where = accumulator.name.empty() ? "accumulator" : std::string(accumulator.name),
         .found = std::move(found),
         .expected = std::move(expected)});
  };
  if (accumulator.promotion && accumulator.promotion->every < 1) {
    return refuse(fmt::format("promotion every {} products", accumulator.promotion->every),
                  "expected at least 1");
  }
  if (!accumulator.aligned) {
    return {};
  }
  const auto [products, bits] = *accumulator.aligned;
  if (products < 1 || bits < 0 || bits > kMostBits ||
      products > std::int64_t{1} << (kMostBits - bits)) {
    return refuse(fmt::format("groups of {} products with {} fraction bits", products, bits),
                  "expected at least 1, at least 0, and products × 2^bits up to 2^50");
  }
  return {};
}

// The exponent that a value of the format, other than zero, is stored with.
int StoredExponent(double value, const NumberFormat& format) {
  return std::max(std::ilogb(value), LowestExponent(format));
}

// A number in a group, and the exponent by which it is aligned.
struct Addend {
  double value = 0;
  int exponent = 0;
};

// The exact sum of the addends, each cut off toward zero behind `fraction_bits` bits of the largest
// exponent. An addend is below 4 × 2^exponent, so that a double holds the sum of what is left of
// them; scaling by a power of two is exact where anything is left.
double AlignedSum(std::span<const Addend> addends, int fraction_bits) {
  int largest = std::numeric_limits<int>::min();
  for (const Addend& addend : addends) {
    largest = std::max(largest, addend.exponent);
  }
  std::int64_t sum = 0;
  for (const Addend& addend : addends) {
    sum += static_cast<std::int64_t>(std::ldexp(addend.value, fraction_bits - largest));
  }
  return sum == 0 ? 0.0 : std::ldexp(static_cast<double>(sum), largest - fraction_bits);
}

// The dot product of a stretch of the factors, from zero.
class Stretch {
 public:
  Stretch(const Factors& a, const Factors& b, const Accumulator& accumulator)
      : a_(a),
        b_(b),
        accumulator_(accumulator),
        adder_(accumulator.format, accumulator.conversion) {}

  double Sum(std::size_t begin, std::size_t end) {
    double sum = 0;
    if (!accumulator_.aligned) {
      for (std::size_t i = begin; i < end; ++i) {
        sum = adder_.Add(sum, accumulator_.rounds_products ? adder_.Rounded(At(i)) : At(i));
      }
      return sum;
    }
    const auto group = static_cast<std::size_t>(accumulator_.aligned->products);
    for (std::size_t i = begin; i < end; i += group) {
      sum = adder_.Rounded(Aligned(sum, i, std::min(end, i + group)));
    }
    return sum;
  }

 private:
  double At(std::size_t i) const { return a_.values[i] * b_.values[i]; }

  // A group of products and the sum so far.
  double Aligned(double sum, std::size_t begin, std::size_t end) {
    addends_.clear();
    double plain = sum;
    if (sum != 0) {
      addends_.push_back({sum, StoredExponent(sum, accumulator_.format)});
    }
    for (std::size_t i = begin; i < end; ++i) {
      const double product = At(i);
      plain += product;
      if (product != 0) {
        addends_.push_back({product, StoredExponent(a_.values[i], a_.format) +
                                         StoredExponent(b_.values[i], b_.format)});
      }
    }
    return std::isfinite(plain) ? AlignedSum(addends_, accumulator_.aligned->fraction_bits) : plain;
  }

  const Factors& a_;
  const Factors& b_;
  const Accumulator& accumulator_;
  Adder adder_;
  std::vector<Addend> addends_;
};

}  // namespace

std::span<const Accumulator> Accumulators() {
  static const std::array<Accumulator, 9> all = MakeAccumulators();
  return all;
}

Result<Accumulator> FindAccumulator(std::string_view name, std::string_view where) {
  std::vector<std::string_view> names;
  for (const Accumulator& accumulator : Accumulators()) {
    if (accumulator.name == name) {
      return accumulator;
    }
    names.push_back(accumulator.name);
  }
  return WrongUsage({.where = std::string(where),
                     .found = fmt::format("unknown accumulator \"{}\"", name),
                     .expected = DidYouMean(name, names),
                     .hint = "\"fourpiles formats --markdown\" lists them all"});
}

Result<double> Dot(const Factors& a, const Factors& b, const Accumulator& accumulator) {
  TRY_VOID(CheckExact(a, b));
  TRY_VOID(CheckParts(accumulator));
  Stretch stretch(a, b, accumulator);
  const std::size_t count = a.values.size();
  if (!accumulator.promotion) {
    return stretch.Sum(0, count);
  }
  const auto every = static_cast<std::size_t>(accumulator.promotion->every);
  Adder promoted(accumulator.promotion->format);
  double sum = 0;
  for (std::size_t i = 0; i < count; i += every) {
    sum = promoted.Add(sum, stretch.Sum(i, std::min(count, i + every)));
  }
  return sum;
}

}  // namespace fourpiles
