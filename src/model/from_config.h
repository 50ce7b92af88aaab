#pragma once

// From a config.json, as Hugging Face writes it, to a network. A record of data/models has the same
// fields and a few more.

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "model/network.h"

namespace fourpiles {

// The network of the language model; of a multimodal config its text_config. `where` names the
// document in errors. Errors, of kind kInput: a field that is missing or misfits, sizes that do not
// go together, a model_type that is not known (the hint lists those that are).
Result<Network> NetworkFromConfig(const Json& config, std::string_view where);

// The model_types that NetworkFromConfig knows, sorted.
std::vector<std::string_view> KnownModelTypes();

}  // namespace fourpiles
