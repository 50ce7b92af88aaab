#pragma once

// Which files of a folder are the model.

#include <string>
#include <string_view>
#include <vector>

#include "fourpiles/result.h"

namespace fourpiles {

struct FolderContent {
  std::string index = {};               // of a sharded model; empty: none
  std::vector<std::string> files = {};  // of tensors, where there is no index
  bool is_split = false;                // the files are the numbered parts of one model
  bool is_distributed = false;          // `.metadata` says what its other files hold
  bool is_deepspeed = false;            // the files are those of DeepSpeed's ranks
  std::string pointer = {};  // a file that names the folder within this one that has the model
};

// By the names of the files, in this order: an index of safetensors, safetensors, GGUF, a
// distributed checkpoint, the ranks of DeepSpeed, an index of shards of PyTorch, files of PyTorch
// and other kinds, a file that names the latest checkpoint. A folder with documents alone has no
// files. Errors: a folder that cannot be listed or has nothing of a model (kInput);
// one that holds several models, of which one must be named (kUsage).
Result<FolderContent> ModelFilesOf(const std::string& path);

// The folder that the text of such a pointer means: the name itself, and of a number N the folder
// iter_000000N of Megatron-LM. Empty: it is no name of one folder.
std::string LatestFolder(std::string_view text);

// Whether the names are those of one file, or of parts of the same model:
// "model-00001-of-00004.safetensors" and "model-00002-of-00004.safetensors".
bool ArePartsOfOne(const std::vector<std::string>& names);

}  // namespace fourpiles
