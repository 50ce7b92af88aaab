#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "plan/change_command.h"
#include "report/budget_words.h"
#include "report/columns.h"
#include "report/plan.h"
#include "units/print.h"

namespace fourpiles {
namespace {

std::string SecondsWords(double seconds) {
  return seconds < 0.1 ? fmt::format("{:.3g} ms", seconds * 1000)
                       : fmt::format("{:.3g} s", seconds);
}

std::string OrDash(const std::string& words) {
  return words.empty() ? "-" : words;
}

// Columns that say something: those of which every row says 1 are left out.
struct Column {
  std::string_view heading;
  std::string (*of)(const LayoutPlan& plan);
  bool always = false;
};
constexpr Column kColumns[] = {
    {"tensor", [](const LayoutPlan& p) { return fmt::to_string(p.job.training.layout.tensor); },
     true},
    {"pipeline", [](const LayoutPlan& p) { return fmt::to_string(p.job.training.layout.pipeline); },
     true},
    {"chunks", [](const LayoutPlan& p) { return fmt::to_string(p.job.training.layout.chunks); }},
    {"context", [](const LayoutPlan& p) { return fmt::to_string(p.job.training.layout.context); }},
    {"expert", [](const LayoutPlan& p) { return fmt::to_string(p.job.training.layout.expert); }},
    {"data",
     [](const LayoutPlan& p) { return fmt::to_string(DataParallel(p.job.training.layout)); }, true},
    {"sharding", [](const LayoutPlan& p) { return OrDash(ShardingWord(p.job.training.layout)); },
     true},
    {"micro-batch",
     [](const LayoutPlan& p) {
       return fmt::format("{} × {}", p.job.training.micro_batch_size,
                          p.job.training.gradient_accumulation);
     },
     true},
    {"recompute", [](const LayoutPlan& p) { return RecomputeWord(p.job.training.recompute); },
     true},
};

std::string TimesText(const PlanAnswer& answer, const LayoutPlan& plan) {
  return answer.reading.is_known ? SecondsWords(plan.seconds) : "-";
}

bool HasOtherThanOne(const PlanAnswer& answer, const Column& column) {
  return column.always || std::ranges::any_of(answer.plans, [&](const LayoutPlan& plan) {
           return column.of(plan) != "1";
         });
}

std::vector<std::string> RowOf(const PlanAnswer& answer, const LayoutPlan& plan, std::size_t number,
                               const BudgetStyle& style) {
  const std::string_view of_front = plan.verdict == Fit::kTight ? "tight" : "";
  std::vector<std::string> row = {fmt::to_string(number),
                                  std::string(plan.on_front ? of_front : "not on the front")};
  for (const Column& column : kColumns) {
    if (HasOtherThanOne(answer, column)) {
      row.push_back(column.of(plan));
    }
  }
  row.push_back(PrintBytes(plan.total.expected, style.unit));
  row.push_back(PrintBytes(plan.headroom, style.unit));
  row.push_back(TimesText(answer, plan));
  row.push_back(answer.reading.is_known ? fmt::format("{:.1f} %", plan.utilization * 100) : "-");
  return row;
}

std::string TableText(const PlanAnswer& answer, const BudgetStyle& style) {
  std::vector<std::vector<std::string>> rows = {{"", ""}};
  std::vector<std::size_t> right;
  for (const Column& column : kColumns) {
    if (HasOtherThanOne(answer, column)) {
      right.push_back(rows[0].size());
      rows[0].emplace_back(column.heading);
    }
  }
  for (const char* const heading : {"in all", "to spare", "a step", "MFU"}) {
    right.push_back(rows[0].size());
    rows[0].emplace_back(heading);
  }
  rows.reserve(answer.plans.size() + 1);
  for (const LayoutPlan& plan : answer.plans) {
    rows.push_back(RowOf(answer, plan, rows.size(), style));
  }
  return InColumns(rows, {.indent = "  ", .right = std::move(right)});
}

std::string SpeedWords(const MachineReading& reading) {
  const Machine& machine = reading.machine;
  std::string words = fmt::format(
      "{}: products {:.0f} of {:.0f} TFLOP/s, memory {:.2f} TB/s, {:.0f} GB/s within a node, "
      "{:.0f} GB/s between nodes, one way.",
      reading.is_known ? "Speeds" : "Ranked by the speeds of an H100 SXM",
      machine.matrix_flops / 1e12, machine.peak_flops / 1e12, machine.memory_bytes / 1e12,
      machine.link_bytes / 1e9, machine.network_bytes / 1e9);
  if (!reading.assumed.empty()) {
    words += fmt::format(" Assumed: {}.", fmt::join(reading.assumed, "; "));
  }
  return words;
}

std::string DefaultsText(const PlanAnswer& answer) {
  std::vector<std::string> words;
  words.reserve(answer.job.defaults.size());
  for (const Default& unset : answer.job.defaults) {
    const bool searched = unset.key == "micro_batch_size" || unset.key == "zero" ||
                          unset.key == "recompute" || unset.key == "gradient_accumulation";
    if (!searched) {
      words.push_back(unset.key + " " + unset.value);
    }
  }
  return words.empty() ? "" : fmt::format("Defaults: {}.\n", fmt::join(words, ", "));
}

// The pile that is largest, and the closest layout.
std::string ClosestText(const PlanAnswer& answer, const BudgetStyle& style) {
  if (!answer.closest) {
    return "No layout fits.\n";
  }
  const Budget& budget = *answer.closest;
  const auto largest =
      std::ranges::max_element(budget.piles, {}, [](const auto& pile) { return pile.second; });
  return fmt::format(
      "No layout fits. The closest lacks {}: {} of its {} are {}.\n  {}\n",
      PrintBytes(Bytes(0) - *budget.headroom, style.unit), PrintBytes(largest->second, style.unit),
      PrintBytes(budget.peak.bytes, style.unit), PileWords(largest->first), answer.closest_command);
}

std::string CommandsText(const PlanAnswer& answer) {
  std::string text;
  for (std::size_t i = 0; i < answer.plans.size(); ++i) {
    text += fmt::format("  {}  {}\n", i + 1, answer.plans[i].command);
  }
  return text;
}

}  // namespace

std::string PlanText(const PlanAnswer& answer, const BudgetStyle& style) {
  const Job& job = answer.job;
  std::string text = fmt::format("{}: layouts over {} × {}", job.model.name,
                                 PrintGrouped(job.devices), job.device->name);
  text += fmt::format("\n{} parameters; {} tokens a sample",
                      PrintGrouped(ParameterCount(job.model.network)),
                      PrintGrouped(job.training.sequence_length));
  if (answer.samples) {
    text += fmt::format(", {} samples a step", PrintGrouped(*answer.samples));
  }
  text += "\n\n";
  if (answer.plans.empty()) {
    text += ClosestText(answer, style);
  } else {
    text += TableText(answer, style) + "\n" + CommandsText(answer) + "\n";
    text +=
        "A micro-batch is samples × micro-batches a step. Memory is counted, time estimated "
        "(docs/PLAN.md).\n";
  }
  text += SpeedWords(answer.reading) + "\n";
  return text + DefaultsText(answer);
}

std::string SearchWords(const SearchCounts& counts) {
  return fmt::format(
      "{} layouts: {} too large by their state alone, {} by their peak, {} neither faster nor "
      "smaller than another; {} fit; {} plays",
      PrintGrouped(Tried(counts)), PrintGrouped(counts.state_too_large),
      PrintGrouped(counts.too_large), PrintGrouped(counts.worse), PrintGrouped(counts.fit),
      PrintGrouped(counts.plays));
}

}  // namespace fourpiles
