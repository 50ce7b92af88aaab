// ReadSafetensorsIndex: whatever the bytes, each tensor stands once, in the order of the names, and
// in a shard that there is; and shards that hold nothing lack every tensor of the index.

#include <cstdint>
#include <span>

#include "base/check.h"
#include "tensors/safetensors_index.h"

namespace fourpiles {
namespace {

void Read(std::span<const std::byte> bytes) {
  const SafetensorsIndex index = ReadSafetensorsIndex(MemorySource("x", bytes));
  for (std::size_t i = 0; i < index.entries.size(); ++i) {
    const auto& [tensor, shard] = index.entries[i];
    CHECK(i == 0 || index.entries[i - 1].first < tensor);
    CHECK(shard >= 0 && static_cast<std::size_t>(shard) < index.shards.size());
  }
  const bool lacks_some = WorstOf(CheckAgainstIndex(index, {}, "x")) == FileVerdict::kRefuse;
  CHECK(lacks_some == !index.entries.empty());
}

}  // namespace
}  // namespace fourpiles

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fourpiles::Read(std::as_bytes(std::span(data, size)));
  return 0;
}
