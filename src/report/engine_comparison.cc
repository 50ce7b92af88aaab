// Engines as columns, a figure a row; then what they differ in, and the engines that cannot do it.

#include "report/engine_comparison.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error_text.h"
#include "base/terminal_text.h"
#include "report/budget_words.h"
#include "report/columns.h"
#include "report/explanation.h"
#include "report/markdown.h"
#include "units/print.h"

namespace fourpiles {
namespace {

// Of an engine that answers; empty: it has no such figure.
struct Figure {
  std::string_view name;
  std::string (*of)(const EngineAnswer& answer, const BudgetStyle& style);
};

std::string OfPile(const EngineAnswer& answer, Pile pile, const BudgetStyle& style) {
  return PileAmount(*answer.budget, pile, style);
}

std::string CacheFormat(const ServingJob& serving) {
  return serving.key_format == serving.value_format
             ? std::string(serving.key_format->name)
             : fmt::format("{}, {}", serving.key_format->name, serving.value_format->name);
}

std::string CountOrNone(const std::optional<std::int64_t>& count) {
  return count ? PrintGrouped(*count) : "";
}

constexpr Figure kFigures[] = {
    {"verdict", [](const EngineAnswer& a, const BudgetStyle&) { return FitWords(*a.budget); }},
    {"weights",
     [](const EngineAnswer& a, const BudgetStyle& s) { return OfPile(a, Pile::kWeights, s); }},
    {"weights on the host",
     [](const EngineAnswer& a, const BudgetStyle& s) {
       const Bytes bytes =
           PilesAt(a.budget->tape, Place::kHost, a.budget->peak.moment)[Pile::kWeights];
       return bytes == Bytes(0) ? "" : PrintBytes(bytes, s.unit);
     }},
    {"KV cache",
     [](const EngineAnswer& a, const BudgetStyle& s) { return OfPile(a, Pile::kKvCache, s); }},
    {"workspace",
     [](const EngineAnswer& a, const BudgetStyle& s) { return OfPile(a, Pile::kWorkspace, s); }},
    {"overhead",
     [](const EngineAnswer& a, const BudgetStyle& s) { return OfPile(a, Pile::kOverhead, s); }},
    {"in all", [](const EngineAnswer& a,
                  const BudgetStyle& s) { return PrintBytes(a.budget->total.expected, s.unit); }},
    {"to spare",
     [](const EngineAnswer& a, const BudgetStyle& s) {
       return a.budget->headroom ? PrintBytes(*a.budget->headroom, s.unit) : "";
     }},
    {"cache format",
     [](const EngineAnswer& a, const BudgetStyle&) { return CacheFormat(a.budget->job.serving); }},
    {"a token's cache",
     [](const EngineAnswer& a, const BudgetStyle& s) {
       const auto& serving = a.budget->serving;
       return serving ? PrintBytes(serving->cache_per_token, s.unit) : "";
     }},
    {"a request's state",
     [](const EngineAnswer& a, const BudgetStyle& s) {
       const auto& serving = a.budget->serving;
       const bool some = serving && serving->state_per_request != Bytes(0);
       return some ? PrintBytes(serving->state_per_request, s.unit) : "";
     }},
    {"cache beyond tokens",
     [](const EngineAnswer& a, const BudgetStyle& s) {
       const Bytes beyond = a.cache.as_allocated - a.cache.of_tokens;
       return a.budget->serving ? PrintBytes(beyond, s.unit) : "";
     }},
    {"pool, tokens",
     [](const EngineAnswer& a, const BudgetStyle&) {
       const bool pool = a.budget->serving && a.budget->serving->pool;
       return pool ? PrintGrouped(a.budget->serving->pool->tokens) : "";
     }},
    {"most requests",
     [](const EngineAnswer& a, const BudgetStyle&) {
       return a.budget->serving ? CountOrNone(a.budget->serving->max_concurrency) : "";
     }},
    {"longest context",
     [](const EngineAnswer& a, const BudgetStyle&) {
       const bool some = a.budget->serving && !a.budget->serving->contexts.empty();
       return some ? PrintGrouped(a.budget->serving->contexts.front().context_length) : "";
     }},
    {"solved",
     [](const EngineAnswer& a, const BudgetStyle&) {
       const bool nothing = a.budget->job.solve && !a.budget->solution;
       return nothing ? "none fits" : CountOrNone(a.budget->solution);
     }},
};

void AddRow(std::vector<std::vector<std::string>>& rows, const Figure& figure,
            const EngineComparison& comparison, const BudgetStyle& style) {
  std::vector<std::string> row = {std::string(figure.name)};
  bool some = false;
  for (const EngineAnswer& answer : comparison.answers) {
    if (answer.budget) {
      const std::string text = figure.of(answer, style);
      some = some || !text.empty();
      row.push_back(text.empty() ? "–" : text);
    }
  }
  if (some) {
    rows.push_back(std::move(row));
  }
}

// A column for each engine that answers, a row for each figure that one of them has.
std::vector<std::vector<std::string>> FigureRows(const EngineComparison& comparison,
                                                 const BudgetStyle& style) {
  std::vector<std::vector<std::string>> rows = {{""}};
  for (const EngineAnswer& answer : comparison.answers) {
    if (answer.budget) {
      rows.front().push_back(answer.engine);
    }
  }
  for (const Figure& figure : kFigures) {
    AddRow(rows, figure, comparison, style);
  }
  return rows;
}

// Of columns that all hold numbers but the first.
std::vector<std::size_t> AllButTheFirst(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> right;
  for (std::size_t column = 1; column < rows.front().size(); ++column) {
    right.push_back(column);
  }
  return right;
}

const Budget& FirstBudget(const EngineComparison& comparison) {
  return *std::ranges::find_if(comparison.answers, [](const EngineAnswer& answer) {
            return answer.budget.has_value();
          })->budget;
}

std::string LoadWords(const EngineComparison& comparison) {
  const Job& job = FirstBudget(comparison).job;
  const ServingJob& serving = job.serving;
  std::string words =
      job.solve ? fmt::format("solved for {}", Word(*job.solve))
                : fmt::format("{} request{} × {} tokens", PrintGrouped(serving.concurrency),
                              serving.concurrency == 1 ? "" : "s", PrintGrouped(TokensOf(serving)));
  if (job.device) {
    words += fmt::format("; {}, {}", job.device->name, PrintBytes(job.device->memory));
  }
  return words;
}

std::vector<std::string> DifferenceWords(const EngineComparison& comparison,
                                         const BudgetStyle& style) {
  std::vector<std::string> words;
  for (const EngineDifference& difference : comparison.differences) {
    const Line& line = difference.line;
    std::string text = fmt::format("{}, {}: {}, {} = {}", PileWords(line.pile),
                                   fmt::join(difference.engines, ", "),
                                   PrintBytes(line.bytes, style.unit), line.what, line.formula);
    words.push_back(style.explain ? fmt::format("{} ({})", text, line.source) : std::move(text));
  }
  return words;
}

std::vector<std::string> RefusalWords(const EngineComparison& comparison) {
  std::vector<std::string> words;
  for (const EngineAnswer& answer : comparison.answers) {
    if (!answer.budget) {
      const ErrorText& text = answer.budget.error().text;
      words.push_back(fmt::format("{} cannot: {}: {}", answer.engine, EscapeForTerminal(text.where),
                                  EscapeForTerminal(text.found)));
    }
  }
  return words;
}

Json DifferencesJson(const EngineComparison& comparison) {
  Json::Array list;
  for (const EngineDifference& difference : comparison.differences) {
    Json::Array engines;
    for (const std::string& engine : difference.engines) {
      engines.emplace_back(engine);
    }
    const Line& line = difference.line;
    list.emplace_back(Json::Object{{"pile", Name(line.pile)},
                                   {"engines", std::move(engines)},
                                   {"what", line.what},
                                   {"bytes", line.bytes.value()},
                                   {"formula", line.formula},
                                   {"source", line.source}});
  }
  return list;
}

}  // namespace

std::string EngineComparisonText(const EngineComparison& comparison, const BudgetStyle& style) {
  const Budget& first = FirstBudget(comparison);
  const auto rows = FigureRows(comparison, style);
  std::string text = fmt::format("{}: serving, engine by engine\n{}; {}\n\n",
                                 EscapeForTerminal(first.job.model.name), ParameterWords(first),
                                 LoadWords(comparison)) +
                     InColumns(rows, {.indent = "  ", .right = AllButTheFirst(rows)});
  const std::vector<std::string> differences = DifferenceWords(comparison, style);
  text += differences.empty() ? "" : "\nWhy they differ:\n";
  for (const std::string& words : differences) {
    text += "  " + words + "\n";
  }
  const std::vector<std::string> refusals = RefusalWords(comparison);
  text += refusals.empty() ? "" : "\n";
  for (const std::string& words : refusals) {
    text += words + "\n";
  }
  return text;
}

std::string EngineComparisonMarkdown(const EngineComparison& comparison, const BudgetStyle& style) {
  const Budget& first = FirstBudget(comparison);
  const auto rows = FigureRows(comparison, style);
  std::string text = fmt::format("### {}: serving, engine by engine\n\n{}; {}\n\n",
                                 MarkdownCell(EscapeForTerminal(first.job.model.name)),
                                 ParameterWords(first), LoadWords(comparison)) +
                     MarkdownRows(rows, AllButTheFirst(rows)) + "\n";
  for (const std::string& words : DifferenceWords(comparison, style)) {
    text += "- " + words + "\n";
  }
  for (const std::string& words : RefusalWords(comparison)) {
    text += "- " + words + "\n";
  }
  return text;
}

Json::Object EngineComparisonJson(const EngineComparison& comparison, const BudgetStyle& style) {
  Json::Array engines;
  for (const EngineAnswer& answer : comparison.answers) {
    Json::Object json = {{"engine", answer.engine},
                         {"error", answer.budget ? Json() : ErrorJson(answer.budget.error())}};
    if (answer.budget) {
      const bool known = answer.budget->shapes_known;
      json.emplace_back("cache_bytes", known ? Json(answer.cache.as_allocated.value()) : Json());
      json.emplace_back("cache_bytes_of_tokens",
                        known ? Json(answer.cache.of_tokens.value()) : Json());
      Json::Object budget = BudgetJson(*answer.budget, style);
      std::ranges::move(budget, std::back_inserter(json));
    }
    engines.emplace_back(std::move(json));
  }
  return {{"engines", std::move(engines)}, {"differences", DifferencesJson(comparison)}};
}

}  // namespace fourpiles
