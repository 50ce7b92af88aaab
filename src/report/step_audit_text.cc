#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "report/audit_words.h"
#include "report/columns.h"
#include "report/file_text.h"
#include "report/markdown.h"
#include "report/step_audit.h"
#include "units/print.h"

namespace fourpiles {
namespace {

using TextRows = std::vector<std::vector<std::string>>;

constexpr std::size_t kWorstTensors = 5;
constexpr std::size_t kNameWidth = 36;

std::string ScaleText(std::optional<int> exponent) {
  return exponent ? fmt::format("2^{}", *exponent) : "none";
}

// By who said so, in the order in which they come: "given: learning rate 0.001".
std::vector<std::string> SettingsLines(const StepAudit& step) {
  std::vector<std::string> origins;
  std::vector<std::string> lines;
  for (const StepSetting& setting : step.settings) {
    const auto origin = std::ranges::find(origins, setting.from);
    const auto place = static_cast<std::size_t>(origin - origins.begin());
    if (origin == origins.end()) {
      origins.emplace_back(setting.from);
      lines.push_back(fmt::format("{}:", setting.from));
    }
    std::string name(setting.name);
    std::ranges::replace(name, '_', ' ');
    lines[place] +=
        fmt::format("{} {} {}", lines[place].ends_with(':') ? "" : ",", name, setting.value);
  }
  return lines;
}

std::string VerdictsText(const StepAudit& step) {
  std::string text;
  for (const StepVerdict& verdict : step.verdicts) {
    text += InLines(verdict.sentence, "  ");
  }
  return text;
}

// --- Updates ---

std::string StepsText(double steps) {
  return steps == 0 ? "–" : fmt::format("{:.3g}", steps);
}

std::vector<std::string> UpdateCells(const UpdateLosses& losses) {
  return {losses.nonzero == 0 ? "–" : PercentText(LostShare(losses)),
          losses.nonzero == 0 ? "–" : PercentText(LostMassShare(losses)),
          StepsText(losses.median_steps),
          StepsText(losses.largest_steps),
          losses.nonzero == 0 ? "–" : PercentText(StochasticUnmovedShare(losses)),
          losses.nonzero == 0 ? "–" : PercentText(StochasticKeptShare(losses))};
}

TextRows UpdateRows(const StepAudit& step) {
  TextRows rows = {{"updates in", "lost", "of their sum", "steps to move", "at most",
                    "by chance: unmoved", "kept"}};
  for (std::size_t i = 0; i < step.formats.size(); ++i) {
    std::vector<std::string> row = {std::string(step.formats[i].name)};
    std::ranges::move(UpdateCells(step.updates->totals[i]), std::back_inserter(row));
    rows.push_back(std::move(row));
  }
  return rows;
}

// Those that lose most first.
std::vector<const TensorUpdates*> MostLost(const UpdateAudit& updates, std::size_t format) {
  std::vector<const TensorUpdates*> tensors;
  tensors.reserve(updates.tensors.size());
  for (const TensorUpdates& tensor : updates.tensors) {
    tensors.push_back(&tensor);
  }
  std::ranges::stable_sort(tensors, std::greater(), [&](const TensorUpdates* tensor) {
    return LostMassShare(tensor->formats[format]);
  });
  return tensors;
}

std::string UpdateTensors(const StepAudit& step, bool all) {
  TextRows rows = {{"updates in", all ? "tensor" : "worst tensors", "lost", "of their sum",
                    "steps to move", "at most"}};
  for (std::size_t i = 0; i < step.formats.size(); ++i) {
    std::vector<const TensorUpdates*> tensors = MostLost(*step.updates, i);
    tensors.resize(all ? tensors.size() : std::min(tensors.size(), kWorstTensors));
    for (const TensorUpdates* const tensor : tensors) {
      std::vector<std::string> cells = UpdateCells(tensor->formats[i]);
      rows.push_back({tensor == tensors.front() ? std::string(step.formats[i].name) : "",
                      ShortName(tensor->name, kNameWidth), cells[0], cells[1], cells[2], cells[3]});
    }
  }
  return rows.size() == 1 ? "" : "\n" + InColumns(rows, {.right = {2, 3, 4, 5}});
}

std::string UpdatesText(const StepAudit& step, bool all) {
  if (!step.updates) {
    return "";
  }
  std::string text = "\n" + InColumns(UpdateRows(step), {.right = {1, 2, 3, 4, 5, 6}});
  text += UpdateTensors(step, all);
  if (const auto& without = step.updates->without_state; !without.empty()) {
    text += fmt::format("\n{} without state: {}{}\n", PrintGrouped(std::ssize(without)),
                        ShortName(without.front(), 60), without.size() == 1 ? "" : ", …");
  }
  return text;
}

// --- Gradients ---

// Binades grouped so that the histogram has at most so many lines.
std::string HistogramText(const GradientFacts& facts) {
  constexpr int kMostLines = 16;
  constexpr double kWidth = 40;
  const auto begin = std::ranges::find_if(facts.binades, [](auto count) { return count != 0; });
  const auto end = std::find_if(facts.binades.rbegin(), facts.binades.rend(), [](auto count) {
                     return count != 0;
                   }).base();
  if (begin >= end) {
    return "";
  }
  const int first = kLowestBinade + static_cast<int>(begin - facts.binades.begin());
  const int each = (static_cast<int>(end - begin) + kMostLines - 1) / kMostLines;
  std::vector<std::int64_t> counts(static_cast<std::size_t>((end - begin + each - 1) / each));
  for (auto binade = begin; binade != end; ++binade) {
    counts[static_cast<std::size_t>((binade - begin) / each)] += *binade;
  }
  const std::int64_t most = *std::ranges::max_element(counts);
  TextRows rows = {{"magnitude from", "gradients", ""}};
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double share = static_cast<double>(counts[i]) / static_cast<double>(most);
    std::string bar;
    for (int mark = 0; mark < static_cast<int>(std::ceil(share * kWidth)); ++mark) {
      bar += "▇";
    }
    rows.push_back({fmt::format("2^{}", first + static_cast<int>(i) * each),
                    ShareText(counts[i], facts.nonzero), bar});
  }
  return "\n" + InColumns(rows, {.right = {0, 1}});
}

// The scales worth a line: none, each 2^4, and what is advised.
bool IsShown(const GradientLosses& losses, const ScaleLosses& scale) {
  return scale.exponent % 4 == 0 || scale.exponent == losses.recommended.value_or(-1) ||
         scale.exponent == losses.largest_safe.value_or(-1);
}

std::string ScaleNote(const GradientLosses& losses, int exponent, bool is_needed) {
  const bool recommended = losses.recommended == exponent;
  const bool safe = losses.largest_safe == exponent;
  const std::string advice = is_needed ? "recommended" : "recommended if one is used";
  return recommended && safe ? advice + ", the largest safe one"
         : recommended       ? advice
         : safe              ? "the largest safe one"
                             : "";
}

bool NeedsLossScaling(const StepAudit& step, std::size_t format) {
  return std::ranges::any_of(step.verdicts, [&](const StepVerdict& verdict) {
    return verdict.question == StepQuestion::kLossScaling && verdict.needed &&
           static_cast<std::size_t>(verdict.format) == format;
  });
}

bool HoldsAll(const GradientLosses& losses) {
  return std::ranges::all_of(losses.scales, [](const ScaleLosses& scale) {
    return scale.vanished == 0 && scale.subnormal == 0 && scale.overflow == 0;
  });
}

TextRows ScaleRows(const StepAudit& step, std::size_t format) {
  const GradientAudit& gradients = *step.gradients;
  const GradientLosses& losses = gradients.totals[format];
  const bool is_needed = NeedsLossScaling(step, format);
  TextRows rows = {{fmt::format("{} at loss scale", step.formats[format].name), "vanish",
                    "subnormal", "overflow", ""}};
  for (const ScaleLosses& scale : losses.scales) {
    if (IsShown(losses, scale)) {
      rows.push_back({scale.exponent == 0 ? "1, none" : ScaleText(scale.exponent),
                      PercentText(VanishedShare(scale, gradients.facts)),
                      PercentText(SubnormalShare(scale, gradients.facts)),
                      PercentText(OverflowShare(scale, gradients.facts)),
                      ScaleNote(losses, scale.exponent, is_needed)});
    }
  }
  return rows;
}

std::string GradientHead(const GradientFacts& facts) {
  return fmt::format("\n{} gradients, magnitudes {} to {}; {} zero; {} NaN, {} infinite\n",
                     PrintGrouped(facts.count), FigureText(facts.smallest),
                     FigureText(facts.largest), ShareText(facts.zero, facts.count),
                     PrintGrouped(facts.nan), PrintGrouped(facts.infinite));
}

std::string GradientTensors(const StepAudit& step) {
  TextRows rows = {{"gradients in", "tensor", "largest", "vanish", "overflow", "largest safe"}};
  for (std::size_t i = 0; i < step.formats.size(); ++i) {
    for (const TensorGradients& tensor : step.gradients->tensors) {
      const GradientLosses& losses = tensor.formats[i];
      const ScaleLosses unscaled = losses.scales.empty() ? ScaleLosses{} : losses.scales.front();
      rows.push_back(
          {std::string(step.formats[i].name), ShortName(tensor.name, kNameWidth),
           FigureText(tensor.facts.largest), ShareText(unscaled.vanished, tensor.facts.nonzero),
           ShareText(unscaled.overflow, tensor.facts.nonzero), ScaleText(losses.largest_safe)});
    }
  }
  return "\n" + InColumns(rows, {.right = {2, 3, 4, 5}});
}

std::string GradientsText(const StepAudit& step, bool all) {
  if (!step.gradients) {
    return "";
  }
  std::string text = GradientHead(step.gradients->facts);
  for (std::size_t i = 0; i < step.formats.size(); ++i) {
    text += HoldsAll(step.gradients->totals[i])
                ? fmt::format("\n{}: none vanishes or overflows at any loss scale from 1 to 2^{}\n",
                              step.formats[i].name, kLargestScaleExponent)
                : "\n" + InColumns(ScaleRows(step, i), {.right = {0, 1, 2, 3}});
  }
  text += HistogramText(step.gradients->facts);
  return all ? text + GradientTensors(step) : text;
}

}  // namespace

std::string StepText(const StepAudit& step, bool all) {
  std::string text = VerdictsText(step);
  if (step.updates) {
    text += fmt::format("{}\n", fmt::join(SettingsLines(step), "\n"));
  }
  return text + UpdatesText(step, all) + GradientsText(step, all);
}

std::string StepMarkdown(const StepAudit& step) {
  std::string text;
  for (const StepVerdict& verdict : step.verdicts) {
    const std::string_view mark = verdict.needed ? "**" : "";
    text += fmt::format("- {}{}{}\n", mark, verdict.sentence, mark);
  }
  if (step.updates) {
    text += "\n" + MarkdownRows(UpdateRows(step), {1, 2, 3, 4, 5, 6});
    text += fmt::format("\n{}.\n", fmt::join(SettingsLines(step), "; "));
  }
  return text;
}

}  // namespace fourpiles
