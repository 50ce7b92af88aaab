#pragma once

// What a training step would lose: updates that round away in narrow weights, gradients that vanish
// or overflow in a narrow format, and what follows from both: is a float32 master copy needed, is
// loss scaling.
//
//   weights, state, settings → updates → UpdateLosses  (adam_update.h, update_losses.h)
//   gradients → GradientLosses                         (gradient_losses.h)
//
// Results do not depend on threads.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "audit/gradient_losses.h"
#include "audit/thresholds.h"
#include "audit/training_state.h"
#include "audit/update_losses.h"
#include "fourpiles/formats.h"
#include "fourpiles/result.h"
#include "tensors/open_checkpoint.h"

namespace fourpiles {

// Where the parts of a step come from. The checkpoints must outlive the audit.
struct StepFiles {
  const Checkpoint* weights = nullptr;
  const Checkpoint* state = nullptr;      // nullptr: the state is beside the weights
  const Checkpoint* gradients = nullptr;  // nullptr: its gradients are those beside the weights
};

struct StepProgress {
  std::int64_t elements_done = 0;
  std::int64_t elements = 0;
};

struct StepOptions {
  std::vector<NumberFormat> formats = {};  // empty: bfloat16 and float16
  // Nothing: what the optimizer in the checkpoint says (tensors/optimizer_groups.h), else what
  // PyTorch has by default. Without a learning rate from either there are no updates, and neither
  // where a file of gradients is given without one.
  std::optional<double> learning_rate = {};
  std::optional<double> beta1 = {};
  std::optional<double> beta2 = {};
  std::optional<double> epsilon = {};
  std::optional<double> weight_decay = {};  // AdamW's
  std::optional<double> step = {};          // nothing: what the state says
  std::optional<MomentPatterns> moments = {};
  Thresholds thresholds = DefaultThresholds();  // of the verdicts
  std::vector<std::string> filters = {};  // names of weights and gradients, as of InventoryChoice
  int threads = 1;
  std::function<void(const StepProgress&)> progress = {};  // now and then, on one thread
};

// A number that shaped the result, and who said so.
struct StepSetting {
  std::string_view name =
      {};  // "learning_rate", "beta1", "beta2", "epsilon", "weight_decay", "step"
  double value = 0;
  std::string_view from = {};  // "given", "the checkpoint", "default of torch.optim.Adam", …
};

struct TensorUpdates {
  std::int32_t tensor = 0;  // of the checkpoint with the weights
  std::string name = {};
  double step = 0;
  std::vector<UpdateLosses> formats = {};  // as StepAudit::formats
};

struct UpdateAudit {
  std::vector<TensorUpdates> tensors = {};      // in the order of the checkpoint
  std::vector<UpdateLosses> totals = {};        // as StepAudit::formats
  std::vector<std::string> without_state = {};  // weights that the optimizer keeps nothing of
};

struct TensorGradients {
  std::int32_t tensor = 0;  // of the checkpoint with the gradients
  std::string name = {};
  GradientFacts facts = {};
  std::vector<GradientLosses> formats = {};  // as StepAudit::formats
};

struct GradientAudit {
  std::vector<TensorGradients> tensors = {};
  GradientFacts facts = {};                 // of all
  std::vector<GradientLosses> totals = {};  // as StepAudit::formats
};

enum class StepQuestion { kMasterCopy, kLossScaling };

// An answer for one format, and why.
struct StepVerdict {
  StepQuestion question = StepQuestion::kMasterCopy;
  std::int32_t format = 0;  // of StepAudit::formats
  bool needed = false;
  // The figure that decides, and what it is compared with: more than the threshold is too much.
  std::string_view what = {};  // "share of the updates' magnitude that is lost"
  double value = 0;
  double threshold = 0;
  std::string_view source = {};  // of the threshold
  std::string sentence = {};     // "Keep a float32 master copy of the weights: …"
};

struct StepAudit {
  std::vector<NumberFormat> formats = {};
  std::vector<StepSetting> settings = {};       // of the updates
  std::optional<UpdateAudit> updates = {};      // nothing: no learning rate is known
  std::optional<GradientAudit> gradients = {};  // nothing: there are none
  std::vector<StepVerdict> verdicts = {};
};

// Errors: settings that are no rates, groups of the optimizer that differ in one, a format that
// FormatGrid does not take, neither updates nor gradients to be audited (kUsage); those of
// FindTrainingState and TensorValues, settings in the checkpoint that are no rates, a step below 1
// (kInput).
Result<StepAudit> AuditStep(const StepFiles& files, const StepOptions& given);

// "master_copy", "loss_scaling"
std::string_view Name(StepQuestion question);

}  // namespace fourpiles
