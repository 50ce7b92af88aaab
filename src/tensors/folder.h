#pragma once

// Which files of a folder are the model.

#include <string>
#include <vector>

#include "fourpiles/result.h"

namespace fourpiles {

struct FolderContent {
  std::string index = {};               // of a sharded model; empty: none
  std::vector<std::string> files = {};  // of tensors, where there is no index
  bool is_split = false;                // the files are the numbered parts of one model
};

// By the names of the files, in this order: an index of safetensors, safetensors, GGUF, an index of
// shards of PyTorch, files of PyTorch and other kinds. A folder with documents
// alone has no files. Errors: a folder that cannot be listed or has nothing of a model (kInput);
// one that holds several models, of which one must be named (kUsage).
Result<FolderContent> ModelFilesOf(const std::string& path);

// Whether the names are those of one file, or of parts of the same model:
// "model-00001-of-00004.safetensors" and "model-00002-of-00004.safetensors".
bool ArePartsOfOne(const std::vector<std::string>& names);

}  // namespace fourpiles
