#pragma once

// Single changes of a job that lower what its worst device holds, what each saves, and what it
// costs. A change is told as it is typed.

#include <vector>

#include "plan/budget.h"

namespace fourpiles {

// Other formats of the weights and of the cache that the engine has, largest saving first.
std::vector<Advice> ServingAdvice(const Budget& budget);

// Recomputation, kernels, optimizers, recipes, smaller batches, ZeRO and adapters, largest saving
// first. Nothing where the job fits: there is nothing to change.
std::vector<Advice> TrainingAdvice(const Budget& budget);

// Whether saving so much would make it fit, or where it is tight fit at the high end too. Nothing
// where it fits already, and without a device.
std::optional<bool> IsEnough(const Budget& budget, Bytes saves);

}  // namespace fourpiles
