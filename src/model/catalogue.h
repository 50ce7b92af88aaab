#pragma once

// Where a model comes from when it is named: the catalogue of data/models. open_model.h has those
// of files.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "model/names.h"
#include "model/network.h"
#include "tensors/checkpoint.h"
#include "tensors/quantised_config.h"

namespace fourpiles {

// A record of the catalogue: a config.json with a name and a source.
struct ModelRecord {
  Names names = {};
  Json config = {};
  // What a public file says the checkpoint holds; not known for all.
  std::optional<std::int64_t> parameters = {};
  bool parameters_verified = false;          // the same number stands in a second public file
  std::vector<std::string> unverified = {};  // keys that one source alone gives
  std::string source = {};
  std::string checked = {};  // the day, as 2026-11-29
};

// What the files of a model hold, by the format of the values.
struct CheckpointTotals {
  struct Format {
    std::string name = {};  // "bfloat16", "q4_k", "int4, gptq, groups of 128"
    std::int64_t bytes = 0;
    std::int64_t parameters = 0;  // logical
  };
  std::int64_t bytes = 0;  // of all tensors
  std::int64_t parameters = 0;
  std::vector<Format> formats = {};                             // by bytes, largest first
  std::shared_ptr<const std::vector<FileTensor>> tensors = {};  // of all files
  bool gguf = false;                                            // with llama.cpp's names
};

struct Model {
  std::string name = {};    // the id, or the file's
  std::string source = {};  // where its sizes come from: the record's source, or the path
  Network network = {};
  DeclaredQuantisation quantisation = {};  // what its config says of how the weights are stored
  // What a person should know of the files: findings, and differences from the network.
  std::vector<std::string> warnings = {};
  std::optional<CheckpointTotals> checkpoint = {};  // where tensors were read
  bool tensors_alone = false;                       // no config says what the network computes
};

// A record by itself; `where` names it in errors.
Result<ModelRecord> ModelRecordFromJson(const Json& json, std::string_view where);

// The whole catalogue, sorted by id.
std::vector<ModelRecord> ModelRecords();

// The catalogue's model of that id, alias, or last part of an alias, whatever the case. Errors: an
// unknown name (kUsage); an architecture that this version cannot build (kInput).
Result<Model> FindModel(std::string_view name, std::string_view where = "MODEL");

}  // namespace fourpiles
