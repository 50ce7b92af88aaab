#pragma once

// How an adapter is written: "lora:rank=16,targets=q_proj+v_proj,dropout=0.05".

#include <optional>
#include <string>
#include <string_view>

#include "fourpiles/result.h"
#include "model/adapter.h"
#include "plan/setting_reader.h"

namespace fourpiles {

inline constexpr std::string_view kAdapterSetting = "adapter";

// The adapter that was set, if any. What is left out has the defaults of peft's LoraConfig: rank 8,
// no dropout; but targets are all linear layers. `alpha` scales what the adapter puts out, which
// takes no memory; it is read and left.
Result<std::optional<LoraAdapter>> ReadAdapter(const SettingReader& reader);

// As the setting takes it.
std::string AdapterSpec(const LoraAdapter& adapter);

}  // namespace fourpiles
