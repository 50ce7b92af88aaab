#pragma once

// Every way to run a job over its devices that its settings leave open: layout, sharding,
// micro-batch, what runs again.

#include <cstdint>
#include <optional>
#include <vector>

#include "plan/change_command.h"
#include "plan/job.h"

namespace fourpiles {

// What was set, and so stays.
struct FixedChoices {
  std::optional<std::int64_t> tensor = {};
  bool sequence_parallel = false;  // set: on, wherever layers are cut
  std::optional<std::int64_t> context = {};
  std::optional<std::int64_t> pipeline = {};
  std::optional<std::int64_t> chunks = {};
  std::optional<PipelineSchedule> schedule = {};
  std::optional<std::int64_t> first_stage_layers = {};
  std::optional<std::int64_t> last_stage_layers = {};
  std::optional<std::int64_t> expert = {};
  std::optional<std::int64_t> expert_tensor = {};
  std::optional<std::int64_t> micro_batch_size = {};
  std::optional<std::int64_t> gradient_accumulation = {};
  bool sharding = false;  // --zero or --fsdp
  bool recompute = false;
  std::optional<std::int64_t> samples = {};  // of a step, all devices together
};

// Errors: values that no job takes.
Result<FixedChoices> ReadFixedChoices(const Settings& settings);

// The settings that a choice sets itself, by name; those of a layout's shape cannot stand without
// it.
Settings WithoutShape(const Settings& settings);

struct LayoutChoice {
  Layout layout = {};
  std::int64_t micro_batch_size = 1;
  std::int64_t gradient_accumulation = 1;
  Recompute recompute = {};
};

// Of a job whose network is padded for its layout's tensor-parallel ranks, and for as many.
std::vector<LayoutChoice> LayoutChoices(const Job& job, const FixedChoices& fixed);

// Sets them in a job of the same devices.
void Choose(TrainingJob& training, const LayoutChoice& choice);

// How the choice is typed, without what is a default.
SettingChanges ChangesOf(const LayoutChoice& choice, const Job& job);

// Samples of a step.
std::int64_t SamplesOf(const LayoutChoice& choice);

// "zero 1", "fsdp full", "hybrid:8"; empty: nothing is sharded.
std::string ShardingWord(const Layout& layout);

// Sizes of tensor parallelism that are tried: powers of two within a node, or the one that is set.
std::vector<std::int64_t> TensorSizes(const FixedChoices& fixed, const Layout& layout);

}  // namespace fourpiles
