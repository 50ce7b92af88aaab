// ReadTensorFile on zip archives, tar archives, streams and pickles: whatever the bytes, each
// tensor that is listed lies within a storage of the file, and the storage within the file; and
// what it holds adds up.

#include <cstdint>
#include <memory>
#include <span>

#include "base/byte_source.h"
#include "base/check.h"
#include "tensors/deepspeed_join.h"
#include "tensors/inventory.h"
#include "tensors/piles.h"
#include "tensors/quantised.h"
#include "tensors/torch.h"

namespace fourpiles {
namespace {

void CheckTensor(const FileTensor& tensor, const FileReading& reading, std::int64_t size) {
  if (tensor.storage < 0) {  // of the device "meta": a shape without bytes
    CHECK(tensor.bytes == 0 && tensor.type == nullptr);
    return;
  }
  CHECK(static_cast<std::size_t>(tensor.storage) < reading.storages.size());
  const TensorStorage& storage = reading.storages[static_cast<std::size_t>(tensor.storage)];
  CHECK(ElementsOf(tensor.shape).value() == tensor.elements);
  CHECK(tensor.strides.empty() || tensor.strides.size() == tensor.shape.size());
  CHECK(tensor.packed == storage.packed);
  CHECK(storage.packed || storage.offset + storage.bytes <= size);
  const std::int64_t begin = tensor.offset - (storage.packed ? 0 : storage.offset);
  if (tensor.elements > 0) {
    CHECK(begin >= 0 && begin < storage.bytes);
    CHECK(!tensor.strides.empty() || begin + tensor.bytes <= storage.bytes);
  }
}

// A file that is a model's and its optimizer's as DeepSpeed writes them, as if of one rank: each
// parameter that is made of the flat vectors is whole, and lies within the file.
void JoinOneRank(const ByteSource& source, const FileReading& reading) {
  const auto facts = ReadZeroFacts(source);
  const auto shapes = ReadParameterShapes(source);
  if (!facts || !shapes) {
    return;
  }
  const JoinedVectors joined =
      JoinFlatVectors(reading.tensors, {0}, {.facts = *facts, .groups = *shapes});
  for (const FileTensor& tensor : joined.tensors) {
    Checked bytes = tensor.pieces.empty() ? Checked(tensor.bytes) : Checked(0);
    CHECK(ElementsOf(tensor.shape).value() == tensor.elements);
    CHECK(tensor.elements == 0 || tensor.offset < source.Size());
    for (const TensorPiece& piece : tensor.pieces) {
      CHECK(piece.offset >= 0 && piece.offset + piece.bytes <= source.Size());
      bytes = bytes + piece.bytes;
    }
    CHECK(bytes.value() == tensor.bytes);
  }
}

// By a letter each: that of a tar archive begins its magic number.
auto* ReaderOf(std::span<const std::byte> bytes) {
  if (bytes.size() > 1 && bytes[0] == std::byte{'P'}) {
    return ReadTorchZip;
  }
  return bytes.size() > 512 && bytes[257] == std::byte{'u'} ? ReadTorchTar : ReadPickleFile;
}

void Read(std::span<const std::byte> bytes) {
  const MemorySource source("x", bytes);
  const FileReading reading = ReaderOf(bytes)(source);
  for (const FileTensor& tensor : reading.tensors) {
    CheckTensor(tensor, reading, source.Size());
  }
  if (bytes.size() > 1 && bytes[0] == std::byte{'P'}) {
    JoinOneRank(source, reading);
  }
  const std::vector<PiledTensor> piles = TensorPilesOf(reading.tensors);
  for (const PiledTensor& pile : piles) {
    CHECK(pile.weight < 0 ||
          piles[static_cast<std::size_t>(pile.weight)].pile == TensorPile::kWeights);
  }
  Checkpoint checkpoint = {.tensors = reading.tensors, .storages = reading.storages};
  checkpoint.files.push_back({.source = std::make_shared<MemorySource>("x", bytes)});
  const StoredWeights weights = StoredWeightsOf(checkpoint);
  const Inventory inventory = InventoryOf(checkpoint, weights);
  CHECK(inventory.total.tensors == static_cast<std::int64_t>(reading.tensors.size()));
}

}  // namespace
}  // namespace fourpiles

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fourpiles::Read(std::as_bytes(std::span(data, size)));
  return 0;
}
