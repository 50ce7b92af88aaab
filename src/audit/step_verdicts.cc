// The two questions that a step's losses answer.

#include <fmt/format.h>

#include "audit/step_parts.h"

namespace fourpiles {
namespace {

std::string Percent(double share) {
  return fmt::format("{:.3g} %", 100 * share);
}

std::string MasterSentence(std::string_view format, const UpdateLosses& losses, bool needed) {
  if (!needed) {
    return fmt::format(
        "No float32 master copy is needed with {} weights: {} of the updates' magnitude rounds "
        "away in a step ({} of the updates).",
        format, Percent(LostMassShare(losses)), Percent(LostShare(losses)));
  }
  return fmt::format(
      "Keep a float32 master copy beside {} weights, or round stochastically: {} of the updates' "
      "magnitude rounds away in a step ({} of the updates).",
      format, Percent(LostMassShare(losses)), Percent(LostShare(losses)));
}

std::string ScalingSentence(std::string_view format, const GradientLosses& losses,
                            const GradientFacts& facts, bool needed) {
  const ScaleLosses& plain = losses.scales.front();
  const std::string vanish = Percent(VanishedShare(plain, facts));
  if (plain.overflow > 0) {
    return fmt::format(
        "{} gradients of {} are beyond the largest value of {} even without a loss scale, which "
        "can only make them larger; {} vanish. Clip them first, or use a format of more range.",
        plain.overflow, facts.nonzero, format, vanish);
  }
  if (!needed) {
    return fmt::format("No loss scaling is needed with {} gradients: {} of them vanish without it.",
                       format, vanish);
  }
  const int exponent = losses.recommended.value_or(0);
  if (exponent == 0) {  // no scale leaves the largest gradient its headroom
    return fmt::format(
        "{} of the gradients vanish in {}, and a loss scale helps little: the largest gradient, "
        "{:.3g}, fits up to the scale 2^{}. Clip it first, or use a format of more range.",
        vanish, format, facts.largest, *losses.largest_safe);
  }
  const ScaleLosses& scaled = losses.scales[static_cast<std::size_t>(exponent)];
  return fmt::format(
      "Use loss scaling with {} gradients: {} of them vanish without it, {} at the scale 2^{}, "
      "with which a gradient eight times the largest still fits.",
      format, vanish, Percent(VanishedShare(scaled, facts)), exponent);
}

}  // namespace

std::vector<StepVerdict> VerdictsOf(const StepAudit& audit, const Thresholds& thresholds) {
  const Threshold& most_lost = Of(thresholds, ThresholdId::kLostUpdates);
  const Threshold& most_vanished = Of(thresholds, ThresholdId::kVanishedGradients);
  std::vector<StepVerdict> verdicts;
  for (std::size_t i = 0; i < audit.formats.size(); ++i) {
    const auto format = static_cast<std::int32_t>(i);
    const std::string_view name = audit.formats[i].name;
    if (audit.updates && audit.updates->totals[i].nonzero > 0) {
      const UpdateLosses& losses = audit.updates->totals[i];
      const double lost = LostMassShare(losses);
      const bool needed = lost > most_lost.value;
      verdicts.push_back({.question = StepQuestion::kMasterCopy,
                          .format = format,
                          .needed = needed,
                          .what = "share of the updates' magnitude that rounds away",
                          .value = lost,
                          .threshold = most_lost.value,
                          .source = most_lost.source,
                          .sentence = MasterSentence(name, losses, needed)});
    }
    if (audit.gradients && audit.gradients->facts.nonzero > 0) {
      const GradientLosses& losses = audit.gradients->totals[i];
      const double vanished = VanishedShare(losses.scales.front(), audit.gradients->facts);
      const bool needed = vanished > most_vanished.value;
      verdicts.push_back(
          {.question = StepQuestion::kLossScaling,
           .format = format,
           .needed = needed,
           .what = "share of the gradients that vanish without loss scaling",
           .value = vanished,
           .threshold = most_vanished.value,
           .source = most_vanished.source,
           .sentence = ScalingSentence(name, losses, audit.gradients->facts, needed)});
    }
  }
  return verdicts;
}

std::string_view Name(StepQuestion question) {
  return question == StepQuestion::kMasterCopy ? "master_copy" : "loss_scaling";
}

}  // namespace fourpiles
