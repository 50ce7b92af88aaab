#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string>

#include <fmt/format.h>

#include "report/file_text.h"
#include "report/step_audit.h"

namespace fourpiles {
namespace {

constexpr std::string_view kHead =
    "tensor,format,step,weights,weights_not_finite,overflowing_weights,subnormal_weights,"
    "underflowing_weights,updates,lost,lost_share,lost_magnitude_share,stochastic_unmoved_share,"
    "stochastic_kept_share,median_steps,largest_steps,gradients,nan,infinite,zero,smallest,largest,"
    "vanished,vanished_share,subnormal,overflow,largest_safe_scale,recommended_scale\n";
constexpr std::string_view kNoUpdates = ",,,,,,,,,,,,,";
constexpr std::string_view kNoGradients = ",,,,,,,,,,,";

std::string UpdateCells(double step, const UpdateLosses& losses) {
  return fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{}", step, losses.elements,
                     losses.not_finite, losses.overflowing_weights, losses.subnormal_weights,
                     losses.underflowing_weights, losses.nonzero, losses.lost, LostShare(losses),
                     LostMassShare(losses), StochasticUnmovedShare(losses),
                     StochasticKeptShare(losses), losses.median_steps, losses.largest_steps);
}

// A power of two; empty where there is none.
std::string PowerCell(std::optional<int> exponent) {
  return exponent ? fmt::format("{}", std::ldexp(1.0, *exponent)) : "";
}

// Without a loss scale.
std::string GradientCells(const GradientFacts& facts, const GradientLosses& losses) {
  const ScaleLosses& plain = losses.scales.front();
  return fmt::format("{},{},{},{},{},{},{},{},{},{},{},{}", facts.count, facts.nan, facts.infinite,
                     facts.zero, facts.smallest, facts.largest, plain.vanished,
                     VanishedShare(plain, facts), plain.subnormal, plain.overflow,
                     PowerCell(losses.largest_safe), PowerCell(losses.recommended));
}

// Both of one name; nullptr: there are none.
std::string Rows(const StepAudit& step, const TensorUpdates* updates,
                 const TensorGradients* gradients) {
  std::string rows;
  for (std::size_t i = 0; i < step.formats.size(); ++i) {
    rows += fmt::format(
        "{},{},{},{}\n", CsvCell(updates != nullptr ? updates->name : gradients->name),
        step.formats[i].name,
        updates != nullptr ? UpdateCells(updates->step, updates->formats[i]) : kNoUpdates,
        gradients != nullptr ? GradientCells(gradients->facts, gradients->formats[i])
                             : kNoGradients);
  }
  return rows;
}

}  // namespace

std::string StepCsv(const StepAudit& step) {
  std::span<const TensorUpdates> updates;
  std::span<const TensorGradients> gradients;
  if (step.updates) {
    updates = step.updates->tensors;
  }
  if (step.gradients) {
    gradients = step.gradients->tensors;
  }
  std::string text(kHead);
  for (const TensorUpdates& tensor : updates) {
    const auto found = std::ranges::find(gradients, tensor.name, &TensorGradients::name);
    text += Rows(step, &tensor, found == gradients.end() ? nullptr : &*found);
  }
  for (const TensorGradients& tensor : gradients) {
    if (std::ranges::find(updates, tensor.name, &TensorUpdates::name) == updates.end()) {
      text += Rows(step, nullptr, &tensor);
    }
  }
  return text;
}

}  // namespace fourpiles
