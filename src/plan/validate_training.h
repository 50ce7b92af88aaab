#pragma once

#include "plan/validate.h"

namespace fourpiles {

// What a device held in a training run: the row is read by its fields (training_run.h).
Result<Prediction> PredictTrainingRun(const Fields& row);

// The peak of one kernel, forward and backward, with its inputs.
Result<Prediction> PredictKernelRun(const Fields& row);

}  // namespace fourpiles
