#pragma once

// What a training step loses, as text, JSON, CSV and Markdown.

#include <string>

#include "audit/step.h"
#include "base/json.h"

namespace fourpiles {

// The answers first, then the figures; `all`: of every tensor.
std::string StepText(const StepAudit& step, bool all);
Json StepJson(const StepAudit& step);
// A line for each tensor in each format: its updates, and its gradients without a loss scale.
std::string StepCsv(const StepAudit& step);
std::string StepMarkdown(const StepAudit& step);

}  // namespace fourpiles
