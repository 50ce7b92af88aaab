#pragma once

// How a change of a job is typed, and the command line that shows the job with it.

#include <string>
#include <utility>
#include <vector>

#include "plan/job.h"

namespace fourpiles {

// Settings and their new values, in the order they are typed: {{"recipe", "bf16"}, …}.
using SettingChanges = std::vector<std::pair<std::string, std::string>>;

// As --recompute takes it: "none", "every:2".
std::string RecomputeWord(const Recompute& recompute);

// "--micro-batch-size 2 --gradient-accumulation 8"
std::string ChangeAsTyped(const SettingChanges& changes);

// The job's settings as they were typed, those that change in place of the old ones, and what was
// solved for in place of --solve.
Settings SettingsWith(const Job& job, const SettingChanges& changes);

// The command line of those settings, for a POSIX shell: "fourpiles train llama-3.1-8b --device
// h100 --recipe bf16".
std::string CommandWith(const Job& job, const SettingChanges& changes);

}  // namespace fourpiles
