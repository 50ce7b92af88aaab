#pragma once

// A path that a person gives → the files that belong together, and every tensor in them.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_source.h"
#include "base/json.h"
#include "tensors/checkpoint.h"

namespace fourpiles {

// For config.json and the like: real ones have up to 3 MiB, and Python writes their infinities.
inline constexpr JsonLimits kConfigLimits = {.bytes = std::int64_t{4} << 20, .non_finite = true};

struct CheckpointFile {
  std::string name = {};  // within the checkpoint: "model-00001-of-00004.safetensors"
  std::string_view format = {};
  std::int64_t bytes = 0;  // of the whole file
  std::vector<MetadataEntry> metadata = {};
  Json::Object facts = {};
  std::vector<Finding> findings = {};
  // To read the tensors from; nullptr: closed, to be opened again in its folder.
  std::shared_ptr<const ByteSource> source = {};
  std::string folder = {};
};

// The JSON documents of a Hugging Face folder that say what packed tensors mean; null when absent.
struct CheckpointConfigs {
  Json config = {};        // config.json
  Json quantization = {};  // hf_quant_config.json, quantize_config.json or quant_config.json
};

struct Checkpoint {
  std::string path = {};  // as it was given
  std::vector<CheckpointFile> files = {};
  std::vector<FileTensor> tensors = {};      // of all files
  std::vector<TensorStorage> storages = {};  // of all files
  CheckpointConfigs configs = {};
  // What the index of a sharded model or the documents say: {"total_size", 281241268224}.
  Json::Object facts = {};
  std::vector<Finding> findings = {};  // about the files as a set
};

// The worst finding of all files and of the set.
FileVerdict VerdictOf(const Checkpoint& checkpoint);

// Opens a file of tensors, which is recognised by its content; an index with its shards or a
// config.json, by the ending .json; or a folder that has one of these. Files that another file
// names lie within its folder, and are no links, but for those of the Hugging Face cache. What is
// wrong with a file is a finding. Errors (kInput): a path that cannot be read.
Result<Checkpoint> OpenCheckpoint(const std::string& path);

// The parts of one model, given as one path each.
Result<Checkpoint> OpenCheckpointParts(const std::vector<std::string>& paths);

// The same as OpenCheckpoint(), but for one part of a model: all its parts, which lie beside it.
Result<Checkpoint> OpenWholeCheckpoint(const std::string& path);

// Those of the files as a set first, then those of each file.
std::vector<Finding> AllFindings(const Checkpoint& checkpoint);

// The bytes of one tensor of at most `limit` bytes; nothing when it is longer, is compressed, does
// not lie in order, or cannot be read.
std::optional<std::string> TensorBytes(const Checkpoint& checkpoint, const FileTensor& tensor,
                                       std::int64_t limit);

}  // namespace fourpiles
