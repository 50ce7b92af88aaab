// ReadPickle: whatever the bytes, the pickle is read or has a fault within them, its values refer
// to values that there are, and there are no more of them than bytes. The first byte of the input
// chooses: the rest as it is, or steps made from it that keep the stack in order, so that the
// search gets behind the first faults.

#include <cstdint>
#include <span>
#include <string>

#include "base/byte_source.h"
#include "base/check.h"
#include "tensors/pickle.h"

namespace fourpiles {
namespace {

using Bytes = std::span<const std::byte>;

void CheckReference(const Pickle& pickle, PickleRef value) {
  CHECK(value == kNoValue || value < pickle.ValueCount());
}

void CheckValue(const Pickle& pickle, PickleRef value) {
  for (const PickleRef item : pickle.Items(value)) {
    CheckReference(pickle, item);
  }
  CheckReference(pickle, pickle.Callable(value));
  CheckReference(pickle, pickle.Arguments(value));
  CheckReference(pickle, pickle.State(value));
  if (pickle.Kind(value) == PickleKind::kDict) {
    CHECK(pickle.Items(value).size() % 2 == 0);
  }
  if (pickle.Kind(value) == PickleKind::kReduced) {
    CHECK(pickle.Items(value).size() % 2 == 0);
    CHECK(pickle.Kind(pickle.Arguments(value)) == PickleKind::kTuple);
  }
  if (pickle.Kind(value) == PickleKind::kGlobal) {
    CHECK(!pickle.Text(value).empty());
  }
}

void Read(Bytes bytes) {
  const MemorySource source("x", bytes);
  const Pickle pickle = ReadPickle(source, 0);
  CHECK(pickle.Fault().has_value() == (pickle.Root() == kNoValue));
  CHECK(pickle.End() >= 0 && pickle.End() <= source.Size());
  CHECK(pickle.ValueCount() <= 2 * bytes.size());  // INST makes three
  CHECK(!pickle.Fault() || pickle.Fault()->byte <= source.Size());
  for (PickleRef value = 0; value < pickle.ValueCount(); ++value) {
    CheckValue(pickle, value);
  }
  for (const std::string& name : pickle.Globals()) {
    CHECK(!IsKnownGlobal(name) || name.find("ystem") == std::string::npos);
  }
}

// Steps of state dicts, one for each byte.
std::string Steps(Bytes bytes) {
  using namespace std::string_literals;
  const std::string steps[] = {
      "}"s,
      "]"s,
      ")"s,
      "("s,
      "K\x02"s,
      "X\x01\x00\x00\x00w"s,
      "ctorch._utils\n_rebuild_tensor_v2\n"s,
      "ccollections\nOrderedDict\n"s,
      "ctorch\nFloatStorage\n"s,
      "\x85"s,
      "\x86"s,
      "t"s,
      "R"s,
      "Q"s,
      "s"s,
      "u"s,
      "a"s,
      "e"s,
      "b"s,
      "\x81"s,
      "\x94"s,
      "h\x00"s,
      "h\x01"s,
      "2"s,
      "0"s,
      "1"s,
      "N"s,
      "\x88"s,
      "\x8f"s,
      "\x90"s,
      "\x93"s,
      "o"s,
      "d"s,
      "."s,
  };
  std::string text = "\x80\x04";
  for (const std::byte byte : bytes) {
    text += steps[std::to_integer<std::size_t>(byte) % std::size(steps)];
  }
  return text + ".";
}

}  // namespace
}  // namespace fourpiles

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  if (!bytes.empty() && bytes.front() == std::byte{0xFF}) {
    const std::string steps = fourpiles::Steps(bytes.subspan(1));
    fourpiles::Read(std::as_bytes(std::span(steps)));
  } else {
    fourpiles::Read(bytes);
  }
  return 0;
}
