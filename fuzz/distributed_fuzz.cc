// DistributedContentsOf: whatever the pickle of a distributed checkpoint says, the chunks of a
// tensor that is listed hold each element once, and no two places overlap. The first byte of the
// input chooses: the rest as a pickle, or as the numbers of a pickle of the right form, so that the
// search gets to the chunks.

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "base/byte_source.h"
#include "base/check.h"
#include "tensors/distributed.h"

namespace fourpiles {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::int64_t kMostCounted = 4096;  // elements

bool IsIn(const TensorBox& box, const std::vector<std::int64_t>& shape, std::int64_t element) {
  for (std::size_t i = shape.size(); i-- > 0; element /= shape[i]) {
    const std::int64_t index = element % shape[i];
    if (index < box.start[i] || index >= box.start[i] + box.shape[i]) {
      return false;
    }
  }
  return true;
}

void CheckTensor(const DistributedTensor& tensor) {
  CHECK(tensor.type != nullptr && tensor.chunks.size() == tensor.places.size());
  for (const TensorBox& chunk : tensor.chunks) {
    CHECK(LiesWithin(chunk, tensor.shape));
  }
  const std::int64_t elements = ElementsOf(tensor.shape).value();
  for (std::int64_t element = 0; element < elements && elements <= kMostCounted; ++element) {
    CHECK(std::ranges::count_if(tensor.chunks, [&](const TensorBox& chunk) {
            return IsIn(chunk, tensor.shape, element);
          }) == 1);
  }
}

void Read(Bytes bytes) {
  const MemorySource source("x", bytes);
  const Pickle pickle = ReadPickle(source, 0);
  for (const std::string_view name : UnknownGlobals(pickle, PickleUse::kDistributed)) {
    CHECK(!IsKnownGlobal(name));
  }
  FileFindings findings("x");
  const DistributedContents contents = DistributedContentsOf(pickle, findings);
  std::vector<DistributedPlace> places;
  for (const DistributedTensor& tensor : contents.tensors) {
    CheckTensor(tensor);
    places.insert(places.end(), tensor.places.begin(), tensor.places.end());
  }
  for (const DistributedObject& object : contents.objects) {
    places.push_back(object.place);
  }
  std::ranges::sort(places, {}, [](const DistributedPlace& place) {
    return std::tuple(place.file, place.offset);
  });
  for (std::size_t i = 0; i < places.size(); ++i) {
    CHECK(static_cast<std::size_t>(places[i].file) < contents.files.size());
    CHECK(i == 0 || places[i].file != places[i - 1].file ||
          places[i - 1].offset + places[i - 1].bytes <= places[i].offset);
  }
}

// ---- a pickle of the right form: its numbers are the bytes

class Writer {
 public:
  explicit Writer(Bytes bytes) : bytes_(bytes) {}

  std::string Metadata() {
    const int dimensions = Next() % 4;
    const int chunks = Next() % 8;
    std::string list = "](";
    std::string places = "}(";
    const std::string shape = Numbers(dimensions);
    for (int i = 0; i < chunks; ++i) {
      const std::string start = Numbers(dimensions);
      list += Object("ChunkStorageMetadata",
                     Field("offsets", start) + Field("sizes", Numbers(dimensions)));
      places += Object("MetadataIndex", Field("fqn", Text("w")) + Field("offset", start));
      places += Object("_StorageInfo", Field("relative_path", Text(Next() % 2 == 0 ? "a" : "b")) +
                                           Field("offset", Number(i * 8 + Next() % 9)) +
                                           Field("length", Number(Next() % 9)));
    }
    const std::string properties = Class("TensorProperties") + ")\x81(ctorch\nfloat32\nNtb";
    const std::string tensor =
        Object("TensorStorageMetadata", Field("properties", properties) + Field("size", shape) +
                                            Field("chunks", list + "e"));
    return "\x80\x02" +
           Object("Metadata", Field("state_dict_metadata", "}(" + Text("w") + tensor + "u") +
                                  Field("storage_data", places + "u")) +
           ".";
  }

 private:
  int Next() {
    if (bytes_.empty()) {
      return 0;
    }
    const int byte = std::to_integer<int>(bytes_.front());
    bytes_ = bytes_.subspan(1);
    return byte;
  }
  static std::string Class(const std::string& name) {
    return "ctorch.distributed.checkpoint.metadata\n" + name + "\n";
  }
  static std::string Object(const std::string& name, const std::string& fields) {
    return Class(name) + ")\x81}(" + fields + "ub";
  }
  static std::string Text(const std::string& text) {
    return std::string("X") + static_cast<char>(text.size()) + std::string(3, '\0') + text;
  }
  static std::string Field(const std::string& name, const std::string& value) {
    return Text(name) + value;
  }
  static std::string Number(int number) { return std::string("K") + static_cast<char>(number); }
  std::string Numbers(int count) {
    std::string tuple = "ctorch\nSize\n((";
    for (int i = 0; i < count; ++i) {
      tuple += Number(Next() % 6);
    }
    return tuple + "ttR";
  }

  Bytes bytes_;
};

}  // namespace
}  // namespace fourpiles

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  if (!bytes.empty() && bytes.front() == std::byte{0xFF}) {
    const std::string pickle = fourpiles::Writer(bytes.subspan(1)).Metadata();
    fourpiles::Read(std::as_bytes(std::span(pickle)));
  } else {
    fourpiles::Read(bytes);
  }
  return 0;
}
