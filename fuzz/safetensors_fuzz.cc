// ReadSafetensors: whatever the bytes, each tensor that is listed lies within the file and is as
// long as its shape and type say; in a file that is accepted, tensors cover the data once; and what
// is told of packed weights adds up to the tensors' bytes.

#include <cstdint>
#include <memory>
#include <span>

#include "base/byte_source.h"
#include "base/check.h"
#include "tensors/inventory.h"
#include "tensors/quantised.h"
#include "tensors/safetensors.h"

namespace fourpiles {
namespace {

void Read(std::span<const std::byte> bytes) {
  const MemorySource source("x", bytes);
  const FileReading reading = ReadSafetensors(source);
  std::int64_t covered = 0;
  for (const FileTensor& tensor : reading.tensors) {
    CHECK(tensor.offset >= 8 && tensor.bytes >= 0 && tensor.offset + tensor.bytes <= source.Size());
    CHECK(ElementsOf(tensor.shape).value() == tensor.elements);
    CHECK(!tensor.type || StorageBytes(tensor.elements, *tensor.type).value() == tensor.bytes);
    covered += tensor.bytes;
  }
  Checkpoint checkpoint = {.tensors = reading.tensors};
  checkpoint.files.push_back({.source = std::make_shared<MemorySource>("x", bytes)});
  const StoredWeights weights = StoredWeightsOf(checkpoint);
  const Inventory inventory = InventoryOf(checkpoint, weights);
  CHECK(inventory.total.bytes == covered);
  CHECK(inventory.total.tensors == static_cast<std::int64_t>(reading.tensors.size()));
  if (WorstOf(reading.findings) < FileVerdict::kRefuse) {
    CHECK(covered + *reading.facts[1].second.AsInteger() == source.Size());
  }
}

}  // namespace
}  // namespace fourpiles

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fourpiles::Read(std::as_bytes(std::span(data, size)));
  return 0;
}
