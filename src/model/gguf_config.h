#pragma once

// From what a GGUF file says of its network to the config.json of the same network.

#include <span>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "fourpiles/result.h"
#include "tensors/checkpoint.h"

namespace fourpiles {

// An object with Hugging Face's keys, for NetworkFromConfig. What the keys leave open (biases,
// norms of queries and keys, tied embeddings) is read off the tensors, of all parts of a split
// model. `where` names the file in errors. Errors (kInput): no or an unknown general.architecture,
// a file that holds no model but an adapter or the like, a key that is missing or misfits.
Result<Json> ConfigFromGguf(const std::vector<MetadataEntry>& metadata,
                            std::span<const FileTensor> tensors, std::string_view where);

// The values of general.architecture that ConfigFromGguf knows, sorted.
std::vector<std::string_view> KnownGgufArchitectures();

}  // namespace fourpiles
