#include "cli/engines_command.h"

#include <algorithm>

#include "base/try.h"
#include "cli/command_line.h"
#include "plan/engine_comparison.h"
#include "report/engine_comparison.h"

namespace fourpiles::cli {
namespace {

// Of all engines, each once.
std::vector<std::string> WarningsOf(const EngineComparison& comparison) {
  std::vector<std::string> warnings;
  for (const EngineAnswer& answer : comparison.answers) {
    if (!answer.budget) {
      continue;
    }
    for (const std::string& warning : answer.budget->warnings) {
      if (std::ranges::find(warnings, warning) == warnings.end()) {
        warnings.push_back(warning);
      }
    }
  }
  return warnings;
}

}  // namespace

bool AsksEveryEngine(const Settings& settings) {
  const auto engine = settings.find("engine");
  return engine != settings.end() && engine->second.text == kEveryEngine;
}

Result<Answer> AnswerEngines(const Arguments& arguments, const Settings& settings) {
  if (arguments.Has("--requests")) {
    return WrongUsage({.where = "--requests",
                       .found = "not with every engine at once",
                       .expected = "expected --engine with one of them",
                       .hint = "ask engine by engine"});
  }
  TRY(const EngineComparison comparison,
      CompareEngines(settings.find("model")->second.text, settings));
  const BudgetStyle style = {.unit = UnitOf(arguments), .explain = arguments.Has("--explain")};
  const bool one = std::ranges::any_of(comparison.answers, [](const EngineAnswer& answer) {
    return answer.budget && IsYes(*answer.budget);
  });
  return Answer{.text = arguments.Has("--markdown") ? EngineComparisonMarkdown(comparison, style)
                                                    : EngineComparisonText(comparison, style),
                .json = EngineComparisonJson(comparison, style),
                .warnings = WarningsOf(comparison),
                .exit_status = one ? 0 : 1};
}

}  // namespace fourpiles::cli
