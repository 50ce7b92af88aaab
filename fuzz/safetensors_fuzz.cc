// ReadSafetensors: whatever the bytes, each tensor that is listed lies within the file and is as
// long as its shape and type say; and in a file that is accepted, tensors cover the data once.

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/byte_source.h"
#include "base/check.h"
#include "tensors/safetensors.h"

namespace fourpiles {
namespace {

void Read(std::span<const std::byte> bytes) {
  const MemorySource source("x", bytes);
  FileReading reading = ReadSafetensors(source);
  std::int64_t covered = 0;
  for (const FileTensor& tensor : reading.tensors) {
    CHECK(tensor.offset >= 8 && tensor.bytes >= 0 && tensor.offset + tensor.bytes <= source.Size());
    CHECK(ElementsOf(tensor.shape).value() == tensor.elements);
    CHECK(!tensor.type || StorageBytes(tensor.elements, *tensor.type).value() == tensor.bytes);
    covered += tensor.bytes;
  }
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
