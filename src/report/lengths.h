#pragma once

// Limits of the sequence length: what they cut, what they take, and whether they fit.

#include <string>

#include "base/json.h"
#include "plan/length_report.h"
#include "report/budget.h"

namespace fourpiles {

std::string LengthReportText(const Job& job, const LengthReport& report, const BudgetStyle& style);
std::string LengthReportMarkdown(const Job& job, const LengthReport& report,
                                 const BudgetStyle& style);
Json LengthReportJson(const Job& job, const LengthReport& report);

}  // namespace fourpiles
