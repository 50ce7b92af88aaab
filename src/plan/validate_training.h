#pragma once

#include "plan/job.h"
#include "plan/published_formulas.h"
#include "plan/validate.h"

namespace fourpiles {

// What a device held in a training run: the row is read by its fields (training_run.h).
Result<Prediction> PredictTrainingRun(const Fields& row);

// The peak of one kernel, forward and backward, with its inputs.
Result<Prediction> PredictKernelRun(const Fields& row);

// The job as other planners ask for it.
TrainingDescription DescriptionOf(const Job& job);

}  // namespace fourpiles
