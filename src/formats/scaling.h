#pragma once

// Loss scaling of one value: multiplied before it is stored, divided after, so that a gradient too
// small for the format survives in it (Micikevicius et al. 2018, arXiv 1710.03740, 3.2).

#include "formats/typed_number.h"

namespace fourpiles {

struct Scaling {
  Encoded encoded;
  double stored = 0;          // value × scale, rounded once into the format
  double value = 0;           // stored ÷ scale, as the nearest double
  double relative_error = 0;  // |stored ÷ scale − input| ÷ |input|, see RelativeError
};

// Both numbers finite, the scale not zero.
Scaling Scale(const TypedNumber& input, const TypedNumber& scale, const NumberFormat& format,
              Overflow overflow);

}  // namespace fourpiles
