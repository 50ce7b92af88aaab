#pragma once

// A measured training run as a job: its shapes become a config.json, its words settings
// (run_words.h). No run is known by its name.

#include <string>

#include "base/json_fields.h"
#include "plan/job.h"

namespace fourpiles {

struct TrainingRun {
  Job job = {};
  std::string measures = {};  // "peak", "between_steps", "after_init", "pile:weights"
  std::string metric = {};    // "allocated", "reserved", "smi", "unknown"
  std::string unit = {};      // of the figure, where a note says that it is not what is printed
  bool of_last_rank = false;  // else of the fullest
  bool sums_devices = false;  // the figure is of all devices together
  std::optional<Bytes> context = {};  // what the driver takes, where a note says it
};

// Whether the row is of training, by its fields.
bool IsTrainingRun(const Fields& row);

// Error: what keeps the row from being expressed.
Result<TrainingRun> TrainingRunOf(const Fields& row);

}  // namespace fourpiles
