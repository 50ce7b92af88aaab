#pragma once

// Single changes of a job that lower what its worst device holds, what each saves, and what it
// costs. A change is told as it is typed.

#include <vector>

#include "plan/budget.h"

namespace fourpiles {

// Other formats of the weights and of the cache that the engine has, largest saving first.
std::vector<Advice> ServingAdvice(const Budget& budget);

// Recomputation, kernels, optimizers, recipes, smaller batches, ZeRO, adapters, coded bases and
// offloading, largest saving first; each is read and played as its command would be. Nothing where
// the job fits: there is nothing to change.
std::vector<Advice> TrainingAdvice(const Budget& budget);

}  // namespace fourpiles
