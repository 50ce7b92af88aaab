// An audit for a pull request: the verdict, what to look at, and one table.

#include <algorithm>

#include <fmt/format.h>

#include "report/audit_words.h"
#include "report/file_text.h"
#include "report/markdown.h"
#include "report/step_audit.h"
#include "units/print.h"

namespace fourpiles {
namespace {

constexpr std::size_t kMostFindings = 10;

// Names from files stand as code; what would end it is replaced.
std::string Code(std::string_view text) {
  std::string code = Shown(text, 100);
  std::ranges::replace(code, '`', '\'');
  return "`" + code + "`";
}

std::string VerdictLine(const AuditReport& report) {
  const bool fault =
      !report.findings.empty() && report.findings.front().severity == AuditSeverity::kFault;
  const std::string counts = CountsWords(report.findings);
  return fmt::format("**{}: {}**\n\n",
                     !fault                   ? "No fault"
                     : !HasValues(report)     ? "Do not train on from here"
                     : report.against.empty() ? "Do not convert as it is"
                                              : "Do not use the conversion",
                     counts);
}

std::string FindingsList(const AuditReport& report) {
  std::string text;
  const std::vector<FindingGroup> groups = GroupsOf(report.findings, false);
  const std::size_t shown = std::min(groups.size(), kMostFindings);
  for (std::size_t i = 0; i < shown; ++i) {
    const AuditFinding& finding = *groups[i].worst;
    const std::string format = FormatWords(report, finding);
    text += fmt::format("- {}, {}: {}", Name(finding.severity), format, finding.what);
    if (finding.tensor >= 0) {
      const auto tensor = static_cast<std::size_t>(finding.tensor);
      text += " in " + Code(report.audit.tensors[tensor].name);
    }
    text +=
        groups[i].count == 1 ? "" : fmt::format(" and {} more", PrintGrouped(groups[i].count - 1));
    text += finding.remedy.empty() ? "\n" : "; " + finding.remedy + "\n";
  }
  if (shown < groups.size()) {
    text += fmt::format("- … and {} more\n", groups.size() - shown);
  }
  return text.empty() ? "" : text + "\n";
}

std::string FormatsTable(const AuditReport& report) {
  const Audit& audit = report.audit;
  std::vector<std::vector<std::string>> rows = {
      {"format", "verdict", "clipped", "to zero", "SQNR", "error: mean", "99 %", "worst", "where"}};
  for (std::size_t i = 0; i < audit.formats.size(); ++i) {
    const Losses& losses = audit.totals[i].losses;
    const ValueFacts values = ValuesIn(audit, i);
    const TensorAudit* const worst = WorstTensor(audit, i);
    const bool some = losses.compared > 0;
    rows.push_back(
        {Code(audit.formats[i].name), VerdictWord(report, static_cast<std::int32_t>(i)),
         ShareText(losses.saturated, FiniteOf(values)),
         ShareText(losses.underflow, NonzeroOf(values)), SqnrText(losses),
         some ? PercentText(MeanRelativeError(losses)) : "–",
         some ? PercentText(losses.relative_error_p99.value_or(0)) : "–",
         some ? PercentText(losses.largest_relative_error) : "–",
         worst == nullptr ? "" : fmt::format("{} [{}]", Code(worst->name), losses.largest_at)});
  }
  return rows.size() == 1 ? "" : MarkdownRows(rows, {2, 3, 4, 5, 6, 7}) + "\n";
}

std::string SetThresholds(const AuditReport& report) {
  const std::string set = SetThresholdsWords(report.thresholds);
  return set.empty() ? "" : fmt::format("\n{}.\n", set);
}

std::string ValuesMarkdown(const AuditReport& report) {
  const Audit& audit = report.audit;
  std::string text = VerdictLine(report) + FindingsList(report) + FormatsTable(report);
  text += fmt::format("{}: {}; {}.\n", Code(report.path), SizeWords(audit), HowWords(report));
  text += SetThresholds(report);
  for (const std::string& line : LeftOutWords(report)) {
    text += fmt::format("\n{}.\n", line);
  }
  return text;
}

}  // namespace

std::string AuditMarkdown(const AuditReport& report) {
  std::string text = HasValues(report)         ? ValuesMarkdown(report)
                     : report.findings.empty() ? ""
                                               : VerdictLine(report) + FindingsList(report);
  if (report.step) {
    text += fmt::format("{}Training step of {}:\n\n{}", HasValues(report) ? "\n" : "",
                        Code(report.path), StepMarkdown(*report.step));
    text += HasValues(report) ? "" : SetThresholds(report);
  }
  return text;
}

}  // namespace fourpiles
