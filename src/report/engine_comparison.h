#pragma once

// Engines side by side as text on one screen, as Markdown and as JSON (docs/json.md).

#include <string>

#include "base/json.h"
#include "plan/engine_comparison.h"
#include "report/budget.h"

namespace fourpiles {

std::string EngineComparisonText(const EngineComparison& comparison, const BudgetStyle& style);
std::string EngineComparisonMarkdown(const EngineComparison& comparison, const BudgetStyle& style);
Json::Object EngineComparisonJson(const EngineComparison& comparison, const BudgetStyle& style);

}  // namespace fourpiles
