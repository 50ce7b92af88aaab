#include "plan/validate.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/checked.h"
#include "base/json.h"
#include "base/nearest_name.h"
#include "base/try.h"
#include "plan/validate_fields.h"

namespace fourpiles {
namespace {

constexpr double kUnsureError = 0.01;  // rows of medium and low confidence
constexpr double kBandError = 0.08;
constexpr double kGoodError = 0.05;

// Bytes of a unit; nothing for what is no amount of memory.
std::optional<double> BytesOfUnit(std::string_view unit) {
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"bytes", 1},       {"B", 1},      {"kB", 1e3},         {"KB", 1e3},
      {"MB", 1e6},        {"GB", 1e9},   {"TB", 1e12},        {"KiB", 1024.0},
      {"MiB", 1048576.0}, {"GiB", kGib}, {"TiB", 1024 * kGib}};
  for (const auto& [name, bytes] : kUnits) {
    if (name == unit) {
      return bytes;
    }
  }
  return std::nullopt;
}

// What one of the prediction's unit is in the row's; nothing where they do not compare.
std::optional<double> Factor(std::string_view from, std::string_view to) {
  if (from == to) {
    return 1.0;
  }
  const auto a = BytesOfUnit(from);
  const auto b = BytesOfUnit(to);
  return a && b ? std::optional(*a / *b) : std::nullopt;
}

struct Judgement {
  double measured = 0;
  Prediction prediction = {};  // in the row's unit
  Closeness closeness = Closeness::kShown;
  bool unsure = false;  // confidence medium or low
};

bool ExactAtPrint(const Judgement& judgement) {
  const double value = judgement.prediction.value;
  const double slack = 1e-9 * std::abs(value);
  return std::abs(value - judgement.measured) <= HalfUnit(judgement.measured, 0) + slack;
}

bool WithinBand(const Judgement& judgement) {
  const auto& band = judgement.prediction.band;
  const double half = HalfUnit(judgement.measured, 0);
  return band && judgement.measured + half >= band->low && judgement.measured - half <= band->high;
}

bool IsClose(const Judgement& judgement) {
  const double error = std::abs(RelativeError(judgement.prediction.value, judgement.measured));
  switch (judgement.closeness) {
    case Closeness::kShown:
      return true;
    case Closeness::kBand:
      return error <= kBandError;
    case Closeness::kInBand:
      return WithinBand(judgement);
    case Closeness::kWithinPrint:
    case Closeness::kAsPrinted:
      break;
  }
  return ExactAtPrint(judgement) || (judgement.unsure && error <= kUnsureError) ||
         (judgement.closeness == Closeness::kWithinPrint && WithinBand(judgement));
}

const RunKind* FindKind(std::span<const RunKind> kinds, std::string_view name) {
  const auto kind = std::ranges::find(kinds, name, &RunKind::kind);
  return kind == kinds.end() ? nullptr : &*kind;
}

std::string UnknownKind(std::span<const RunKind> kinds, const std::string& kind) {
  std::vector<std::string_view> names;
  for (const RunKind& known : kinds) {
    names.push_back(known.kind);
  }
  const std::string nearest = DidYouMean(kind, names);
  return fmt::format("unknown kind \"{}\"{}", kind, nearest.empty() ? "" : ", " + nearest);
}

Result<Prediction> InUnitOf(Prediction prediction, const std::string& unit) {
  const auto factor = Factor(prediction.unit, unit);
  if (!factor) {
    return NotExpressible(
        fmt::format("the figure is in \"{}\", the prediction in {}", unit, prediction.unit));
  }
  prediction.value *= *factor;
  for (NamedFigure& figure : prediction.published) {
    figure.value *= *factor;
  }
  if (prediction.band) {
    prediction.band = PrintedRange{prediction.band->low * *factor, prediction.band->high * *factor};
  }
  return prediction;
}

Result<Prediction> Predicted(std::span<const RunKind> kinds, const Fields& fields,
                             const ValidatedRun& run) {
  const RunKind* kind = FindKind(kinds, run.kind);
  if (kind == nullptr) {
    return NotExpressible(UnknownKind(kinds, run.kind));
  }
  TRY(Prediction prediction, kind->predict(fields));
  if (!(std::abs(prediction.value) < static_cast<double>(kLargestAmount))) {
    return NotExpressible("the prediction passes 2^53, or divides by zero");
  }
  const std::string unit = prediction.means_unit.empty() ? run.unit : prediction.means_unit;
  return InUnitOf(std::move(prediction), unit);
}

// Who measured it: "Lightning-AI/litgpt" of "repo Lightning-AI/litgpt
// tutorials/resource-tables.md".
std::string SourceName(std::string_view source) {
  for (const std::string_view prefix : {"repo ", "github "}) {
    if (source.starts_with(prefix)) {
      source.remove_prefix(prefix.size());
    }
  }
  return std::string(source.substr(0, source.find_first_of(" ,;(")));
}

