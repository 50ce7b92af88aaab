#pragma once

// A number as a person types it: decimal, hexadecimal ("0x1.8p3"), "inf", "nan". Nothing is lost on
// the way from the text to a format: "1.00048828125000000001" lies above the middle between two
// float16 values, although the nearest double does not.

#include <string>
#include <string_view>

#include "formats/decimal.h"
#include "formats/real.h"

namespace fourpiles {

struct TypedNumber {
  std::string text;    // as typed
  double nearest = 0;  // the nearest double; the value itself when infinite or NaN
  Decimal exact;       // when IsFinite()
  bool finite = true;  // false: infinity or NaN by name

  Real AsReal() const;
};

// Up to 1,000 characters and a decimal exponent within ±9,999. Error: anything else; `where` names
// the place, "VALUE" or "--add".
Result<TypedNumber> ParseNumber(std::string_view text, std::string_view where);

// A finite number, for sums and factors.
Result<TypedNumber> ParseFiniteNumber(std::string_view text, std::string_view where);

// The number in the format, rounded once to nearest-even.
double Round(const TypedNumber& number, const NumberFormat& format);

// An exact decimal as a real number.
Real RealOf(const Decimal& value);

}  // namespace fourpiles
