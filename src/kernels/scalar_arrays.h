#pragma once

// The array functions one element at a time, by Encode and Decode: what the kernels must equal, and
// the way for formats that they do not have.

#include "fourpiles/arrays.h"

namespace fourpiles {

inline constexpr NumberFormat kFloat32 = {.name = "float32",
                                          .exponent_bits = 8,
                                          .fraction_bits = 23,
                                          .bias = 127,
                                          .specials = Specials::kIeee};
// Whether its codes are those of kFloat32, whatever it is called.
bool IsFloat32(const NumberFormat& format);

// Code i of an array in memory, as wide as CodeBytes says.
std::uint64_t LoadCode(const std::byte* codes, std::size_t i, int code_bytes);
void StoreCode(std::byte* codes, std::size_t i, int code_bytes, std::uint64_t code);

// Elements begin … end of both; `first_index` is that of element 0.
struct ScalarRange {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::uint64_t first_index = 0;
};
void ConvertScalar(ConstCodes from, Codes to, const Conversion& conversion,
                   const ScalarRange& range);

// The statistics of at most 65,536 values; `rounded` may be empty.
RoundingStatistics RoundAndCountScalar(std::span<const float> values, const NumberFormat& format,
                                       const Conversion& conversion, std::span<float> rounded,
                                       std::uint64_t first_index);

// The same of values that were rounded before, but for what saturated and what is subnormal.
RoundingStatistics CompareAndCountScalar(std::span<const float> values,
                                         std::span<const float> rounded);

}  // namespace fourpiles
