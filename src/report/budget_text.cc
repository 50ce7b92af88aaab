// A budget on one screen: a line and a bar a pile, the device's line, the verdict.

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "report/budget.h"
#include "report/budget_words.h"
#include "report/columns.h"
#include "report/explanation.h"
#include "units/print.h"

namespace fourpiles {
namespace {

constexpr int kBarWidth = 30;

// `bytes` of `whole` as a bar; what is not nothing shows at least a sliver.
std::string Bar(Bytes bytes, Bytes whole) {
  if (bytes == Bytes(0) || whole == Bytes(0)) {
    return "";
  }
  const double share =
      std::min(1.0, static_cast<double>(bytes.value()) / static_cast<double>(whole.value()));
  const long eighths = std::max(1L, std::lround(share * kBarWidth * 8));
  static constexpr const char* kParts[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  std::string bar;
  for (long i = 0; i < eighths / 8; ++i) {
    bar += "█";
  }
  return bar + kParts[eighths % 8];
}

std::string PileTable(const Budget& budget, const BudgetStyle& style) {
  const Bytes whole =
      std::max(budget.total.expected, budget.job.device ? budget.job.device->memory : Bytes(0));
  std::vector<std::vector<std::string>> rows;
  for (const Pile pile : PilesOf(budget)) {
    rows.push_back({PileWords(pile), PileAmount(budget, pile, style),
                    Bar(budget.piles.at(pile), whole), PileFormats(budget, pile)});
  }
  const std::string moment = MomentName(budget.tape, budget.peak.moment);
  rows.push_back(
      {"peak", PrintBytes(budget.peak.bytes, style.unit), Bar(budget.peak.bytes, whole), moment});
  if (const std::optional<Device>& device = budget.job.device) {
    rows.push_back({"device", PrintBytes(device->memory, style.unit), Bar(device->memory, whole),
                    device->name});
  }
  return InColumns(rows, {.indent = "  ", .right = {1}});
}

// Every kind of device, where there are several.
std::string RankTable(const Budget& budget, const BudgetStyle& style) {
  if (budget.ranks.size() < 2) {
    return "";
  }
  std::vector<Pile> piles = PilesOf(budget);
  if (budget.job.kind != JobKind::kServe) {
    std::erase(piles, Pile::kOverhead);  // of the rank that is shown alone
  }
  std::vector<std::string> heading = {"device"};
  std::vector<std::size_t> right;
  for (const Pile pile : piles) {
    heading.push_back(PileWords(pile));
    right.push_back(right.size() + 1);
  }
  heading.emplace_back(budget.job.kind == JobKind::kServe ? "in all" : "peak");
  right.push_back(right.size() + 1);
  std::vector<std::vector<std::string>> rows = {std::move(heading)};
  for (const RankBudget& rank : budget.ranks) {
    std::vector<std::string> row = {rank.rank};
    for (const Pile pile : piles) {
      row.push_back(PrintBytes(rank.piles.at(pile), style.unit));
    }
    row.push_back(PrintBytes(rank.total.expected, style.unit));
    rows.push_back(std::move(row));
  }
  return InColumns(rows, {.indent = "  ", .right = std::move(right)}) + "\n";
}

// The largest context at each concurrency.
std::string ContextTableText(const Budget& budget) {
  if (!budget.serving || budget.serving->contexts.empty()) {
    return "";
  }
  std::vector<std::vector<std::string>> rows = {{"requests"}, {"tokens each"}};
  std::vector<std::size_t> right;
  for (const ContextRow& row : budget.serving->contexts) {
    rows[0].push_back(PrintGrouped(row.concurrency));
    rows[1].push_back(PrintGrouped(row.context_length));
    right.push_back(right.size() + 1);
  }
  return InColumns(rows, {.indent = "  ", .right = std::move(right)}) + "\n";
}

}  // namespace

std::string BudgetText(const Budget& budget, const BudgetStyle& style) {
  std::string text = Title(budget) + "\n";
  text += fmt::format("{}; {}\n\n", ParameterWords(budget), SettingsWords(budget));
  text += PileTable(budget, style) + "\n";
  if (const std::string verdict = VerdictWords(budget, style); !verdict.empty()) {
    text += verdict + "\n\n";
  }
  text += RankTable(budget, style) + ContextTableText(budget);
  for (const std::string& remark : Remarks(budget, style)) {
    text += remark + "\n";
  }
  if (style.explain) {
    for (const Table& table : ExplanationTables(budget, style)) {
      text += fmt::format("\n{}:\n{}", table.title,
                          InColumns(table.rows, {.indent = "  ", .right = {table.right}}));
    }
  }
  return text;
}

}  // namespace fourpiles
