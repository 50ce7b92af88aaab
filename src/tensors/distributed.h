#pragma once

// Distributed checkpoints of PyTorch (torch.distributed.checkpoint): each rank saves its own chunks
// of the tensors into files `__RANK_N.distcp`, and `.metadata`, a pickle, says which tensors there
// are, into which chunks they are cut, and in which bytes of which file a chunk lies:
//
//   Metadata{state_dict_metadata: {name: TensorStorageMetadata{properties, size, chunks:
//            [ChunkStorageMetadata{offsets, sizes}]} | BytesStorageMetadata},
//            storage_data: {MetadataIndex{fqn, offset}: _StorageInfo{relative_path, offset,
//            length}}}
//
// A chunk is whole: what torch.save writes of one tensor. Objects that are no tensors are what it
// writes of them (torch/distributed/checkpoint/metadata.py, filesystem.py; PyTorch 1.13 has them
// under torch/distributed/_shard).

#include <cstdint>
#include <string>
#include <vector>

#include "tensors/pickle.h"
#include "tensors/tiling.h"
#include "tensors/torch_tensors.h"

namespace fourpiles {

// A range of one of the files.
struct DistributedPlace {
  std::int32_t file = 0;  // which of DistributedContents::files
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
};

struct DistributedTensor {
  std::string name = {};
  const TorchType* type = nullptr;
  std::vector<std::int64_t> shape = {};
  std::vector<TensorBox> chunks = {};         // which hold each element once
  std::vector<DistributedPlace> places = {};  // of each chunk
};

struct DistributedObject {
  std::string name = {};
  DistributedPlace place = {};
};

struct DistributedContents {
  std::vector<std::string> files = {};  // as the pickle names them: any bytes
  std::vector<DistributedTensor> tensors = {};
  std::vector<DistributedObject> objects = {};  // what are no tensors
};

// Whether a pickle is that of a distributed checkpoint.
bool IsDistributed(const Pickle& pickle);

// What the pickle says. A tensor whose chunks do not make it, or whose chunks have no place, is a
// finding and not among the tensors. No two places overlap.
DistributedContents DistributedContentsOf(const Pickle& pickle, FileFindings& findings);

}  // namespace fourpiles
