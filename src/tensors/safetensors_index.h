#pragma once

// The index of a sharded model: model.safetensors.index.json says which shard holds which tensor
// (huggingface_hub, serialization/_base.py).

#include <string>
#include <utility>
#include <vector>

#include "base/byte_source.h"
#include "tensors/checkpoint.h"

namespace fourpiles {

struct SafetensorsIndex {
  // Sorted by the name of the tensor.
  std::vector<std::pair<std::string, std::int32_t>> entries = {};  // tensor → shard
  std::vector<std::string> shards = {};                            // file names, sorted
  // "entries", "shards", and where the index has them "total_size" and "total_parameters".
  Json::Object facts = {};
  std::vector<Finding> findings = {};
};

SafetensorsIndex ReadSafetensorsIndex(const ByteSource& source);

// What the index says against what its shards hold: entries that their shard lacks (refused),
// tensors that are in two shards or in none of the entries, a total_size that is not the sum
// (warnings).
std::vector<Finding> CheckAgainstIndex(const SafetensorsIndex& index,
                                       const std::vector<FileTensor>& tensors,
                                       std::string_view where);

}  // namespace fourpiles
