// The stream form of PyTorch's checkpoints, and files of pickles.

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "base/ascii.h"
#include "base/keyed_hash.h"
#include "tensors/distributed.h"
#include "tensors/torch.h"
#include "tensors/torch_tensors.h"

namespace fourpiles {
namespace {

using Kind = PickleKind;
using namespace std::string_view_literals;

// 0x1950a86a20f9469cfc6c, the lowest byte first (torch/serialization.py, MAGIC_NUMBER).
constexpr std::string_view kMagic = "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"sv;
constexpr std::int64_t kStreamProtocol = 1001;
constexpr std::string_view kCutShort = "the file may have been cut short; fetch it again";
constexpr int kMostPickles = 1000;  // of one file

bool IsMagic(const Pickle& pickle) {
  return pickle.Root() != kNoValue && pickle.Kind(pickle.Root()) == Kind::kBigInteger &&
         pickle.Text(pickle.Root()) == kMagic;
}

class StreamReader {
 public:
  explicit StreamReader(const ByteSource& source)
      : source_(source), findings_(source.Name()), reading_{.format = "torch-legacy"} {}

  FileReading Read(std::int64_t begin) {
    place_ = begin;
    ReadStream();
    reading_.findings = std::move(findings_).Take();
    return std::move(reading_);
  }

 private:
  void ReadStream() {
    const auto protocol = Next("protocol");
    if (!protocol) {
      return;
    }
    const std::int64_t number = protocol->Integer(protocol->Root());
    if (number != kStreamProtocol) {
      return findings_.Refuse("protocol", fmt::format("{}", number), "expected 1001");
    }
    const auto machine = Next("facts of the machine");
    if (!machine) {
      return;
    }
    // Whatever they say: machines of both kinds write little-endian numbers, and PyTorch reads them
    // so (torch/csrc/serialization.cpp, THPStorage_writeFileRaw).
    reading_.facts.emplace_back("endian", "little");
    const auto object = Next("object");
    if (!object) {
      return;
    }
    const TorchContents contents = TorchContentsOf(*object, TorchForm::kStream, findings_);
    const auto keys = Next("keys of storages");
    if (keys && keys->Kind(keys->Root()) != Kind::kList) {
      findings_.Refuse("keys of storages", std::string(Name(keys->Kind(keys->Root()))),
                       "expected a list");
    } else if (keys) {
      PlaceTensors(contents, {PlacesOf(contents, *keys)}, findings_, reading_);
    }
  }

  // Nothing: it is broken, which is a finding.
  std::optional<Pickle> Next(std::string_view what) {
    Pickle pickle = ReadPickle(source_, place_);
    TellGlobals(pickle, what, findings_, reading_);
    if (const auto& fault = pickle.Fault()) {
      findings_.Refuse(fmt::format("byte {}", fault->byte), fault->found,
                       fault->expected + fmt::format(" in the pickle of the {}", what));
      return std::nullopt;
    }
    place_ = pickle.End();
    return pickle;
  }

  // Where the storages lie, which stand one behind the other in the order of the keys.
  std::vector<StoragePlace> PlacesOf(const TorchContents& contents, const Pickle& keys) {
    std::vector<StoragePlace> places(contents.storages.size());
    std::unordered_map<std::string_view, std::size_t, KeyedHash> numbers;
    for (std::size_t i = 0; i < contents.storages.size(); ++i) {
      numbers.emplace(contents.storages[i].key, i);
    }
    for (const PickleRef key : keys.Items(keys.Root())) {
      const auto found = numbers.find(keys.Text(key));
      if (found == numbers.end() || places[found->second].bytes >= 0) {
        findings_.Refuse(fmt::format("storage \"{}\"", keys.Text(key).substr(0, 100)),
                         "a key that the object does not name, or a second time",
                         "expected each storage of the object once");
        return places;
      }
      if (!PlaceNext(contents.storages[found->second], places[found->second])) {
        return places;
      }
    }
    if (place_ < source_.Size()) {
      findings_.Refuse(fmt::format("byte {}", place_),
                       fmt::format("{} bytes behind the last storage", source_.Size() - place_),
                       "expected the end of the file");
    }
    return places;
  }

