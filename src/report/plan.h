#pragma once

// The layouts that a search found, as text on one screen and as JSON (docs/json.md).

#include <string>

#include "base/json.h"
#include "plan/search_layouts.h"
#include "report/budget.h"

namespace fourpiles {

std::string PlanText(const PlanAnswer& answer, const BudgetStyle& style);
Json::Object PlanJson(const PlanAnswer& answer);

// What was looked at, for a person who waits: "5,120 layouts: …".
std::string SearchWords(const SearchCounts& counts);

}  // namespace fourpiles
