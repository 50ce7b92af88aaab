// ReadGguf over any bytes: what it lists obeys gguf_rules.h; names of parts are written as
// they were read.

#include <cstdint>
#include <span>

#include "base/check.h"
#include "tensors/gguf.h"
#include "tensors/gguf_rules.h"
#include "tensors/gguf_split.h"

namespace fourpiles {
namespace {

void CheckReading(std::span<const std::byte> bytes) {
  const FileReading reading = ReadGguf(MemorySource("x", bytes));
  const auto file_bytes = static_cast<std::int64_t>(bytes.size());
  CHECK(reading.format == "gguf");
  CHECK(BrokenRule(reading, file_bytes).empty());
  const Json facts = reading.facts;
  const Json* const start = facts.Find("data_start");
  CHECK(start != nullptr || reading.tensors.empty());
  CHECK(start != nullptr || WorstOf(reading.findings) == FileVerdict::kRefuse);
  for (const FileTensor& tensor : reading.tensors) {
    CHECK(start != nullptr && tensor.offset >= *start->AsInteger());
  }
  // No more is kept than the file can hold.
  const auto most_keys = file_bytes / 9;  // a length and a type in version 1, and a byte
  CHECK(static_cast<std::int64_t>(reading.metadata.size()) <= most_keys);
  // One part alone is whole only when it says that it is the first of one.
  const SplitPart part = {"m-00001-of-00001.gguf", reading.facts,
                          static_cast<std::int64_t>(reading.tensors.size())};
  const bool is_whole = CheckSplit(std::span(&part, 1)).empty();
  const Json* const number = facts.Find("split_no");
  CHECK(!is_whole || (number != nullptr && *number->AsInteger() == 0));
}

// A name that reads as a part's is written the same.
void CheckName(std::string_view text) {
  if (const auto name = ParseSplitName(text)) {
    CHECK(name->ending != ".gguf" || SplitFileName(*name) == text);
    CHECK(1 <= name->number && name->number <= name->count);
  }
}

}  // namespace
}  // namespace fourpiles

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fourpiles::CheckReading(std::as_bytes(std::span(data, size)));
  fourpiles::CheckName({reinterpret_cast<const char*>(data), size});
  return 0;
}
