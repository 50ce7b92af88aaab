// What of weights, moments and gradients is no number, which a step passes on.

#include <fmt/format.h>

#include "audit/findings.h"

namespace fourpiles {
namespace {

void Judge(std::int64_t count, std::int64_t of, std::string_view what, const Threshold& threshold,
           std::vector<AuditFinding>& findings) {
  const double share = of == 0 ? 0 : static_cast<double>(count) / static_cast<double>(of);
  if (share > threshold.value) {
    findings.push_back({.severity = AuditSeverity::kFault,
                        .what = fmt::format("{} of {} {}", count, of, what),
                        .remedy = "take the checkpoint of an earlier step",
                        .value = share,
                        .limit = threshold.value,
                        .threshold = threshold});
  }
}

}  // namespace

std::vector<AuditFinding> FindingsOf(const StepAudit& step, const Thresholds& thresholds) {
  std::vector<AuditFinding> findings;
  if (step.gradients) {
    const GradientFacts& facts = step.gradients->facts;
    Judge(facts.nan, facts.count, "gradients are NaN already", Of(thresholds, ThresholdId::kNan),
          findings);
    Judge(facts.infinite, facts.count, "gradients are infinite already",
          Of(thresholds, ThresholdId::kInfinite), findings);
  }
  if (step.updates && !step.updates->totals.empty()) {
    const UpdateLosses& losses = step.updates->totals.front();
    Judge(
        losses.not_finite, losses.elements,
        "updates are not finite: weights or moments are NaN or infinite, or the step is too large",
        Of(thresholds, ThresholdId::kNan), findings);
  }
  return findings;
}

}  // namespace fourpiles
