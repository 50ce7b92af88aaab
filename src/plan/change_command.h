#pragma once

// How a change of a job is typed, and the command line that shows the job with it.

#include <string>

#include "plan/job.h"

namespace fourpiles {

// "--micro-batch-size 2 --gradient-accumulation 8", the options that name the change first.
std::string ChangeAsTyped(const Settings& changes);

// The job's settings as they were typed, those that change in place of the old ones, and what was
// solved for in place of --solve: "fourpiles train llama-3.1-8b --device h100 --recipe bf16". For a
// POSIX shell.
std::string CommandWith(const Job& job, const Settings& changes);

}  // namespace fourpiles
