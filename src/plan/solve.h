#pragma once

// Finds the largest batch, sequence, concurrency or context that fits, or the fewest devices.
// Memory only grows with the first four and only falls with devices, so a search by halves is
// enough.

#include "plan/budget.h"

namespace fourpiles {

// The job with that value of the unknown.
Job WithValue(Job job, Unknown unknown, std::int64_t value);

// The best value that fits the job's device, if any. Error: the shapes that the unknown scales are
// not known.
Result<std::optional<std::int64_t>> Solve(const Job& job, Unknown unknown);

// The answer to a job. With job.solve, the budget of the largest value that fits, or the fewest
// devices; where none fits, of the value 1, or of the most devices that are tried.
Result<Budget> BudgetOf(const Job& job);

}  // namespace fourpiles
