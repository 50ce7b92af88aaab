#pragma once

// Which files of a folder are the model.

#include <string>
#include <string_view>
#include <vector>

#include "fourpiles/result.h"

namespace fourpiles {

// How the files of a model belong together.
enum class FolderKind {
  kFiles,        // one file of tensors, or the numbered parts of one model; none: documents alone
  kIndex,        // the document `name` says which files there are
  kDistributed,  // `.metadata` does
  kDeepSpeed,    // each rank of DeepSpeed has its own
  kPointer,      // the file `name` says which folder within this one has the model
};

struct FolderContent {
  FolderKind kind = FolderKind::kFiles;
  std::string name = {};
  std::vector<std::string> files = {};  // of kFiles and kDeepSpeed
  // All files that may be pickles, of the model or beside it: pytorch_model.bin, optimizer.pt.
  std::vector<std::string> pickles = {};
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
