#include "report/budget_words.h"
#include "report/job_json.h"
#include "report/plan.h"

namespace fourpiles {
namespace {

Json BandOf(const Band& band) {
  return Json::Object{
      {"low", band.low.value()}, {"expected", band.expected.value()}, {"high", band.high.value()}};
}

Json TimeJson(const StepTime& time) {
  return Json::Object{
      {"products", time.products}, {"memory", time.memory}, {"tensor", time.tensor},
      {"context", time.context},   {"expert", time.expert}, {"pipeline", time.pipeline},
      {"bubble", time.bubble},     {"data", time.data},     {"optimizer", time.optimizer}};
}

// Seconds of a device whose speed is not known mean nothing.
Json OneJson(const LayoutPlan& plan, bool known) {
  return Json::Object{
      {"job", JobJson(plan.job)},
      {"command", plan.command},
      {"devices", plan.job.devices},
      {"samples_per_step", plan.samples},
      {"peak_bytes", plan.peak.value()},
      {"total_bytes", BandOf(plan.total)},
      {"verdict", Name(plan.verdict)},
      {"headroom_bytes", plan.headroom.value()},
      {"step_seconds", known ? Json(plan.seconds) : Json()},
      {"model_flops_utilization", known ? Json(plan.utilization) : Json()},
      {"seconds_by_term", known ? TimeJson(plan.time) : Json()},
      {"on_front", plan.on_front},
  };
}

Json MachineJson(const MachineReading& reading) {
  const Machine& machine = reading.machine;
  Json::Array assumed;
  for (const std::string& words : reading.assumed) {
    assumed.emplace_back(words);
  }
  return Json::Object{{"known", reading.is_known},
                      {"peak_flops", machine.peak_flops},
                      {"matrix_flops", machine.matrix_flops},
                      {"memory_bytes_per_second", machine.memory_bytes},
                      {"link_bytes_per_second", machine.link_bytes},
                      {"network_bytes_per_second", machine.network_bytes},
                      {"assumed", std::move(assumed)}};
}

Json ClosestJson(const PlanAnswer& answer) {
  if (!answer.closest) {
    return {};
  }
  const Budget& budget = *answer.closest;
  Json::Object piles;
  for (const auto& [pile, bytes] : budget.piles) {
    piles.emplace_back(Name(pile), bytes.value());
  }
  return Json::Object{
      {"job", JobJson(budget.job)},          {"command", answer.closest_command},
      {"piles", std::move(piles)},           {"peak_bytes", budget.peak.bytes.value()},
      {"total_bytes", BandOf(budget.total)}, {"headroom_bytes", budget.headroom->value()}};
}

}  // namespace

Json::Object PlanJson(const PlanAnswer& answer) {
  Json::Array plans;
  for (const LayoutPlan& plan : answer.plans) {
    plans.emplace_back(OneJson(plan, answer.reading.is_known));
  }
  Json::Array warnings;
  for (const std::string& warning : answer.warnings) {
    warnings.emplace_back(warning);
  }
  return {{"plans", std::move(plans)},
          {"samples_per_step", answer.samples ? Json(*answer.samples) : Json()},
          {"speeds", MachineJson(answer.reading)},
          {"closest", ClosestJson(answer)},
          {"warnings", std::move(warnings)}};
}

}  // namespace fourpiles
