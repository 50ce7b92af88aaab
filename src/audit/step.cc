#include "audit/step.h"

#include <algorithm>
#include <utility>

#include "audit/step_parts.h"
#include "base/try.h"
#include "tensors/name_pattern.h"

namespace fourpiles {
namespace {

Result<std::vector<FormatGrid>> GridsOf(const std::vector<NumberFormat>& formats) {
  std::vector<FormatGrid> grids;
  grids.reserve(formats.size());
  for (const NumberFormat& format : formats) {
    TRY(const FormatGrid grid, FormatGrid::Of(format));
    grids.push_back(grid);
  }
  return grids;
}

std::int64_t ElementsOf(const Checkpoint& checkpoint, const std::vector<std::int32_t>& tensors) {
  Checked elements = 0;
  for (const std::int32_t index : tensors) {
    elements = elements + checkpoint.tensors[static_cast<std::size_t>(index)].elements;
  }
  return OrLargest(elements);
}

std::vector<std::int32_t> ChosenWeights(const TrainingState& state, const StepFiles& files,
                                        const StepOptions& options) {
  std::vector<std::int32_t> weights;
  for (const WeightState& entry : state.weights) {
    const auto index = static_cast<std::size_t>(entry.weight);
    if (MatchesAny(files.weights->tensors[index].name, options.filters)) {
      weights.push_back(entry.weight);
    }
  }
  return weights;
}

tl::unexpected<Error> NothingToAudit(const StepFiles& files) {
  if (files.state == nullptr && files.gradients != nullptr) {
    return BadInput({.where = files.gradients->path,
                     .found = "no gradients",
                     .expected = "expected tensors of real numbers"});
  }
  return WrongUsage({.where = "--learning-rate",
                     .found = "none",
                     .expected = "expected one for the updates, or gradients",
                     .hint = "give a learning rate, such as --learning-rate 3e-4"});
}

}  // namespace

void StepWork::Advance(std::int64_t count) {
  done += count;
  if (options.progress) {
    options.progress({.elements_done = done, .elements = elements});
  }
}

Result<StepAudit> AuditStep(const StepFiles& files, const StepOptions& given) {
  StepOptions options = given;
  if (options.formats.empty()) {
    options.formats = {*FindFormat("bfloat16"), *FindFormat("float16")};
  }
  StepWork work = {.options = options};
  TRY(work.grids, GridsOf(options.formats));
  const Checkpoint& moments = files.state != nullptr ? *files.state : *files.weights;
  const Checkpoint& gradients = files.gradients != nullptr ? *files.gradients : *files.weights;
  TRY(StepSettings settings, ChooseSettings(moments, options));
  const std::vector<std::int32_t> gradient_tensors = GradientTensors(files, options);
  if (files.gradients != nullptr && files.state == nullptr && !given.learning_rate) {
    settings.adam.reset();  // only a file of gradients was asked about
  }
  if (!settings.adam && (files.state != nullptr || gradient_tensors.empty())) {
    return NothingToAudit(files);
  }
  StepAudit audit = {.formats = options.formats};
  work.elements = ElementsOf(gradients, gradient_tensors);
  if (settings.adam) {
    TRY(const TrainingState state, FindTrainingState(*files.weights, moments, options.moments));
    work.elements += ElementsOf(*files.weights, ChosenWeights(state, files, options));
    TRY(audit.updates, AuditUpdates(files, state, *settings.adam, work));
    audit.settings = std::move(settings.used);
    if (!audit.updates->tensors.empty()) {
      audit.settings.push_back(
          {"step", audit.updates->tensors.front().step, options.step ? "given" : "the checkpoint"});
    }
  }
  if (!gradient_tensors.empty()) {
    TRY(audit.gradients, AuditGradients(gradients, gradient_tensors, work));
  }
  audit.verdicts = VerdictsOf(audit, options.thresholds);
  return audit;
}

}  // namespace fourpiles
