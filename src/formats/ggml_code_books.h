#pragma once

// The points that codes of ggml's "iq" types stand for: eight or four values each.

#include <array>
#include <cstddef>
#include <cstdint>

namespace fourpiles {

template <std::size_t kPoints, std::size_t kValues>
using CodeBook = std::array<std::array<std::int8_t, kValues>, kPoints>;

struct GgmlCodeBooks {
  CodeBook<2048, 8> iq1;  // of iq1_s and iq1_m
  CodeBook<256, 8> iq2_xxs;
  CodeBook<512, 8> iq2_xs;
  CodeBook<1024, 8> iq2_s;
  CodeBook<256, 4> iq3_xxs;
  CodeBook<512, 4> iq3_s;
};

const GgmlCodeBooks& CodeBooksOfGgml();

// The values of iq4_nl and iq4_xs.
inline constexpr std::array<std::int8_t, 16> kIq4Values = {
    -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

}  // namespace fourpiles
