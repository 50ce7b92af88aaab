#pragma once

// One model in several GGUF files: NAME-00001-of-00003.gguf and so on, each with the keys split.no
// (from 0), split.count and split.tensors.count (llama.cpp, tools/gguf-split).

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "tensors/checkpoint.h"

namespace fourpiles {

struct SplitName {
  std::string stem = {};    // "m" of "m-00002-of-00003.gguf"; with its folder, where one was given
  std::int64_t number = 0;  // from 1 to `count`
  std::int64_t count = 0;
  std::string ending = ".gguf";

  friend bool operator==(const SplitName&, const SplitName&) = default;
};

// Nothing: not the name of a part. The shards of safetensors are named alike.
std::optional<SplitName> ParseSplitName(std::string_view file_name);
// Of a part of GGUF.
std::string SplitFileName(const SplitName& name);

// One file, as it was read.
struct SplitPart {
  std::string_view file_name = {};
  const Json::Object& facts;  // of its FileReading
  std::int64_t tensors = 0;
};

// What keeps the parts from being one whole model: a name of another model, a part that is missing
// or given twice, and of GGUF keys that disagree with the names or with the number of tensors. Each
// finding is a refusal.
std::vector<Finding> CheckSplit(std::span<const SplitPart> parts);

}  // namespace fourpiles
