#pragma once

// Dot products as hardware adds them up: in a format that need not be that of the factors, one
// product after the other or groups of them at once, and with the sum promoted to a wider one now
// and then.

#include <optional>
#include <span>
#include <string_view>

#include "fourpiles/number_format.h"

namespace fourpiles {

// Products that are added together as tensor cores do: the exact products of a group and the sum so
// far are moved to the largest exponent among them, cut off behind `fraction_bits` bits there (each
// toward zero), added exactly, and that is rounded once. The exponent of a product is the sum of
// those of its factors, as they are stored: 1.5 × 1.5 has exponent 0, and a subnormal factor has
// that of the smallest normal value. products × 2^fraction_bits is up to 2^50.
struct AlignedAdder {
  int products = 32;
  int fraction_bits = 13;
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
// "blackwell-fp8".
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
// fit float64 exactly (53 significant bits: float32 × float32 fits, float64 × bfloat16 does not).
Result<double> Dot(const Factors& a, const Factors& b, const Accumulator& accumulator);

}  // namespace fourpiles
