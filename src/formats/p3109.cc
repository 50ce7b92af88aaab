// The 8-bit formats of the IEEE P3109 draft (28 June 2026): Binary8p{precision}{s|u}{e|f}. All
// follow from the precision P, the sign and the domain: the bias is 2^(7 − P) with a sign and
// 2^(8 − P) without, so that 1.0 is in the middle of the positive codes.

#include <array>

#include "fourpiles/number_format.h"

namespace fourpiles {
namespace {

constexpr int kBits = 8;
constexpr std::size_t kCount = 4 * 7 + 2;  // 8 bits of precision leave none for a sign

struct FormatName {
  char text[12] = {};
};

struct Kind {
  int precision = 1;
  bool has_sign = true;
  bool extended = true;
};

constexpr std::array<Kind, kCount> kKinds = [] {
  std::array<Kind, kCount> kinds;
  std::size_t count = 0;
  for (int precision = 1; precision <= kBits; ++precision) {
    for (const bool has_sign : {true, false}) {
      for (const bool extended : {true, false}) {
        if (precision < kBits || !has_sign) {
          kinds[count++] = {precision, has_sign, extended};
        }
      }
    }
  }
  return kinds;
}();

// Kept in a table because a record only points at its name.
constexpr std::array<FormatName, kCount> kNames = [] {
  std::array<FormatName, kCount> names;
  for (std::size_t i = 0; i < kCount; ++i) {
    names[i] = {"binary8p0se"};
    names[i].text[8] = static_cast<char>('0' + kKinds[i].precision);
    names[i].text[9] = kKinds[i].has_sign ? 's' : 'u';
    names[i].text[10] = kKinds[i].extended ? 'e' : 'f';
  }
  return names;
}();

constexpr Specials SpecialsOf(const Kind& kind) {
  if (kind.extended) {
    return Specials::kP3109Extended;
  }
  return kind.has_sign ? Specials::kNanAtZero : Specials::kNanAtTop;
}

constexpr std::array<NumberFormat, kCount> kFormats = [] {
  std::array<NumberFormat, kCount> formats;
  for (std::size_t i = 0; i < kCount; ++i) {
    const Kind& kind = kKinds[i];
    const int exponent_bits = kBits - kind.precision + (kind.has_sign ? 0 : 1);
    formats[i] = {.name = kNames[i].text,
                  .has_sign = kind.has_sign,
                  .exponent_bits = exponent_bits,
                  .fraction_bits = kind.precision - 1,
                  .bias = 1 << (exponent_bits - 1),
                  .specials = SpecialsOf(kind),
                  .source = "IEEE P3109 draft, 28 June 2026"};
  }
  return formats;
}();

}  // namespace

std::span<const NumberFormat> P3109Formats() {
  return kFormats;
}

}  // namespace fourpiles
