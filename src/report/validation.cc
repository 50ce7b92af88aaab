#include "report/validation.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "base/terminal_text.h"
#include "report/columns.h"

namespace fourpiles {
namespace {

std::string Percent(double share) {
  return fmt::format("{:.2f} %", 100 * share);
}

// As many digits as a log prints, without an exponent: "69524783104", "14.958".
std::string Figure(double value) {
  return value == std::floor(value) && std::abs(value) < 1e15 ? fmt::format("{:.0f}", value)
                                                              : fmt::format("{:.6g}", value);
}

// "allocated litgpt" of "allocated Lightning-AI/litgpt": whose repository it is takes much room.
std::string ShortGroup(const std::string& group) {
  const std::size_t space = group.find(' ');
  const std::size_t slash = group.rfind('/');
  const bool has_owner = space != std::string::npos && slash != std::string::npos && slash > space;
  return EscapeForTerminal(has_owner ? group.substr(0, space + 1) + group.substr(slash + 1)
                                     : group);
}

// Groups of one metric stand together, in the order in which it first comes.
std::vector<ValidationSummary> ByMetric(const std::vector<ValidationSummary>& groups) {
  const auto metric = [](const ValidationSummary& group) {
    return group.kind.substr(0, group.kind.find(' '));
  };
  std::vector<ValidationSummary> sorted;
  for (const ValidationSummary& group : groups) {
    const auto last = std::ranges::find(sorted.rbegin(), sorted.rend(), metric(group), metric);
    sorted.insert(last.base() == sorted.begin() ? sorted.end() : last.base(), group);
  }
  return sorted;
}

std::vector<std::string> SummaryRow(const ValidationSummary& summary) {
  std::vector<std::string> row = {ShortGroup(summary.kind), fmt::format("{}", summary.rows),
                                  fmt::format("{}", summary.compared)};
  if (summary.compared != 0) {
    row.insert(row.end(), {fmt::format("{}", summary.exact), Percent(summary.median_absolute_error),
                           fmt::format("{:+.2f} %", 100 * summary.worst),
                           fmt::format("{:.0f} %", 100 * summary.share_within_5_percent),
                           fmt::format("{:.0f} %", 100 * summary.share_underestimated),
                           summary.judged == 0 ? "shown" : fmt::format("{}", summary.off)});
  }
  return row;
}

std::string KindsText(const Validation& validation) {
  std::vector<std::vector<std::string>> rows = {
      {"kind", "rows", "compared", "exact", "median", "worst", "within 5 %", "under", "off"}};
  for (const ValidationSummary& summary : ByMetric(validation.kinds)) {
    rows.push_back(SummaryRow(summary));
  }
  rows.push_back(SummaryRow(validation.judged));
  rows.push_back(SummaryRow(validation.all));
  return InColumns(rows, {.right = {1, 2, 3, 4, 5, 6, 7, 8}});
}

std::string OffText(const Validation& validation) {
  std::vector<std::vector<std::string>> rows = {
      {"off", "kind", "predicted", "measured", "unit", "error"}};
  for (const ValidatedRun& run : validation.rows) {
    if (run.predicted && run.judged && !run.close) {
      rows.push_back({EscapeForTerminal(run.id), ShortGroup(run.group), Figure(*run.predicted),
                      Figure(run.measured), EscapeForTerminal(run.unit),
                      fmt::format("{:+.3f} %", 100 * run.error)});
    }
  }
  return rows.size() == 1 ? "" : "\n" + InColumns(rows, {.right = {2, 3, 5}});
}

// Rows that lack the same thing stand together.
std::string NotExpressibleText(const Validation& validation) {
  std::map<std::string, std::vector<std::string>> ids;
  for (const ValidatedRun& run : validation.rows) {
    if (!run.predicted) {
      ids[run.reason].push_back(run.id);
    }
  }
  std::vector<std::vector<std::string>> rows = {{"not expressible", "rows", ""}};
  for (const auto& [reason, of] : ids) {
    rows.push_back({EscapeForTerminal(reason), fmt::format("{}", of.size()),
                    EscapeForTerminal(of.front()) + (of.size() > 1 ? ", …" : "")});
  }
  return ids.empty() ? "" : "\n" + InColumns(rows, {.right = {1}});
}

Json SummaryJson(const ValidationSummary& summary) {
  Json::Object json = {{"kind", summary.kind}};
  const bool any = summary.compared != 0;
  const auto number = [&](double value) { return any ? Json(value) : Json(nullptr); };
  json.emplace_back("rows", summary.rows);
  json.emplace_back("compared", summary.compared);
  json.emplace_back("exact", summary.exact);
  json.emplace_back("judged", summary.judged);
  json.emplace_back("off", summary.off);
  json.emplace_back("median_absolute_error", number(summary.median_absolute_error));
  json.emplace_back("worst", number(summary.worst));
  json.emplace_back("share_within_5_percent", number(summary.share_within_5_percent));
  json.emplace_back("share_underestimated", number(summary.share_underestimated));
  return json;
}

Json BandJson(const std::optional<PrintedRange>& band) {
  return band ? Json(Json::Object{{"low", band->low}, {"high", band->high}}) : Json(nullptr);
}

Json PublishedJson(const std::vector<NamedFigure>& published) {
  Json::Object json;
  for (const NamedFigure& figure : published) {
    json.emplace_back(figure.name, figure.value);
  }
  return json;
}

Json RowJson(const ValidatedRun& run) {
  const bool compared = run.predicted.has_value();
  return Json::Object{{"id", run.id},
                      {"kind", run.kind},
                      {"group", run.group},
                      {"predicted", compared ? Json(*run.predicted) : Json(nullptr)},
                      {"measured", run.measured},
                      {"unit", run.unit},
                      {"error", compared ? Json(run.error) : Json(nullptr)},
                      {"outcome", compared ? "compared" : "not_expressible"},
                      {"reason", compared ? Json(nullptr) : Json(run.reason)},
                      {"exact", compared ? Json(run.exact) : Json(nullptr)},
                      {"judged", run.judged},
                      {"close", compared ? Json(run.close) : Json(nullptr)},
                      {"band", BandJson(run.band)},
                      {"published", PublishedJson(run.published)}};
}

}  // namespace

std::string ValidationText(const Validation& validation) {
  return KindsText(validation) + OffText(validation) + NotExpressibleText(validation);
}

Json::Object ValidationJson(const Validation& validation) {
  Json::Array rows;
  for (const ValidatedRun& run : validation.rows) {
    rows.push_back(RowJson(run));
  }
  Json::Array kinds;
  for (const ValidationSummary& summary : validation.kinds) {
    kinds.push_back(SummaryJson(summary));
  }
  return {{"rows", std::move(rows)},
          {"kinds", std::move(kinds)},
          {"judged", SummaryJson(validation.judged)},
          {"summary", SummaryJson(validation.all)}};
}

}  // namespace fourpiles
