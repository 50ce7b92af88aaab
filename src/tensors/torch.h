#pragma once

// Checkpoints of PyTorch: what torch.save() writes. Three containers hold the same two things, a
// pickle that describes the tensors and the bytes of their storages (torch/serialization.py):
//
//   zip     since 1.6: ROOT/data.pkl, ROOT/data/KEY a storage, ROOT/version, ROOT/byteorder
//   stream  before: a magic number, a protocol, facts of the machine, the object and the keys of
//           its storages, each a pickle; then of each storage the number of elements and the bytes
//   tar     before 0.1.10: members for storages and tensors, and the object (torch_tar.cc)
//
// The pickle is a program. It is read, never run (pickle.h); what it would import beyond a state
// dict is reported by name.

#include "base/byte_source.h"
#include "tensors/checkpoint.h"
#include "tensors/pickle.h"

namespace fourpiles {

// A zip archive: a checkpoint of PyTorch, TorchScript, or any other, whose pickles are looked
// through for what they would import.
FileReading ReadTorchZip(const ByteSource& source);

// The same of one whose pickle may name what that use needs.
FileReading ReadTorchZipFor(const ByteSource& source, PickleUse use);

// The pickle of a checkpoint in a zip archive, by itself. Errors (kInput): there is none, or it
// cannot be unpacked. A broken one is given with its fault.
Result<Pickle> ReadTorchPickle(const ByteSource& source);

// A file that begins with a pickle: a checkpoint of the stream form, or pickles alone, which have
// no tensors that could be told.
FileReading ReadPickleFile(const ByteSource& source);

// A tar archive: a checkpoint of the tar form, or refused.
FileReading ReadTorchTar(const ByteSource& source);

}  // namespace fourpiles
