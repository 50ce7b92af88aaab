#pragma once

// What --explain shows besides the answer: tables to check a budget by hand.

#include <string>
#include <vector>

#include "plan/budget.h"
#include "report/budget.h"
#include "step/lines.h"

namespace fourpiles {

struct Table {
  std::string title = {};
  std::vector<std::vector<std::string>> rows = {};  // the first one names the columns
  std::size_t right = 0;                            // the column of numbers
};

// What is alive at the peak, the largest of it; of a training budget with its whole play also what
// one layer keeps for the backward pass, and what each operator keeps.
std::vector<Table> ExplanationTables(const Budget& budget, const BudgetStyle& style);

// Lines as the members of JSON.
Json LinesJson(const std::vector<Line>& lines);

// The members that --explain adds to the JSON.
void AddExplanation(const Budget& budget, Json::Object& json);

}  // namespace fourpiles
