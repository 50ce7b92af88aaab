#pragma once

// What the words of `fourpiles audit` ask for.

#include "audit/audit_format.h"
#include "audit/step.h"
#include "audit/thresholds.h"
#include "cli/command.h"

namespace fourpiles::cli {

std::span<const Option> AuditOptionRows();

// Whether the training step is asked for, and whether what a format or another file makes of
// values.
bool AsksForStep(const Arguments& arguments);
bool AsksForValues(const Arguments& arguments);

// Error: options that exclude each other, need another, or ask for nothing.
Result<void> CheckTogether(const Arguments& arguments);

// The formats of --to, each once, and what becomes of values past their largest.
struct AuditTargets {
  std::vector<AuditFormat> formats = {};
  Overflow overflow = Overflow::kSaturate;
};
Result<AuditTargets> AuditTargetsOf(const Arguments& arguments);

// All processors when --threads was not given.
Result<int> ThreadsOf(const Arguments& arguments);
Result<Thresholds> ThresholdsOf(const Arguments& arguments);
// Without filters, threads and progress.
Result<StepOptions> StepOptionsOf(const Arguments& arguments);

}  // namespace fourpiles::cli
