#pragma once

// The parts that AuditStep is made of (step.h).

#include <span>
#include <string_view>
#include <vector>

#include "audit/adam_update.h"
#include "audit/format_grid.h"
#include "audit/step.h"

namespace fourpiles {

// Elements that are taken at once; sums over such blocks are merged in their order.
inline constexpr std::int64_t kStepBlock = 65'536;
// Blocks that are in work before they are merged, for each thread.
inline constexpr std::int64_t kBlocksAhead = 4;

// What both passes are given.
struct StepWork {
  const StepOptions& options;
  std::vector<FormatGrid> grids = {};  // as the formats
  std::int64_t elements = 0;           // of all that is to be done
  std::int64_t done = 0;

  // Tells of the progress.
  void Advance(std::int64_t count);
};

// The numbers of the update, and who said each.
struct StepSettings {
  std::optional<AdamSettings> adam = {};  // nothing: nobody gave a learning rate
  std::vector<StepSetting> used = {};
};
// What the caller gave, else what the optimizer beside the state says, else PyTorch's defaults.
// Errors: a number that is given and may not be, groups of the optimizer that differ (kUsage); one
// of the checkpoint that may not be (kInput).
Result<StepSettings> ChooseSettings(const Checkpoint& state, const StepOptions& options);

// A step that the caller gave, or of which the state tells. Errors: there is none (kUsage), or it
// is below 1 or no number (kInput).
Result<double> StepOf(const WeightState& weight, const TrainingState& state,
                      const Checkpoint& checkpoint, const StepOptions& options);

Result<UpdateAudit> AuditUpdates(const StepFiles& files, const TrainingState& state,
                                 const AdamSettings& settings, StepWork& work);

// The gradients of a file that has nothing else, or those beside the weights.
std::vector<std::int32_t> GradientTensors(const StepFiles& files, const StepOptions& options);
Result<GradientAudit> AuditGradients(const Checkpoint& checkpoint,
                                     const std::vector<std::int32_t>& tensors, StepWork& work);

std::vector<StepVerdict> VerdictsOf(const StepAudit& audit, const Thresholds& thresholds);

}  // namespace fourpiles
