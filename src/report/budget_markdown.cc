// A budget to paste into a document or a pull request.

#include <fmt/format.h>

#include "report/budget.h"
#include "report/budget_words.h"
#include "report/explanation.h"
#include "report/markdown.h"
#include "units/print.h"

namespace fourpiles {

std::string BudgetMarkdown(const Budget& budget, const BudgetStyle& style) {
  std::string text = fmt::format("### {}\n\n{}; {}\n\n", MarkdownCell(Title(budget)),
                                 ParameterWords(budget), SettingsWords(budget));
  text += "| pile | bytes | format |\n|---|---:|---|\n";
  for (const Pile pile : PilesOf(budget)) {
    text += fmt::format("| {} | {} | {} |\n", PileWords(pile), PileAmount(budget, pile, style),
                        PileFormats(budget, pile));
  }
  text += fmt::format("| **peak** | **{}** | {} |\n", PrintBytes(budget.peak.bytes, style.unit),
                      MarkdownCell(MomentName(budget.tape, budget.peak.moment)));
  if (const std::optional<Device>& device = budget.job.device) {
    text += fmt::format("| {} | {} | |\n\n**{}**\n", MarkdownCell(device->name),
                        PrintBytes(device->memory, style.unit), VerdictWords(budget, style));
  }
  text += "\n";
  for (const std::string& remark : Remarks(budget, style)) {
    text += "- " + remark + "\n";
  }
  if (style.explain) {
    for (const Table& table : ExplanationTables(budget, style)) {
      text += fmt::format("\n{}:\n\n", table.title) + MarkdownRows(table.rows, {table.right});
    }
  }
  return text;
}

}  // namespace fourpiles
