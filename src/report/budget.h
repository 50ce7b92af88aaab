#pragma once

// A budget as text on one screen, as JSON (docs/json.md) and as Markdown.

#include <string>

#include "base/json.h"
#include "plan/budget.h"
#include "units/print.h"

namespace fourpiles {

struct BudgetStyle {
  ByteUnit unit = ByteUnit::kGib;
  bool explain = false;  // tables to check by hand; wants Budget::whole
};

std::string BudgetText(const Budget& budget, const BudgetStyle& style);
std::string BudgetMarkdown(const Budget& budget, const BudgetStyle& style);
Json::Object BudgetJson(const Budget& budget, const BudgetStyle& style);

}  // namespace fourpiles
