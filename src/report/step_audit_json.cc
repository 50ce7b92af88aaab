#include <cmath>

#include "report/step_audit.h"

namespace fourpiles {
namespace {

Json::Object UpdateJson(const StepAudit& step, std::size_t format, const UpdateLosses& losses) {
  return {{"format", step.formats[format].name},
          {"elements", losses.elements},
          {"not_finite", losses.not_finite},
          {"overflowing_weights", losses.overflowing_weights},
          {"subnormal_weights", losses.subnormal_weights},
          {"underflowing_weights", losses.underflowing_weights},
          {"nonzero", losses.nonzero},
          {"lost", losses.lost},
          {"lost_share", LostShare(losses)},
          {"lost_magnitude_share", LostMassShare(losses)},
          {"stochastic_unmoved_share", StochasticUnmovedShare(losses)},
          {"stochastic_kept_share", StochasticKeptShare(losses)},
          {"median_steps", losses.median_steps},
          {"largest_steps", losses.largest_steps}};
}

Json::Array UpdatesOf(const StepAudit& step, const std::vector<UpdateLosses>& all) {
  Json::Array formats;
  for (std::size_t i = 0; i < all.size(); ++i) {
    formats.emplace_back(UpdateJson(step, i, all[i]));
  }
  return formats;
}

Json UpdatesJson(const StepAudit& step) {
  if (!step.updates) {
    return {};
  }
  Json::Array tensors;
  for (const TensorUpdates& tensor : step.updates->tensors) {
    tensors.emplace_back(Json::Object{{"name", tensor.name},
                                      {"step", tensor.step},
                                      {"formats", UpdatesOf(step, tensor.formats)}});
  }
  return Json::Object{{"totals", UpdatesOf(step, step.updates->totals)},
                      {"tensors", std::move(tensors)},
                      {"without_state", TextsJson(step.updates->without_state)}};
}

// A power of two; null where there is none.
Json PowerJson(std::optional<int> exponent) {
  return exponent ? Json(std::ldexp(1.0, *exponent)) : Json();
}

Json::Array ScalesJson(const GradientLosses& losses) {
  Json::Array scales;
  for (const ScaleLosses& scale : losses.scales) {
    scales.emplace_back(Json::Object{{"scale", PowerJson(scale.exponent)},
                                     {"vanished", scale.vanished},
                                     {"subnormal", scale.subnormal},
                                     {"overflow", scale.overflow}});
  }
  return scales;
}

Json::Array GradientsOf(const StepAudit& step, const std::vector<GradientLosses>& all) {
  Json::Array formats;
  for (std::size_t i = 0; i < all.size(); ++i) {
    formats.emplace_back(Json::Object{{"format", step.formats[i].name},
                                      {"largest_safe_scale", PowerJson(all[i].largest_safe)},
                                      {"recommended_scale", PowerJson(all[i].recommended)},
                                      {"scales", ScalesJson(all[i])}});
  }
  return formats;
}

// Binades that have gradients: [exponent, how many].
Json::Array BinadesJson(const GradientFacts& facts) {
  Json::Array binades;
  for (int i = 0; i < kBinades; ++i) {
    if (const std::int64_t count = facts.binades[static_cast<std::size_t>(i)]; count != 0) {
      binades.emplace_back(Json::Array{kLowestBinade + i, count});
    }
  }
  return binades;
}

Json FactsJson(const GradientFacts& facts) {
  return Json::Object{{"count", facts.count},       {"nan", facts.nan},
                      {"infinite", facts.infinite}, {"zero", facts.zero},
                      {"nonzero", facts.nonzero},   {"smallest", facts.smallest},
                      {"largest", facts.largest},   {"binades", BinadesJson(facts)}};
}

Json GradientsJson(const StepAudit& step) {
  if (!step.gradients) {
    return {};
  }
  Json::Array tensors;
  for (const TensorGradients& tensor : step.gradients->tensors) {
    tensors.emplace_back(Json::Object{{"name", tensor.name},
                                      {"facts", FactsJson(tensor.facts)},
                                      {"formats", GradientsOf(step, tensor.formats)}});
  }
  return Json::Object{{"facts", FactsJson(step.gradients->facts)},
                      {"totals", GradientsOf(step, step.gradients->totals)},
                      {"tensors", std::move(tensors)}};
}

Json VerdictJson(const StepAudit& step, const StepVerdict& verdict) {
  return Json::Object{{"question", Name(verdict.question)},
                      {"format", step.formats[static_cast<std::size_t>(verdict.format)].name},
                      {"needed", verdict.needed},
                      {"what", verdict.what},
                      {"value", verdict.value},
                      {"threshold", verdict.threshold},
                      {"source", verdict.source},
                      {"sentence", verdict.sentence}};
}

}  // namespace

Json StepJson(const StepAudit& step) {
  Json::Array formats;
  for (const NumberFormat& format : step.formats) {
    formats.emplace_back(format.name);
  }
  Json::Array settings;
  for (const StepSetting& setting : step.settings) {
    settings.emplace_back(
        Json::Object{{"name", setting.name}, {"value", setting.value}, {"from", setting.from}});
  }
  Json::Array verdicts;
  for (const StepVerdict& verdict : step.verdicts) {
    verdicts.emplace_back(VerdictJson(step, verdict));
  }
  return Json::Object{{"formats", std::move(formats)},
                      {"settings", std::move(settings)},
                      {"updates", UpdatesJson(step)},
                      {"gradients", GradientsJson(step)},
                      {"verdicts", std::move(verdicts)}};
}

}  // namespace fourpiles
