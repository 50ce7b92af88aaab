#pragma once

// What the text and the Markdown of an audit have in common.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/audit.h"

namespace fourpiles {

// Whether values were looked at, not the training step alone.
bool HasValues(const AuditReport& report);

// Findings of one kind in one format: the worst, and how many tensors have one.
struct FindingGroup {
  const AuditFinding* worst = nullptr;
  std::int64_t count = 0;
};
// In the order of the findings, which must outlive them; `all`: each for itself.
std::vector<FindingGroup> GroupsOf(const std::vector<AuditFinding>& findings, bool all);

// "in model.embed.weight and 3 more tensors"; empty where it is of no tensor.
std::string PlaceWords(const AuditReport& report, const FindingGroup& group);
// The name of its format; "as stored" where it is of none.
std::string FormatWords(const AuditReport& report, const AuditFinding& finding);

// "3 faults, 1 warning"; "nothing to look at".
std::string CountsWords(const std::vector<AuditFinding>& findings);

// The gravest finding of a format; nothing: there is none.
std::optional<AuditSeverity> WorstOf(const std::vector<AuditFinding>& findings,
                                     std::int32_t format);
std::string VerdictWord(const AuditReport& report, std::int32_t format);  // "fault", "good"

// "rounded to nearest-even, clipped past the largest value"; of a comparison, what it compares.
std::string HowWords(const AuditReport& report);

// "2,832 values of 6 tensors"
std::string SizeWords(const Audit& audit);

// "thresholds set: sqnr-4-bit 18 dB"; empty where all are as ever.
std::string SetThresholdsWords(const Thresholds& thresholds);

// Shares and errors as percent: "0", "0.29 %", "1e-07 %", "–" where there is nothing to count.
std::string ShareText(std::int64_t part, std::int64_t of);
std::string PercentText(double share);
// Of what a format loses: "31.5 dB", "exact", "–" where there is nothing but zeros.
std::string SqnrText(const Losses& losses);
std::string CosineText(const Losses& losses);
std::string FigureText(double value);  // four digits
std::string KurtosisText(const ValueFacts& values);

std::int64_t FiniteOf(const ValueFacts& values);
std::int64_t NonzeroOf(const ValueFacts& values);

// Of how many tensors a format has figures.
std::int64_t TensorsIn(const Audit& audit, std::size_t format);
// Their values: all that are in that format.
ValueFacts ValuesIn(const Audit& audit, std::size_t format);

// Where the largest relative error of a format is; nullptr: there is none.
const TensorAudit* WorstTensor(const Audit& audit, std::size_t format);

// Why tensors have no figures: "3 tensors cannot be in q4_0: rows of 100 values, …, as a.weight".
std::vector<std::string> LeftOutWords(const AuditReport& report);

}  // namespace fourpiles
