#pragma once

// A distributed checkpoint of PyTorch with its files: distributed.h has what its `.metadata` says,
// here the chunks are held against it.

#include <string>

#include "tensors/open_checkpoint.h"

namespace fourpiles {

inline constexpr std::string_view kDistributedMetadata = ".metadata";

// The `.metadata` of a folder and the files that it names. Every tensor stands once, with the whole
// shape; one of several chunks has `pieces`, in the order of the chunks. A tensor of which a chunk
// cannot be read, or is another than `.metadata` says, is a finding and not among the tensors.
// Objects that are no tensors stand in the metadata of the first file: their values where they are
// numbers, texts or bools, else null. Errors (kInput): a `.metadata` that cannot be opened.
Result<Checkpoint> OpenDistributed(const std::string& folder);

}  // namespace fourpiles
