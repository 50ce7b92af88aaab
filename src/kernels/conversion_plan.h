#pragma once

// What a vector needs to know to round float32 into a format and to read its codes, worked out once
// from the records. Magnitudes are float32 bits without the sign, codes are 32-bit.

#include <cstdint>

#include "fourpiles/number_format.h"

namespace fourpiles {

// The vectors' way to round, for formats inside float32's range: the code is what is left of the
// float32 bits, with another bias, after some low bits are cut off and perhaps one is added.
struct EncodePlan {
  bool is_nearest_even = false;  // and keeps subnormals: the short way
  bool is_ieee_half = false;     // … into float16, overflowing to infinity: processors do that
  // … into a format with float32's exponents, overflowing to infinity: what float32 bits begin
  // with.
  bool is_short_float = false;
  int shift = 0;             // bits cut off a normal number
  std::uint32_t rebias = 0;  // what the exponent's bias shrinks by, in codes
  // Below this magnitude spacing stays.
  std::uint32_t smallest_normal = 0;
  bool shares_subnormals = false;  // … in float32 at the same place
  float subnormal_anchor = 0;      // a power of two whose last place is the smallest subnormal

  int exponent_offset = 0;  // the format's bias − 127
  int fraction_bits = 0;
  // Added to the 32 bits cut off: a carry out of them moves the magnitude up.
  std::uint32_t addend_positive = 0;
  std::uint32_t addend_negative = 0;
  std::uint32_t addend_odd = 0;  // more, where the kept code is odd
  bool to_odd = false;
  bool stochastic = false;
  std::uint32_t flush_input_below = 0;   // magnitudes
  std::uint32_t flush_output_below = 0;  // codes

  std::uint32_t largest = 0;  // code
  bool caps = false;          // what is past it is one code for either sign, it or the next …
  std::uint32_t cap = 0;      // … so that no magnitude's code is larger than this
  std::uint32_t overflow_positive = 0;  // whole codes of what is past it
  std::uint32_t overflow_negative = 0;
  std::uint32_t infinity_positive = 0;
  std::uint32_t infinity_negative = 0;
  std::uint32_t nan_positive = 0;
  std::uint32_t nan_negative = 0;
  int sign_shift = 0;  // from float32's sign bit down to the format's
  bool has_negative_zero = true;
  int unused_bits = 0;  // below a code in memory
};

struct DecodePlan {
  bool is_bfloat = false;     // bfloat16: the bits that a float32 begins with
  bool is_ieee_half = false;  // float16: processors do that
  int shift = 0;
  std::uint32_t rebias = 0;                // added to float32 bits
  std::uint32_t smallest_normal_code = 0;  // 0: float32's subnormals are the format's too
  float subnormal_step = 0;                // the value of the code 1
  std::uint32_t magnitude_mask = 0;
  std::uint32_t largest = 0;   // code; what is past it is no number, but for …
  std::uint32_t infinity = 0;  // … this magnitude; larger than the mask where there is none
  bool has_specials = false;
  bool nan_is_negative_zero = false;  // the code of −0 is NaN
  int sign_shift = 0;
  int unused_bits = 0;  // below a code in memory
};

// Whether the plans can be made: signed formats with subnormals, 1 to 22 fraction bits, and all
// values inside float32's.
bool HasPlan(const NumberFormat& format);

// `source` is the format that the values come from, of which float32 holds all.
EncodePlan PlanEncode(const NumberFormat& format, const Conversion& conversion,
                      const NumberFormat& source);
DecodePlan PlanDecode(const NumberFormat& format);

}  // namespace fourpiles
