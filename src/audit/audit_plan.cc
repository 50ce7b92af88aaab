#include "audit/audit_plan.h"

#include <algorithm>

#include "audit/code_losses.h"

namespace fourpiles {

const CodeTable& AuditPlan::TableOf(const NumberFormat& format) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(
      tables_, [&](const auto& table) { return table->format.name == format.name; });
  if (found != tables_.end()) {
    return **found;
  }
  auto table = std::make_unique<CodeTable>();
  table->format = format;
  table->values = ValuesOfCodes(format);
  tables_.push_back(std::move(table));
  return *tables_.back();
}

std::unique_ptr<CodeCounts> AuditPlan::TakeCounts() {
  const std::lock_guard lock(mutex_);
  if (free_counts_.empty()) {
    return std::make_unique<CodeCounts>();
  }
  std::unique_ptr<CodeCounts> counts = std::move(free_counts_.back());
  free_counts_.pop_back();
  return counts;
}

void AuditPlan::GiveBack(std::unique_ptr<CodeCounts> counts) {
  const std::lock_guard lock(mutex_);
  free_counts_.push_back(std::move(counts));
}

}  // namespace fourpiles
