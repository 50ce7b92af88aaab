#pragma once

// A GGUF beside the checkpoint that llama.cpp's converter has made it of: the same tensors under
// other names, those of experts in one, rows of queries and keys in another order.

#include <string>
#include <vector>

#include "audit/audit.h"
#include "tensors/open_checkpoint.h"

namespace fourpiles {

bool IsGguf(const Checkpoint& checkpoint);

struct GgufPairs {
  // Both with the checkpoint's names. Where the converter has turned rows, both have the shape
  // [heads, half a head, 2, …] and lie in the order of the GGUF.
  Checkpoint gguf = {};
  Checkpoint checkpoint = {};
  // In neither: what the converter makes, changes or drops, and what the checkpoint has fused.
  // Tensors are those of the file that had them.
  std::vector<SkippedTensor> left_out = {};
};

// Names are those of CheckpointName (model/gguf_names.h); where the two files have names in common
// already, they stay. Whether rows are turned, and whether 1 was added, the values tell. Errors: as
// TensorValues.
Result<GgufPairs> PairGguf(Checkpoint gguf, Checkpoint checkpoint);

}  // namespace fourpiles
