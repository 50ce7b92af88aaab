// A budget to paste into a document or a pull request.

#include <fmt/format.h>

#include "report/budget.h"
#include "report/budget_words.h"
#include "report/explanation.h"
#include "units/print.h"

namespace fourpiles {
namespace {

// A cell may not end the row: "|" is escaped.
std::string Cell(std::string_view text) {
  std::string cell;
  for (const char c : text) {
    if (c == '|') {
      cell += '\\';
    }
    cell += c;
  }
  return cell;
}

std::string MarkdownRow(const std::vector<std::string>& cells) {
  std::string row = "|";
  for (const std::string& cell : cells) {
    row += " " + Cell(cell) + " |";
  }
  return row + "\n";
}

std::string MarkdownTable(const Table& table) {
  std::string text = fmt::format("\n{}:\n\n", table.title) + MarkdownRow(table.rows.front()) + "|";
  for (std::size_t column = 0; column < table.rows.front().size(); ++column) {
    text += column == table.right ? "---:|" : "---|";
  }
  text += "\n";
  for (std::size_t row = 1; row < table.rows.size(); ++row) {
    text += MarkdownRow(table.rows[row]);
  }
  return text;
}

}  // namespace

std::string BudgetMarkdown(const Budget& budget, const BudgetStyle& style) {
  std::string text = fmt::format("### {}\n\n{}; {}\n\n", Cell(Title(budget)),
                                 ParameterWords(budget), SettingsWords(budget));
  text += "| pile | bytes | format |\n|---|---:|---|\n";
  for (const Pile pile : PilesOf(budget)) {
    text += fmt::format("| {} | {} | {} |\n", PileWords(pile), PileAmount(budget, pile, style),
                        PileFormats(budget, pile));
  }
  text += fmt::format("| **peak** | **{}** | {} |\n", PrintBytes(budget.peak.bytes, style.unit),
                      Cell(MomentName(budget.tape, budget.peak.moment)));
  if (const std::optional<Device>& device = budget.job.device) {
    text += fmt::format("| {} | {} | |\n\n**{}**\n", Cell(device->name),
                        PrintBytes(device->memory, style.unit), VerdictWords(budget, style));
  }
  text += "\n";
  for (const std::string& remark : Remarks(budget, style)) {
    text += "- " + remark + "\n";
  }
  if (style.explain) {
    for (const Table& table : ExplanationTables(budget, style)) {
      text += MarkdownTable(table);
    }
  }
  return text;
}

}  // namespace fourpiles
