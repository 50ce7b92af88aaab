#pragma once

// The play of the lower bound, which looks at no operator; and what every play begins and ends
// with.

#include "step/memory.h"
#include "step/play.h"

namespace fourpiles {

// Of every numbered layer its output is kept, and nothing else is counted: the least that any
// implementation keeps. Error: sizes past 2^53.
Result<Tape> PlayLowerBound(const Part& part);

// A tape on which nothing has run yet.
Tape NewTape(const Part& part);

// The tape, complete. Error: a size or a sum past 2^53 bytes.
Result<Tape> Completed(Tape tape, Memory& memory);

}  // namespace fourpiles
