#pragma once

// The array functions one element at a time, by Encode and Decode: what the kernels must equal, and
// the way for formats that they do not have.

#include "fourpiles/arrays.h"

namespace fourpiles {

inline constexpr NumberFormat kFloat32Format = {.name = "float32",
                                                .exponent_bits = 8,
                                                .fraction_bits = 23,
                                                .bias = 127,
                                                .specials = Specials::kIeee};
// Whether its codes are those of kFloat32Format, whatever it is called.
bool IsFloat32(const NumberFormat& format);

// Code i of an array in memory: as wide as CodeBytes says, above the bits that the format leaves
// unused.
std::uint64_t LoadCode(const std::byte* codes, std::size_t i, const NumberFormat& format);
void StoreCode(std::byte* codes, std::size_t i, const NumberFormat& format, std::uint64_t code);

// Elements begin … end of both.
struct ScalarRange {
  std::size_t begin = 0;
  std::size_t end = 0;
};
void ConvertScalar(ConstCodes from, Codes to, const Conversion& conversion,
                   const ScalarRange& range);

// The statistics of at most 65,536 values, the first of which is element `first` of its array;
// `rounded` may be empty.
RoundingStatistics RoundAndCountScalar(std::span<const float> values, const NumberFormat& format,
                                       const Conversion& conversion, std::span<float> rounded,
                                       std::size_t first);

// The same of values that were rounded before, but for what saturated and what is subnormal.
RoundingStatistics CompareAndCountScalar(std::span<const float> values,
                                         std::span<const float> rounded);

}  // namespace fourpiles
