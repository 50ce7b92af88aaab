#pragma once

// The shapes of a run of Megatron-LM: its own arguments, "num-layers", as a config.json of
// model_type "megatron".

#include <cstdint>

#include "base/json.h"
#include "base/json_fields.h"

namespace fourpiles {

// For so many tensor-parallel ranks, which the vocabulary is filled up for. Error: an argument that
// is not described, a vocabulary whose size is not known.
Result<Json> MegatronConfigOf(const Fields& row, const Fields& arch, std::int64_t tensor);

}  // namespace fourpiles
