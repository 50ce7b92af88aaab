#pragma once

// What a person must look at in an audit, the gravest first.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "audit/audit.h"
#include "audit/step.h"
#include "audit/thresholds.h"

namespace fourpiles {

enum class AuditSeverity {
  kFault,    // do not use the format for this tensor
  kWarning,  // look at it before
  kNote,
};

std::string_view Name(AuditSeverity severity);  // "fault", "warning", "note"

struct AuditFinding {
  AuditSeverity severity = AuditSeverity::kNote;
  std::int32_t tensor = -1;  // of Audit::tensors; -1: of all
  std::int32_t format = -1;  // of Audit::formats; -1: of the values as they are stored
  std::string what = {};     // "12 of 4,096 values (0.29 %) are larger than 448"
  std::string remedy = {};   // one thing to do; may be empty
  double value = 0;          // that passes the limit
  double limit = 0;          // what the threshold comes to for this format
  Threshold threshold = {};
};

// By severity, then in the order of the thresholds, then the one that passes its limit by most. Of
// a tensor in a format at most one each about its range and about its precision.
std::vector<AuditFinding> FindingsOf(const Audit& audit, const Thresholds& thresholds);

// Gradients and updates that are no numbers; of all tensors together.
std::vector<AuditFinding> FindingsOf(const StepAudit& step, const Thresholds& thresholds);

// Sorts findings of several sources as FindingsOf does.
void Rank(std::vector<AuditFinding>& findings);

}  // namespace fourpiles
