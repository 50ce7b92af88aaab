#include "report/audit_words.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "report/file_text.h"
#include "units/print.h"

namespace fourpiles {
namespace {

std::string Plural(std::int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", PrintGrouped(count), noun, count == 1 ? "" : "s");
}

bool SameKind(const AuditFinding& a, const AuditFinding& b) {
  return a.severity == b.severity && a.threshold.id == b.threshold.id && a.format == b.format;
}

const FormatLosses& InFormat(const TensorAudit& tensor, std::size_t format) {
  return tensor.formats[format];
}

// Names of a few, and how many more.
std::string NamesWords(const std::vector<std::string>& names) {
  constexpr std::size_t kNamed = 3;
  std::vector<std::string> shown;
  shown.reserve(kNamed);
  for (std::size_t i = 0; i < std::min(kNamed, names.size()); ++i) {
    shown.push_back(ShortName(names[i], 40));
  }
  const auto more = static_cast<std::int64_t>(names.size() - shown.size());
  return fmt::format("{}{}", fmt::join(shown, ", "),
                     more == 0 ? "" : fmt::format(" and {} more", PrintGrouped(more)));
}

// Lines for reasons, the same ones together in the order in which they come.
struct Reason {
  std::string why;
  std::vector<std::string> names = {};
};

void AddReason(std::vector<Reason>& reasons, const std::string& why, const std::string& name) {
  auto found = std::ranges::find(reasons, why, &Reason::why);
  if (found == reasons.end()) {
    found = reasons.insert(reasons.end(), Reason{.why = why});
  }
  found->names.push_back(name);
}

void AddLines(std::vector<std::string>& lines, const std::vector<Reason>& reasons,
              std::string_view what) {
  for (const Reason& reason : reasons) {
    lines.push_back(fmt::format("{} {}: {} ({})",
                                Plural(static_cast<std::int64_t>(reason.names.size()), "tensor"),
                                what, Shown(reason.why, 200), NamesWords(reason.names)));
  }
}

}  // namespace

bool HasValues(const AuditReport& report) {
  return !report.audit.formats.empty() || !report.against.empty();
}

std::vector<FindingGroup> GroupsOf(const std::vector<AuditFinding>& findings, bool all) {
  std::vector<FindingGroup> groups;
  for (const AuditFinding& finding : findings) {
    if (all) {
      groups.push_back({.worst = &finding, .count = 1});
      continue;
    }
    const auto same = std::ranges::find_if(
        groups, [&](const FindingGroup& group) { return SameKind(*group.worst, finding); });
    if (same == groups.end()) {
      groups.push_back({.worst = &finding, .count = 1});
    } else {
      ++same->count;
    }
  }
  return groups;
}

std::string PlaceWords(const AuditReport& report, const FindingGroup& group) {
  if (group.worst->tensor < 0) {
    return "";
  }
  const TensorAudit& tensor = report.audit.tensors[static_cast<std::size_t>(group.worst->tensor)];
  return fmt::format(
      "in {}{}", ShortName(tensor.name, 60),
      group.count == 1 ? "" : fmt::format(" and {}", Plural(group.count - 1, "more tensor")));
}

std::string FormatWords(const AuditReport& report, const AuditFinding& finding) {
  return finding.format < 0 ? "as stored"
                            : report.audit.formats[static_cast<std::size_t>(finding.format)].name;
}

std::string CountsWords(const std::vector<AuditFinding>& findings) {
  std::array<std::int64_t, 3> counts = {};
  for (const AuditFinding& finding : findings) {
    ++counts[static_cast<std::size_t>(finding.severity)];
  }
  std::vector<std::string> words;
  words.reserve(counts.size());
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > 0) {
      words.push_back(Plural(counts[i], Name(static_cast<AuditSeverity>(i))));
    }
  }
  return words.empty() ? "nothing to look at" : fmt::format("{}", fmt::join(words, ", "));
}

std::optional<AuditSeverity> WorstOf(const std::vector<AuditFinding>& findings,
                                     std::int32_t format) {
  const auto found = std::ranges::find(findings, format, &AuditFinding::format);
  return found == findings.end() ? std::nullopt : std::optional(found->severity);
}

std::string VerdictWord(const AuditReport& report, std::int32_t format) {
  const std::optional<AuditSeverity> worst = WorstOf(report.findings, format);
  return worst && *worst != AuditSeverity::kNote ? std::string(Name(*worst)) : "good";
}

std::string HowWords(const AuditReport& report) {
  if (!report.against.empty()) {
    return fmt::format("what {} stores, held against {}", Shown(report.against, 100),
                       Shown(report.path, 100));
  }
  const Overflow overflow = report.audit.overflow;
  const std::string_view past = overflow == Overflow::kSaturate ? "are clipped to it"
                                : overflow == Overflow::kIeee   ? "become infinity or NaN"
                                                                : "become NaN";
  return fmt::format("rounded to nearest-even; values past the largest {} (--overflow {})", past,
                     Name(overflow));
}

