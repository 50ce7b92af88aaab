#pragma once

// Plays the part of one rank: its actions run in order on shapes alone, and every allocation is
// born and dies at a moment.

#include "step/rule.h"
#include "step/schedule.h"
#include "step/tape.h"

namespace fourpiles {

// One of the distinct roles in a job: all that a rank holds and does.
struct Part {
  std::string rank = {};   // "rank 0", "ranks 0 to 62"
  std::int64_t ranks = 1;  // how many are alike
  Network network = {};
  std::vector<Storage> resident = {};  // there before the first action and after the last
  std::vector<Action> schedule = {};
  OperatorShapes shapes = {};
  // Gradients that have no buffer of their own are born in backward, in this format.
  std::optional<NumberFormat> born_gradients = {};
};

// Error: sizes whose product passes 2^53.
Result<Tape> Play(const Part& part, const Profile& profile);

}  // namespace fourpiles
