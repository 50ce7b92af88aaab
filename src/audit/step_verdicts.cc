// The two questions that a step's losses answer.

#include <fmt/format.h>

#include "audit/step_parts.h"

namespace fourpiles {
namespace {

// Runs of a GPT of 109,000 weights from one checkpoint, 200 steps at each of seven learning rates,
// with weights of float32, bfloat16 and float16: at 0.45 % of the updates' magnitude lost, 98 % of
// the improvement of float32 weights was kept, at 1.9 % 95 %, at 12 % 90 %, at 46 % 77 %, at 98 %
// 5 %. With stochastic rounding 96 % or more was kept at all of them.
constexpr double kMostLostMass = 0.01;
constexpr std::string_view kLostMassSource =
    "200 steps of a small GPT at seven learning rates: 0.45 % lost kept 98 % of the improvement, "
    "1.9 % kept 95 %, 12 % kept 90 %, 46 % kept 77 %";

// NVIDIA's TransformerEngine logs the share of nonzero values that become zero for its float8
// tensors; 1 % is where practice begins to look. Runs of the same GPT with 0.1 % of the gradients
// vanishing in float16 ended where float32 did, without loss scaling.
constexpr double kMostVanished = 0.01;
constexpr std::string_view kVanishedSource =
    "working value of practice, as for underflows in TransformerEngine's statistics; runs of a "
    "small GPT with 0.1 % ended where float32 did";

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

std::vector<StepVerdict> VerdictsOf(const StepAudit& audit) {
  std::vector<StepVerdict> verdicts;
  for (std::size_t i = 0; i < audit.formats.size(); ++i) {
    const auto format = static_cast<std::int32_t>(i);
    const std::string_view name = audit.formats[i].name;
    if (audit.updates && audit.updates->totals[i].nonzero > 0) {
      const UpdateLosses& losses = audit.updates->totals[i];
      const double lost = LostMassShare(losses);
      const bool needed = lost > kMostLostMass;
      verdicts.push_back({.question = StepQuestion::kMasterCopy,
                          .format = format,
                          .needed = needed,
                          .what = "share of the updates' magnitude that rounds away",
                          .value = lost,
                          .threshold = kMostLostMass,
                          .source = kLostMassSource,
                          .sentence = MasterSentence(name, losses, needed)});
    }
    if (audit.gradients && audit.gradients->facts.nonzero > 0) {
      const GradientLosses& losses = audit.gradients->totals[i];
      const double vanished = VanishedShare(losses.scales.front(), audit.gradients->facts);
      const bool needed = vanished > kMostVanished;
      verdicts.push_back(
          {.question = StepQuestion::kLossScaling,
           .format = format,
           .needed = needed,
           .what = "share of the gradients that vanish without loss scaling",
           .value = vanished,
           .threshold = kMostVanished,
           .source = kVanishedSource,
           .sentence = ScalingSentence(name, losses, audit.gradients->facts, needed)});
    }
  }
  return verdicts;
}

std::string_view Name(StepQuestion question) {
  return question == StepQuestion::kMasterCopy ? "master_copy" : "loss_scaling";
}

}  // namespace fourpiles