std::string SizeWords(const Audit& audit) {
  return fmt::format("{} of {}", Plural(audit.values.count, "value"),
                     Plural(static_cast<std::int64_t>(audit.tensors.size()), "tensor"));
}

std::string SetThresholdsWords(const Thresholds& thresholds) {
  const Thresholds usual = DefaultThresholds();
  std::vector<std::string> set;
  set.reserve(thresholds.size());
  for (const Threshold& row : thresholds) {
    if (row.value != Of(usual, row.id).value) {
      set.push_back(fmt::format("{} {:g}{}", row.name, row.value, row.unit == "dB" ? " dB" : ""));
    }
  }
  return set.empty() ? "" : fmt::format("thresholds set: {}", fmt::join(set, ", "));
}

std::string PercentText(double share) {
  if (std::isnan(share)) {
    return "–";
  }
  return share == 0 ? "0" : fmt::format("{:.3g} %", 100 * share);
}

std::string ShareText(std::int64_t part, std::int64_t of) {
  if (of == 0) {
    return "–";
  }
  return PercentText(static_cast<double>(part) / static_cast<double>(of));
}

std::string SqnrText(const Losses& losses) {
  if (!HasSignal(losses)) {
    return "–";
  }
  const double decibels = SignalToNoise(losses);
  const bool is_zero = std::abs(decibels) < 0.05;  // not "-0.0"
  return std::isnan(decibels)   ? "–"
         : std::isinf(decibels) ? "exact"
                                : fmt::format("{:.1f} dB", is_zero ? 0.0 : decibels);
}

std::string CosineText(const Losses& losses) {
  return HasSignal(losses) ? fmt::format("{:.6g}", Cosine(losses)) : "–";
}

std::string KurtosisText(const ValueFacts& values) {
  return values.kurtosis ? FigureText(*values.kurtosis) : "–";
}

std::string FigureText(double value) {
  return fmt::format("{:.4g}", value);
}

std::int64_t FiniteOf(const ValueFacts& values) {
  return values.count - values.nan - values.infinite;
}

std::int64_t NonzeroOf(const ValueFacts& values) {
  return FiniteOf(values) - values.zero;
}

std::int64_t TensorsIn(const Audit& audit, std::size_t format) {
  return std::ranges::count_if(audit.tensors, [&](const TensorAudit& tensor) {
    return InFormat(tensor, format).not_possible.empty();
  });
}

ValueFacts ValuesIn(const Audit& audit, std::size_t format) {
  ValueFacts all;
  for (const TensorAudit& tensor : audit.tensors) {
    if (!tensor.is_repeated && InFormat(tensor, format).not_possible.empty()) {
      all.count += tensor.values.count;
      all.nan += tensor.values.nan;
      all.infinite += tensor.values.infinite;
      all.zero += tensor.values.zero;
    }
  }
  return all;
}

const TensorAudit* WorstTensor(const Audit& audit, std::size_t format) {
  const std::int32_t worst = audit.worst_tensors[format];
  return worst < 0 ? nullptr : &audit.tensors[static_cast<std::size_t>(worst)];
}

std::vector<std::string> LeftOutWords(const AuditReport& report) {
  const Audit& audit = report.audit;
  std::vector<std::string> lines;
  for (std::size_t format = 0; report.against.empty() && format < audit.formats.size(); ++format) {
    std::vector<Reason> reasons;
    for (const TensorAudit& tensor : audit.tensors) {
      const std::string& why = InFormat(tensor, format).not_possible;
      if (!why.empty()) {
        AddReason(reasons, why, tensor.name);
      }
    }
    AddLines(lines, reasons, "cannot be in " + audit.formats[format].name);
  }
  std::vector<Reason> reasons;
  for (const SkippedTensor& skipped : audit.skipped) {
    AddReason(reasons, skipped.why, skipped.name);
  }
  AddLines(lines, reasons, "left out");
  if (report.optimizer_tensors > 0) {
    lines.push_back(fmt::format("{} of the optimizer left out; --filter \"*\" takes all",
                                Plural(report.optimizer_tensors, "tensor")));
  }
  for (const auto& [names, where] :
       {std::pair(&report.only_first, &report.path), {&report.only_second, &report.against}}) {
    if (!names->empty()) {
      lines.push_back(fmt::format("{} only in {} ({})",
                                  Plural(static_cast<std::int64_t>(names->size()), "tensor"),
                                  Shown(*where, 100), NamesWords(*names)));
    }
  }
  return lines;
}

}  // namespace fourpiles
