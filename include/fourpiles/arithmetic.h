#pragma once

// Arithmetic in a number format, as if a processor had no other: sums, and dot products as hardware
// adds them up, in a format that need not be that of the factors. Every operation is exact and then
// rounded once. Values are doubles that the format has (Round them into it first); any format of up
// to 53 significant bits, float64 itself too. Nothing here depends on the processor's rounding mode
// or on whether it flushes subnormals.

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "fourpiles/number_format.h"

namespace fourpiles {

// --- Sums. Of no values 0, of one that value; addition i is rounded by random element i. ---

// From left to right: n − 1 roundings one after the other.
double SumSequential(std::span<const double> values, const NumberFormat& format,
                     const Conversion& conversion = {});

// The sum of the first half (the shorter one) plus that of the second, down to blocks of up to
// `block` values, which are added from left to right; 0 is taken for 1. No value passes through
// more than log2(n) + block roundings (Higham 2002, "Accuracy and stability of numerical
// algorithms", 4.2). NumPy's add.reduce is this tree with halves cut at a multiple of 8 and, below
// 128 values, eight sums side by side.
double SumPairwise(std::span<const double> values, const NumberFormat& format,
                   const Conversion& conversion = {}, std::size_t block = 1);

// Kahan's summation (1965, "Further remarks on reducing truncation errors", CACM 8(1)): four
// roundings a value, and an error that does not grow with the number of values until
// n × 2^-precision nears 1.
double SumKahan(std::span<const double> values, const NumberFormat& format,
                const Conversion& conversion = {});

// Neumaier's variant (1974, ZAMM 54): the error of each addition is taken from the larger of the
// two, gathered apart, and added at the end; so a value larger than the sum so far is no harm.
double SumNeumaier(std::span<const double> values, const NumberFormat& format,
                   const Conversion& conversion = {});

// --- Dot products ---

// Products that are added together as tensor cores do: the exact products of a group and the sum so
// far are moved to the largest exponent among them, cut off behind `fraction_bits` bits there (each
// toward zero), added exactly, and that is rounded once. The exponent of a product is the sum of
// those of its factors, as they are stored: 1.5 × 1.5 has exponent 0, and a subnormal factor has
// that of the smallest normal value.
struct AlignedAdder {
  int products = 32;       // of a group, at least 1
  int fraction_bits = 13;  // at least 0; products × 2^fraction_bits is up to 2^50
};

// A wider sum that takes what has been added every so many products.
struct Promotion {
  NumberFormat format = {};  // nearest-even
  int every = 128;           // at least 1
};

struct Accumulator {
  std::string_view name = {};
  NumberFormat format = {};                  // of the running sum, which begins with 0
  Conversion conversion = {};                // how it is rounded; addition i by random element i
  bool rounds_products = false;              // each product is rounded into the format first
  std::optional<AlignedAdder> aligned = {};  // none: product by product, a fused multiply-add
  std::optional<Promotion> promotion = {};   // none: never
  std::string_view source = {};              // the document it is taken from
};

// The named ones: "float32", "float16", "bfloat16": one fused multiply-add a product, nearest-even;
// "bfloat16-products": multiplied, rounded, added, rounded;
// "hopper-fp8": NVIDIA's tensor cores of compute capability 9.0 on FP8, "hopper-fp8-promoted" with
// promotion to float32 every 128 products; "ada-fp8", "hopper-fp16" (float16 and bfloat16 factors),
// "blackwell-fp8". One of your own is such a record.
std::span<const Accumulator> Accumulators();
// Error: an unknown name, with the nearest known one; `where` names its place.
Result<Accumulator> FindAccumulator(std::string_view name, std::string_view where = "accumulator");

// Values of a format.
struct Factors {
  std::span<const double> values;
  NumberFormat format;
};

// Σ a[i] × b[i]. NaN and infinities go through as in IEEE 754; where there are any, an aligned
// group is added up in float64. Error: factors of unlike counts; formats whose product does not
// fit float64 exactly (53 significant bits: float32 × float32 fits, float64 × bfloat16 does not);
// an accumulator beyond the limits of its parts.
Result<double> Dot(const Factors& a, const Factors& b, const Accumulator& accumulator);

}  // namespace fourpiles