// The row without its prediction. Error: it is no record of a run.
Result<ValidatedRun> RunOf(const Fields& fields) {
  TRY(const double measured, fields.Number("value"));
  ValidatedRun run = {.id = RunText(fields, "id"),
                      .kind = RunText(fields, "kind"),
                      .source = RunText(fields, "source"),
                      .metric = RunText(fields, "metric"),
                      .measures = RunText(fields, "measures"),
                      .confidence = RunText(fields, "confidence"),
                      .unit = RunText(fields, "unit"),
                      .measured = measured};
  run.measured_by = SourceName(run.source);
  run.group = run.metric.empty() ? run.kind : fmt::format("{} {}", run.metric, run.measured_by);
  // A log's "GB" that is 2^30 bytes.
  if (const std::string meant = RunText(fields, "unit_is"); !meant.empty()) {
    run.unit = meant;
  }
  return run;
}

void Compare(ValidatedRun& run, const Fields& fields, std::span<const RunKind> kinds,
             const ValidationChoice& choice) {
  const RunKind* kind = FindKind(kinds, run.kind);
  run.judged = kind != nullptr && kind->closeness != Closeness::kShown;
  const auto prediction = Predicted(kinds, fields, run);
  if (!prediction) {
    const ErrorText& text = prediction.error().text;
    run.reason = text.where.empty() ? text.found : text.where + ": " + text.found;
    return;
  }
  const Closeness closeness = prediction->closeness.value_or(kind->closeness);
  run.judged = closeness != Closeness::kShown;
  run.unit = prediction->means_unit.empty() ? run.unit : prediction->means_unit;
  run.band = prediction->band;
  run.published = prediction->published;
  const Judgement judgement = {.measured = run.measured,
                               .prediction = *prediction,
                               .closeness = closeness,
                               .unsure = run.confidence == "medium" || run.confidence == "low"};
  run.predicted = prediction->value;
  run.error = RelativeError(prediction->value, run.measured);
  run.exact = ExactAtPrint(judgement);
  run.in_band = WithinBand(judgement);
  run.close = choice.tolerance && run.judged ? std::abs(run.error) <= *choice.tolerance
                                             : IsClose(judgement);
}

void Count(ValidationSummary& summary, const ValidatedRun& run) {
  summary.worst = std::abs(run.error) > std::abs(summary.worst) ? run.error : summary.worst;
  summary.exact += run.exact ? 1 : 0;
  summary.off += run.judged && !run.close ? 1 : 0;
  summary.share_within_5_percent += std::abs(run.error) <= kGoodError ? 1 : 0;
  summary.share_underestimated += run.error < 0 && !run.exact ? 1 : 0;
}

template <class Belongs>
ValidationSummary SummaryOf(std::span<const ValidatedRun> rows, const std::string& name,
                            Belongs belongs) {
  ValidationSummary summary = {.kind = name};
  std::vector<double> sizes;
  for (const ValidatedRun& run : rows) {
    if (!belongs(run)) {
      continue;
    }
    ++summary.rows;
    summary.judged += run.judged ? 1 : 0;
    if (run.predicted) {
      sizes.push_back(std::abs(run.error));
      Count(summary, run);
    }
  }
  summary.compared = static_cast<std::int64_t>(sizes.size());
  if (!sizes.empty()) {
    summary.share_within_5_percent /= static_cast<double>(sizes.size());
    summary.share_underestimated /= static_cast<double>(sizes.size());
  }
  summary.median_absolute_error = MedianOf(std::move(sizes));
  return summary;
}

void AddLine(Validation& validation, std::string_view line, const std::string& where,
             std::span<const RunKind> kinds, const ValidationChoice& choice) {
  const auto json = ReadJson(line, where);
  if (!json) {
    validation.faults.push_back(json.error().text);
    return;
  }
  const auto fields = Fields::Of(*json, where);
  if (!fields) {
    validation.faults.push_back(fields.error().text);
    return;
  }
  auto run = RunOf(*fields);
  if (!run) {
    validation.faults.push_back(run.error().text);
    return;
  }
  if (!choice.kinds.empty() && std::ranges::find(choice.kinds, run->kind) == choice.kinds.end()) {
    return;
  }
  Compare(*run, *fields, kinds, choice);
  validation.rows.push_back(*std::move(run));
}

}  // namespace

double MedianOf(std::vector<double> values) {
  if (values.empty()) {
    return 0;
  }
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double RelativeError(double predicted, double measured) {
  if (measured == 0) {
    return predicted == 0 ? 0 : std::copysign(1.0, predicted);
  }
  return (predicted - measured) / std::abs(measured);
}

Validation Validate(std::string_view text, std::string_view where, std::span<const RunKind> kinds,
                    const ValidationChoice& choice) {
  Validation validation;
  for (std::int64_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    if (line.find_first_not_of(" \t\r") != std::string_view::npos) {
      AddLine(validation, line, fmt::format("{}: line {}", where, number), kinds, choice);
    }
  }
  std::vector<std::string> names;
  for (const ValidatedRun& run : validation.rows) {
    if (std::ranges::find(names, run.group) == names.end()) {
      names.push_back(run.group);
      validation.kinds.push_back(
          SummaryOf(validation.rows, run.group,
                    [&](const ValidatedRun& row) { return row.group == run.group; }));
    }
  }
  validation.judged =
      SummaryOf(validation.rows, "judged", [](const ValidatedRun& row) { return row.judged; });
  validation.all = SummaryOf(validation.rows, "all", [](const ValidatedRun&) { return true; });
  return validation;
}

}  // namespace fourpiles
