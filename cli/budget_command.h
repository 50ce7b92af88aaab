#pragma once

// What train, finetune and serve share: their options are the settings of a job.

#include <span>

#include "cli/command.h"
#include "plan/settings.h"

namespace fourpiles::cli {

// MODEL, --job, --explain, --markdown, and the settings of that kind of job.
std::span<const Option> BudgetOptions(JobKind kind);

// The settings of the job file, overridden by those typed.
Result<Settings> SettingsFrom(JobKind kind, const Arguments& arguments);
// The error of a command without MODEL.
tl::unexpected<Error> MissingModel();

// Reads the job, solves it where asked, and words the budget. Exit status 1 when it does not fit or
// nothing was found.
Result<Answer> AnswerBudget(JobKind kind, const Arguments& arguments);

}  // namespace fourpiles::cli
