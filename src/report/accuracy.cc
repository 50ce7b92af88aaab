#include "report/accuracy.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "base/terminal_text.h"
#include "report/markdown.h"

namespace fourpiles {
namespace {

using Rows = std::vector<std::vector<std::string>>;

constexpr std::string_view kHead =
    "# How near predictions come to measured runs\n\n"
    "Printed by `fourpiles validate RUNS.jsonl --markdown` ([RUNS.md](RUNS.md) has the rows and "
    "how "
    "they are judged); not written by hand.\n"
    "An error is predicted ÷ measured − 1. Median and 90 % are of the sizes of the errors: nine of "
    "ten are not larger. \"Worst under\" is the prediction that is the most too small.\n"
    "\"Inside band\" is the share of measured figures between the low and the high end, \"high ÷ "
    "low\" "
    "how wide the bands are (median).\n";

std::string Text(std::string_view text) {
  return EscapeForTerminal(text);
}

std::string Percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

std::string Signed(double error) {
  return fmt::format("{:+.1f} %", 100 * error);
}

// Four digits are more than most were measured with.
std::string Figure(double value) {
  const bool whole = value == std::floor(value) && std::abs(value) < 1e15;
  return whole ? fmt::format("{:.0f}", value) : fmt::format("{:.5g}", value);
}

void AddStatistics(Rows& rows, const std::string& name, const ErrorStatistics& of) {
  std::vector<std::string> row = {name, fmt::format("{}", of.rows), fmt::format("{}", of.compared)};
  if (of.compared > 0) {
    row.insert(row.end(),
               {Percent(of.median), Percent(of.percentile_90), Percent(of.share_within_5),
                of.worst_under < 0 ? Signed(of.worst_under) : "none",
                of.with_band > 0 ? Percent(of.share_inside) : "",
                of.with_band > 0 ? fmt::format("{:.2f}", of.median_high_per_low) : ""});
  }
  row.resize(rows.front().size());
  rows.push_back(std::move(row));
}

std::string ClassTable(const AccuracyClass& of) {
  Rows rows = {{"measured by", "rows", "compared", "median", "90 %", "within 5 %", "worst under",
                "inside band", "high ÷ low"}};
  for (const SourceAccuracy& source : of.sources) {
    AddStatistics(rows, Text(source.source), source.statistics);
  }
  if (of.sources.size() > 1) {
    AddStatistics(rows, "all", of.all);
  }
  return fmt::format("\n### {}\n\n{}", of.title, MarkdownRows(rows, {1, 2, 3, 4, 5, 6, 7, 8}));
}

// "5.0 % / 40.1 %": ours, then theirs.
std::string Beside(const PlannerAccuracy& of, double ErrorStatistics::*share) {
  return fmt::format("{} / {}", Percent(of.ours.*share), Percent(of.its.*share));
}

std::string PlannersTable(const Accuracy& accuracy) {
  if (accuracy.peaks.compared == 0) {
    return "";
  }
  Rows rows = {{"planner", "rows", "median error: ours / its", "within 5 %", "within 10 %",
                "too small by more than 8 %"}};
  for (const PlannerAccuracy& planner : accuracy.planners) {
    const std::string count = fmt::format("{}", planner.its.compared);
    if (planner.its.compared == 0) {
      rows.push_back({planner.name, count, "", "", "", ""});
    } else {
      rows.push_back({planner.name, count, Beside(planner, &ErrorStatistics::median),
                      Beside(planner, &ErrorStatistics::share_within_5),
                      Beside(planner, &ErrorStatistics::share_within_10),
                      Beside(planner, &ErrorStatistics::share_under_by_8)});
    }
  }
  const ErrorStatistics& ours = accuracy.peaks;
  rows.push_back({"fourpiles alone", fmt::format("{}", ours.compared), Percent(ours.median),
                  Percent(ours.share_within_5), Percent(ours.share_within_10),
                  Percent(ours.share_under_by_8)});
  return fmt::format(
      "\n## Beside other planners\n\n"
      "Of {} judged peaks, those that a planner can express, each by its own published formula "
      "(`src/plan/published_formulas.cc` names them): ours / its. None expresses adapters or "
      "frozen parts; most know no optimizer but Adam.\n\n{}",
      ours.compared, MarkdownRows(rows, {1, 2, 3, 4, 5}));
}

std::string OutcomeOf(const ValidatedRun& run) {
  if (!run.judged) {
    return "shown";
  }
  return run.close ? "close" : "off";
}

std::string RowsTable(const Validation& validation, const AccuracyClass& of) {
  if (of.rows.empty()) {
    return "";
  }
  Rows rows = {{"run", "measured", "predicted", "unit", "error", "band", ""}};
  for (const std::size_t number : of.rows) {
    const ValidatedRun& run = validation.rows[number];
    const std::string band =
        run.band ? fmt::format("{} to {}", Figure(run.band->low), Figure(run.band->high)) : "";
    rows.push_back({Text(run.id), Figure(run.measured), Figure(*run.predicted), Text(run.unit),
                    Signed(run.error), band, OutcomeOf(run)});
  }
  return fmt::format("\n### {}\n\n{}", of.title, MarkdownRows(rows, {1, 2, 4, 5}));
}

// Of lists, in the order in which a key first comes.
struct Counted {
  std::string key;
  std::int64_t rows = 0;
  std::vector<std::string> of = {};
};

void CountInto(std::vector<Counted>& list, const std::string& key, const std::string& of) {
  auto found = std::ranges::find(list, key, &Counted::key);
  if (found == list.end()) {
    found = list.insert(list.end(), Counted{.key = key});
  }
  ++found->rows;
  if (std::ranges::find(found->of, of) == found->of.end()) {
    found->of.push_back(of);
  }
}

std::string NotExpressibleTable(const Validation& validation) {
  std::vector<Counted> reasons;
  for (const ValidatedRun& run : validation.rows) {
    if (!run.predicted) {
      CountInto(reasons, run.reason, run.measured_by.empty() ? run.kind : run.measured_by);
    }
  }
  if (reasons.empty()) {
    return "";
  }
  std::ranges::stable_sort(reasons, std::greater(), &Counted::rows);
  Rows rows = {{"reason", "rows", "measured by"}};
  for (const Counted& reason : reasons) {
    constexpr std::size_t kNamed = 3;
    std::string names;
    for (std::size_t i = 0; i < std::min(reason.of.size(), kNamed); ++i) {
      names += (i == 0 ? "" : ", ") + Text(reason.of[i]);
    }
    rows.push_back({Text(reason.key), fmt::format("{}", reason.rows),
                    names + (reason.of.size() > kNamed ? ", …" : "")});
  }
  return "\n## Not expressible\n\n" + MarkdownRows(rows, {1});
}

// The documents that the compared figures stand in: the source, up to the table in it.
std::string SourcesTable(const Validation& validation) {
  std::vector<Counted> sources;
  for (const ValidatedRun& run : validation.rows) {
    if (run.predicted && !run.source.empty()) {
      const std::string document = run.source.substr(0, run.source.find(" / "));
      CountInto(sources, document.substr(0, document.find_last_not_of(' ') + 1), "");
    }
  }
  if (sources.empty()) {
    return "";
  }
  Rows rows = {{"source", "rows"}};
  for (const Counted& source : sources) {
    rows.push_back({Text(source.key), fmt::format("{}", source.rows)});
  }
  return "\n## Sources\n\nWhere the compared figures were published, as the rows name it.\n\n" +
         MarkdownRows(rows, {1});
}

}  // namespace

std::string AccuracyMarkdown(const Validation& validation, const Accuracy& accuracy) {
  std::string text(kHead);
  text += fmt::format(
      "\n{} rows: {} compared, of which {} are judged and {} are off; {} cannot be expressed.\n",
      validation.all.rows, validation.all.compared,
      std::ranges::count_if(validation.rows,
                            [](const ValidatedRun& run) { return run.predicted && run.judged; }),
      validation.all.off, validation.all.rows - validation.all.compared);
  text += "\n## By what was measured\n";
  for (const AccuracyClass& of : accuracy.classes) {
    text += ClassTable(of);
  }
  text += PlannersTable(accuracy);
  text += "\n## Every compared row\n";
  for (const AccuracyClass& of : accuracy.classes) {
    text += RowsTable(validation, of);
  }
  return text + NotExpressibleTable(validation) + SourcesTable(validation);
}

}  // namespace fourpiles
