#pragma once

// What a format change does to a checkpoint, as text, JSON, comma-separated values and Markdown.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "audit/findings.h"
#include "audit/step.h"
#include "base/json.h"

namespace fourpiles {

// All that an audit has to say: of formats, where there are any, and of a training step. Of a
// comparison of two checkpoints, `audit` has the values of the first, and its formats are the types
// that the second one stores them in.
struct AuditReport {
  std::string path = {};
  std::string against = {};  // the second checkpoint; empty: none
  Audit audit = {};
  std::vector<std::string> only_first = {};   // tensors without a partner in the second …
  std::vector<std::string> only_second = {};  // … and in the first
  std::int64_t optimizer_tensors = 0;         // that were left out, not being weights
  Thresholds thresholds = {};
  std::vector<AuditFinding> findings = {};  // ranked
  std::optional<StepAudit> step = {};
};

struct AuditView {
  bool all = false;  // every tensor, and every finding for itself
};

std::string AuditText(const AuditReport& report, const AuditView& view);
Json::Object AuditJson(const AuditReport& report);
// A line for each tensor in each format.
std::string AuditCsv(const AuditReport& report);
// A summary for a pull request, the verdict first.
std::string AuditMarkdown(const AuditReport& report);

}  // namespace fourpiles
