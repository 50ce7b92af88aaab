#pragma once

// Tables of values that codes name: bitsandbytes' nf4, fp4, af4 and its signed dynamic map of 8
// bits.

#include <cstdint>
#include <span>
#include <string_view>

namespace fourpiles {

struct CodeBook {
  std::string_view name = {};
  std::span<const float> values = {};        // of code 0, 1, …
  std::span<const std::uint8_t> order = {};  // codes from the smallest value to the largest
  std::span<const float> thresholds = {};    // above thresholds[i] is order[i + 1], else order[i]
  // The bit of a code that negates its value; then `order` and `thresholds` are of magnitudes.
  std::uint8_t sign_bit = 0;
};

// All of them.
std::span<const CodeBook> CodeBooks();

// The one of that name, which must be there.
const CodeBook& FindCodeBook(std::string_view name);

// The code whose value is nearest; a value on a threshold gets the smaller neighbour, or the one
// nearer to zero where codes have a sign bit.
std::uint8_t NearestCode(float value, const CodeBook& book);

}  // namespace fourpiles