  // False: where the next one begins is not known.
  bool PlaceNext(const TorchStorage& storage, StoragePlace& place) {
    constexpr std::int64_t kCountBytes = 8;
    std::array<std::byte, kCountBytes> bytes = {};
    if (source_.Size() - place_ < kCountBytes || !source_.ReadAt(place_, bytes)) {
      findings_.Refuse(fmt::format("byte {}", place_), "the end of the file",
                       fmt::format("expected the storage \"{}\"", storage.key), kCutShort);
      return false;
    }
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      count |= std::to_integer<std::uint64_t>(bytes[i]) << 8 * i;
    }
    const auto elements = static_cast<std::int64_t>(count);
    const std::int64_t left = source_.Size() - place_ - kCountBytes;
    const Checked size =
        DivideRoundingUp(Checked(elements) * std::max<std::int64_t>(storage.type->bits, 8),
                         8);  // smaller ones count bytes
    if (!size.ok() || size.value() > left) {
      findings_.Refuse(fmt::format("byte {}", place_),
                       fmt::format("{} elements of the storage \"{}\"", elements, storage.key),
                       fmt::format("the file ends after {} bytes", left), kCutShort);
      return false;
    }
    if (size.value() > storage.bytes) {
      findings_.Refuse(fmt::format("byte {}", place_),
                       fmt::format("{} elements of the storage \"{}\"", elements, storage.key),
                       fmt::format("the object says {}", storage.elements));
      return false;
    }
    place = {.offset = place_ + kCountBytes, .bytes = size.value()};
    place_ += kCountBytes + size.value();
    return true;
  }

  const ByteSource& source_;
  FileFindings findings_;
  FileReading reading_;
  std::int64_t place_ = 0;
};

// A pickle that breaks off may have done its harm before: what it imports decides.
void TellFault(const Pickle& pickle, bool is_first, FileFindings& findings,
               const FileReading& reading) {
  const bool may_be_read = !is_first || !reading.facts.empty();
  findings.Add(may_be_read ? FileVerdict::kReport : FileVerdict::kRefuse,
               fmt::format("byte {}", pickle.Fault()->byte), pickle.Fault()->found,
               pickle.Fault()->expected,
               is_first ? "" : "a pickle ended before; a program may read on behind it");
}

FileReading ReadPickles(const ByteSource& source, Pickle pickle) {
  FileReading reading = {.format = "pickle"};
  FileFindings findings(source.Name());
  const PickleUse use = IsDistributed(pickle) ? PickleUse::kDistributed : PickleUse::kStateDict;
  if (use == PickleUse::kDistributed) {
    findings.Refuse("", "the metadata of a distributed checkpoint, whose tensors lie beside it",
                    "expected a file of tensors",
                    "call it .metadata, or give the folder in which it has that name");
  }
  std::int64_t count = 0;
  for (std::int64_t place = 0; true; pickle = ReadPickle(source, place)) {
    TellGlobals(pickle, fmt::format("pickle from byte {}", place), findings, reading, use);
    if (pickle.Fault()) {
      TellFault(pickle, count == 0, findings, reading);
      break;
    }
    place = pickle.End();
    if (++count == kMostPickles && place < source.Size()) {
      findings.Add(FileVerdict::kReport, fmt::format("byte {}", place),
                   fmt::format("more than {} pickles", kMostPickles), "expected fewer",
                   "what follows was not read");
    }
    if (count == kMostPickles || place == source.Size()) {
      break;
    }
  }
  reading.facts.emplace_back("pickles", count);
  reading.findings = std::move(findings).Take();
  return reading;
}

}  // namespace

FileReading ReadPickleFile(const ByteSource& source) {
  Pickle first = ReadPickle(source, 0);
  if (IsMagic(first)) {
    return StreamReader(source).Read(first.End());
  }
  FileReading reading = ReadPickles(source, std::move(first));
  const std::string name = LowerCase(source.Name());
  std::array<std::byte, 1> letter = {};
  const bool is_text = source.ReadAt(0, letter).has_value() && letter[0] != std::byte{0x80};
  if (is_text && !name.ends_with(".pkl") && !name.ends_with(".pickle")) {
    reading.findings.push_back(
        {.verdict = FileVerdict::kRefuse,
         .text = {.where = std::string(source.Name()),
                  .found = "text that Python would read as a pickle of protocol 0",
                  .expected = "PyTorch never wrote it"}});
  }
  return reading;
}

}  // namespace fourpiles
