#pragma once

// What scales depend on that are made of a whole tensor, known before any of its spans is
// converted.

#include <vector>

#include "audit/audit_plan.h"
#include "audit/tensor_values.h"
#include "kernels/losses.h"

namespace fourpiles {

struct WholeTensor {
  Extremes extremes = {};                 // where a format needs them
  std::vector<float> scale_offsets = {};  // of the plan's formats: see NeedsScaleOffset
};

// Reads the tensor once for the extremes and once for each mean of scales that the plan's formats
// need, mostly none. `columns`: of a row. Errors as TensorValues::Read.
Result<WholeTensor> LookAtWhole(const TensorValues& values, std::int64_t columns,
                                const AuditPlan& plan, int threads);

}  // namespace fourpiles
