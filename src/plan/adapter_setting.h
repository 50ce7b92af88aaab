#pragma once

// Which parameters a job trains: those of an adapter, which is written as
// "lora:rank=16,targets=q_proj+v_proj,dropout=0.05", or all but frozen parts, or some parts alone.

#include <optional>
#include <string>
#include <string_view>

#include "fourpiles/result.h"
#include "model/adapter.h"
#include "plan/setting_reader.h"

namespace fourpiles {

inline constexpr std::string_view kAdapterSetting = "adapter";

// The adapter that was set, if any; "none" is none. What is left out has the defaults of peft's
// configs: rank 8, of VeRA 256, no dropout; but targets are all linear layers, and trained tokens
// are 20. `alpha` scales what the adapter puts out, which takes no memory; it is read and left.
Result<std::optional<Adapter>> ReadAdapter(const SettingReader& reader);

// As the setting takes it.
std::string AdapterSpec(const Adapter& adapter);

struct TrainedParts {
  std::optional<Adapter> adapter = {};
  std::string freeze = {};  // as typed
  std::string train_only = {};
};

// Reads "adapter", "freeze" and "train-only", and changes the job's network accordingly. Without
// any of them fine-tuning has an adapter, LoRA of rank 16, unless of the model no more is known
// than its parameters.
// Errors: two of them that contradict each other, and those of WithAdapter and WithFrozen.
Result<TrainedParts> ReadTrainedParts(SettingReader& reader, Job& job);

// Error: the adapter does not go with the implementation, or with layers that run again.
Result<void> CheckAdapter(const Job& job);

}  // namespace fourpiles
