// An audit on a screen: what it is of, what a person must look at, the formats side by side, then
// the tensors that lose most.

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "report/audit_words.h"
#include "report/columns.h"
#include "report/file_text.h"
#include "report/step_audit.h"
#include "units/print.h"

namespace fourpiles {
namespace {

using TextRows = std::vector<std::vector<std::string>>;

constexpr std::size_t kMostFindings = 12;  // of one kind each; --all has every one
constexpr std::size_t kWorstTensors = 3;   // of a format
constexpr std::size_t kNameWidth = 34;

std::string SetThresholdsText(const AuditReport& report) {
  const std::string set = SetThresholdsWords(report.thresholds);
  return set.empty() ? "" : set + "\n";
}

std::string HeadText(const AuditReport& report) {
  const Audit& audit = report.audit;
  const ValueFacts& values = audit.values;
  std::string text =
      fmt::format("{}: {}\n{}\n", Shown(report.path, 100), SizeWords(audit), HowWords(report));
  text += SetThresholdsText(report);
  if (values.count == 0) {
    return text;
  }
  text += fmt::format("magnitudes {} to {}, {} binades; {} zero; {} NaN, {} infinite\n",
                      FigureText(values.smallest), FigureText(values.largest),
                      RangeInBinades(values), ShareText(values.zero, values.count),
                      PrintGrouped(values.nan), PrintGrouped(values.infinite));
  text += fmt::format("mean {}, deviation {}, kurtosis {} (3: a normal distribution)\n",
                      FigureText(values.mean), FigureText(values.deviation), KurtosisText(values));
  return text;
}

std::string FindingsText(const AuditReport& report, bool all) {
  const std::vector<FindingGroup> groups = GroupsOf(report.findings, all);
  std::string text = "\n" + CountsWords(report.findings) + "\n";
  const std::size_t shown = all ? groups.size() : std::min(groups.size(), kMostFindings);
  for (std::size_t i = 0; i < shown; ++i) {
    const AuditFinding& finding = *groups[i].worst;
    text += InLines(fmt::format("{}: {}: {}", Name(finding.severity), FormatWords(report, finding),
                                finding.what),
                    "  ");
    const std::string place = PlaceWords(report, groups[i]);
    const std::string more = fmt::format(
        "{}{}{}", place, place.empty() || finding.remedy.empty() ? "" : "; ", finding.remedy);
    text += more.empty() ? "" : InLines(more, "    ");
  }
  if (shown < groups.size()) {
    text += fmt::format("  … and {} more; --all shows them\n", groups.size() - shown);
  }
  return text;
}

std::string RangeTable(const AuditReport& report) {
  TextRows rows = {{"format", "verdict", "overflow", "clipped", "to zero", "subnormal", "changed"}};
  for (std::size_t i = 0; i < report.audit.formats.size(); ++i) {
    const Losses& losses = report.audit.totals[i].losses;
    const ValueFacts values = ValuesIn(report.audit, i);
    const std::int64_t finite = FiniteOf(values);
    rows.push_back({report.audit.formats[i].name,
                    ValuesIn(report.audit, i).count == 0
                        ? "–"
                        : VerdictWord(report, static_cast<std::int32_t>(i)),
                    ShareText(losses.overflow, finite), ShareText(losses.saturated, finite),
                    ShareText(losses.underflow, NonzeroOf(values)),
                    ShareText(losses.subnormal, finite), ShareText(losses.changed, finite)});
  }
  return "\n" + InColumns(rows, {.right = {2, 3, 4, 5, 6}});
}

// Where the worst error is: "fc.weight [12]".
std::string WorstPlace(const AuditReport& report, std::size_t format) {
  const TensorAudit* const tensor = WorstTensor(report.audit, format);
  return tensor == nullptr ? ""
                           : fmt::format("{} [{}]", ShortName(tensor->name, 24),
                                         report.audit.totals[format].losses.largest_at);
}

// The three relative errors.
std::vector<std::string> ErrorCells(const Losses& losses) {
  if (losses.compared == 0) {
    return {"–", "–", "–"};
  }
  return {PercentText(MeanRelativeError(losses)),
          PercentText(losses.relative_error_p99.value_or(std::nan(""))),
          PercentText(losses.largest_relative_error)};
}

std::string ErrorTable(const AuditReport& report) {
  TextRows rows = {{"format", "SQNR", "cosine", "mean error", "99 %", "worst", "where"}};
  for (std::size_t i = 0; i < report.audit.formats.size(); ++i) {
    const Losses& losses = report.audit.totals[i].losses;
    std::vector<std::string> row = {report.audit.formats[i].name, SqnrText(losses),
                                    CosineText(losses)};
    std::ranges::move(ErrorCells(losses), std::back_inserter(row));
    row.push_back(WorstPlace(report, i));
    rows.push_back(std::move(row));
  }
  return "\n" + InColumns(rows, {.right = {1, 2, 3, 4, 5}});
}

std::string ScaleTable(const Audit& audit) {
  TextRows rows = {{"blocks of", "scales", "smallest", "largest", "zero", "blocks lost"}};
  for (std::size_t i = 0; i < audit.formats.size(); ++i) {
    if (const std::optional<ScaleFacts>& scales = audit.totals[i].scales; scales) {
      rows.push_back({audit.formats[i].name, PrintGrouped(scales->scales),
                      FigureText(scales->smallest), FigureText(scales->largest),
                      PrintGrouped(scales->zero), PrintGrouped(scales->lost_blocks)});
    }
  }
  return rows.size() == 1 ? "" : "\n" + InColumns(rows, {.right = {1, 2, 3, 4, 5}});
}

// Tensors that lose something, or all that a format has figures of, the least signal first.
std::vector<const TensorAudit*> WorstFirst(const Audit& audit, std::size_t format, bool all) {
  std::vector<const TensorAudit*> tensors;
  tensors.reserve(audit.tensors.size());
  for (const TensorAudit& tensor : audit.tensors) {
    const FormatLosses& in_format = tensor.formats[format];
    if (in_format.not_possible.empty() && (all || in_format.losses.changed > 0)) {
      tensors.push_back(&tensor);
    }
  }
  std::ranges::stable_sort(tensors, {}, [&](const TensorAudit* tensor) {
    return SignalToNoise(tensor->formats[format].losses);
  });
  return tensors;
}

std::vector<std::string> TensorRow(const TensorAudit& tensor, const std::string& format,
                                   const FormatLosses& in_format) {
  const Losses& losses = in_format.losses;
  return {format,
          ShortName(tensor.name, kNameWidth),
          SqnrText(losses),
          losses.compared == 0 ? "–" : PercentText(losses.relative_error_p99.value_or(0)),
          ShareText(losses.saturated, FiniteOf(tensor.values)),
          ShareText(losses.underflow, NonzeroOf(tensor.values)),
          in_format.fitting_scale ? FigureText(*in_format.fitting_scale) : "–"};
}

std::string TensorTable(const Audit& audit, bool all) {
  TextRows rows = {{"format", all ? "tensor" : "worst tensors", "SQNR", "99 %", "clipped",
                    "to zero", "largest scale"}};
  for (std::size_t format = 0; format < audit.formats.size(); ++format) {
    std::vector<const TensorAudit*> tensors = WorstFirst(audit, format, all);
    tensors.resize(all ? tensors.size() : std::min(tensors.size(), kWorstTensors));
    for (const TensorAudit* const tensor : tensors) {
      rows.push_back(TensorRow(*tensor, tensor == tensors.front() ? audit.formats[format].name : "",
                               tensor->formats[format]));
    }
  }
  return rows.size() == 1 ? "" : "\n" + InColumns(rows, {.right = {2, 3, 4, 5, 6}});
}

// What the values of every tensor are.
std::string ValueTable(const Audit& audit) {
  TextRows rows = {{"tensor", "values", "smallest", "largest", "binades", "kurtosis", "NaN",
                    "infinite", "outliers"}};
  for (const TensorAudit& tensor : audit.tensors) {
    const ValueFacts& values = tensor.values;
    rows.push_back({ShortName(tensor.name, kNameWidth), PrintGrouped(values.count),
                    FigureText(values.smallest), FigureText(values.largest),
                    fmt::format("{}", RangeInBinades(values)), KurtosisText(values),
                    PrintGrouped(values.nan), PrintGrouped(values.infinite),
                    tensor.channels ? fmt::format("{} of {}", tensor.channels->outliers,
                                                  PrintGrouped(tensor.channels->channels))
                                    : "–"});
  }
  return "\n" + InColumns(rows, {.right = {1, 2, 3, 4, 5, 6, 7, 8}});
}

std::string ValuesText(const AuditReport& report, bool all) {
  const Audit& audit = report.audit;
  std::string text = HeadText(report) + FindingsText(report, all);
  if (!audit.formats.empty() && !audit.tensors.empty()) {
    text += RangeTable(report) + ErrorTable(report) + ScaleTable(audit) + TensorTable(audit, all);
  }
  if (all && !audit.tensors.empty()) {
    text += ValueTable(audit);
  }
  const std::vector<std::string> left_out = LeftOutWords(report);
  return left_out.empty() ? text : text + fmt::format("\n{}\n", fmt::join(left_out, "\n"));
}

}  // namespace

std::string AuditText(const AuditReport& report, const AuditView& view) {
  std::string text = HasValues(report) ? ValuesText(report, view.all) : "";
  if (report.step) {
    text +=
        fmt::format("{}training step of {}\n", text.empty() ? "" : "\n", Shown(report.path, 100));
    if (!HasValues(report)) {
      text += SetThresholdsText(report);
      text += report.findings.empty() ? "" : FindingsText(report, view.all);
    }
    text += StepText(*report.step, view.all);
  }
  return text;
}

}  // namespace fourpiles
