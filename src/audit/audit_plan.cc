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
  table->rounded.resize(formats_.size());
  for (std::size_t i = 0; i < formats_.size(); ++i) {
    if (std::holds_alternative<NumberFormat>(formats_[i].format) && !formats_[i].scaled) {
      table->rounded[i] = RoundedValues(table->values, WayOf(formats_[i], overflow_, 0));
    }
  }
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
