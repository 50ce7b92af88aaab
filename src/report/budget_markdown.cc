// A budget to paste into a document or a pull request.

#include <fmt/format.h>

#include "report/budget.h"
#include "report/budget_words.h"
#include "step/lines.h"
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

}  // namespace

std::string BudgetMarkdown(const Budget& budget, const BudgetStyle& style) {
  std::string text =
      fmt::format("### {}\n\n{}; {}\n\n", Cell(Title(budget)), ParameterWords(budget),
                  SettingsWords(budget));
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
    text += "\n| pile | what | bytes | format | formula | source |\n|---|---|---:|---|---|---|\n";
    for (const Line& line : LinesAt(budget.tape, Place::kDevice, budget.peak.moment)) {
      text += fmt::format("| {} | {} | {} | {} | {} | {} |\n", PileWords(line.pile),
                          Cell(line.what), PrintBytes(line.bytes, style.unit), line.format,
                          Cell(line.formula), Cell(line.source));
    }
  }
  return text;
}

}  // namespace fourpiles
