#pragma once

// A training run as PyTorch's caching allocator sees it: the requests and releases of a tape, step
// after step.

#include <span>

#include "step/caching_allocator.h"
#include "step/tape.h"

namespace fourpiles {

// The first step has no optimizer states while it runs, the second starts from what it left, and
// the third repeats the second.
inline constexpr int kStepsUntilNothingChanges = 3;

// Libraries ask first, for what they keep; then the model is loaded, tensor by tensor; then come
// steps. The optimizer's states are born in the first one, out of what its backward pass left, so
// that it takes several steps until nothing more is reserved.
//
// Every layer of the tape must be played for itself (PlayWhole), as those that an action stands for
// do not run one after the other.
AllocatorRun AllocatorRunOf(const Tape& tape, std::span<const Bytes> libraries,
                            int steps = kStepsUntilNothingChanges);

}  // namespace fourpiles
