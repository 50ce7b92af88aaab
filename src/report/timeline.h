#pragma once

// The timeline of a play as a table to plot: one row a moment (docs/json.md).

#include <string>

#include "base/json.h"
#include "step/tape.h"

namespace fourpiles {

// A header, then the rows: moment,name,kernel,bytes, then the piles.
std::string TimelineCsv(const Tape& tape);
Json::Object TimelineJson(const Tape& tape);

}  // namespace fourpiles
