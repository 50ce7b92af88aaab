#pragma once

// A format of one value made ready for one tensor: its scale, and what its limits are for the
// tensor's own values.

#include "audit/audit_format.h"
#include "fourpiles/number_format.h"
#include "kernels/losses.h"

namespace fourpiles {

struct FormatWay {
  NumberFormat format = {};
  Overflow overflow = Overflow::kSaturate;  // of infinities too
  double scale = 1;  // values are multiplied by it, rounded, and divided by it
  LossLimits limits = {};
};

// What the limits of a format are, rounding to nearest-even.
LossLimits LimitsOf(const NumberFormat& format);

// `largest` is the tensor's largest finite magnitude. A scaled format fits it by construction:
// nothing is beyond its limits.
FormatWay WayOf(const AuditFormat& format, Overflow overflow, double largest);

}  // namespace fourpiles
