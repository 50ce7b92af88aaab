#pragma once

// The record of each command, defined in its own file (cmd_round.cc, …).

#include "cli/command.h"

namespace fourpiles::cli {

// NOLINTBEGIN(readability-identifier-naming): constants, which the check takes for variables
extern const Command kFormatsCommand;
extern const Command kRoundCommand;
extern const Command kAccumulateCommand;
extern const Command kScaleCommand;
extern const Command kInspectCommand;
extern const Command kLessonCommand;
extern const Command kValidateCommand;
extern const Command kModelsCommand;
extern const Command kDevicesCommand;
extern const Command kRecipesCommand;
extern const Command kOptimizersCommand;
extern const Command kCompletionsCommand;
extern const Command kManCommand;
// NOLINTEND(readability-identifier-naming)

// Their options stand elsewhere: of the budgets, they are made from the settings of a job.
Command AuditCommand();
Command TrainCommand();
Command FinetuneCommand();
Command ServeCommand();
Command PlanCommand();

}  // namespace fourpiles::cli
