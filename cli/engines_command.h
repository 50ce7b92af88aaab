#pragma once

// serve --engine all: the engines side by side.

#include "cli/command.h"
#include "plan/settings.h"
#include "report/budget.h"

namespace fourpiles::cli {

// Whether the settings ask for every engine.
bool AsksEveryEngine(const Settings& settings);

// Exit status 0 where one engine fits, 1 where none does.
Result<Answer> AnswerEngines(const Arguments& arguments, const Settings& settings);

}  // namespace fourpiles::cli
