// The tar form of PyTorch's checkpoints, which torch.save wrote before 0.1.10
// (torch/serialization.py, legacy_load). Its members:
//
//   sys_info  pickle: protocol 1000, the order of bytes
//   storages  pickle n; n times: pickle (number, device, class), int64 elements, their bytes;
//             pickle [(number, number of the storage that it is part of, offset, elements), …]
//   tensors   pickle n; n times: pickle (number, that of its storage, class), int32 dimensions,
//             4 bytes, int64 sizes, int64 strides, int64 offset
//   pickle    the object, with the numbers of its tensors in place of them
//
// PyTorch extracts the first ones to read them; here all is read where it lies.

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/nearby_source.h"
#include "tensors/tar.h"
#include "tensors/torch.h"
#include "tensors/torch_label.h"
#include "tensors/torch_tensors.h"

namespace fourpiles {
namespace {

using Kind = PickleKind;

constexpr std::array kNeeded = std::to_array<std::string_view>({"storages", "tensors", "pickle"});
constexpr std::string_view kMachine = "sys_info";
constexpr std::int64_t kMostZeros = 10'240;  // that Python's tarfile ends an archive with
constexpr std::string_view kCutShort = "the file may have been cut short; fetch it again";
// Of the pickle of one storage or tensor: a number, a number, a class.
constexpr PickleLimits kSmall = {.steps = 100, .values = 100, .text_bytes = 4096};

// Programs write "./" before names, and "/" behind those of folders.
bool IsPathWithin(std::string_view name) {
  name.remove_prefix(name.starts_with("./") ? 2 : 0);
  name.remove_suffix(name.ends_with('/') ? 1 : 0);
  return name.empty() || StaysWithin(name);
}

class TarCheckpoint {
 public:
  TarCheckpoint(const ByteSource& source, const TarDirectory& directory)
      : source_(source), directory_(directory), findings_(source.Name()) {}

  FileReading Read() {
    reading_.format = "torch-tar";
    CheckMembers();
    if (!findings_.HasRefusals() && ReadMachine() && ReadStorages() && ReadTensors()) {
      ReadObject();
    }
    reading_.findings = std::move(findings_).Take();
    return std::move(reading_);
  }

 private:
  const TarMember* Find(std::string_view name) const {
    const auto found = std::ranges::find(directory_.members, name, &TarMember::name);
    return found == directory_.members.end() ? nullptr : &*found;
  }

  // PyTorch takes four by their names.
  void CheckMembers() {
    const bool is_checkpoint =
        std::ranges::any_of(kNeeded, [&](std::string_view name) { return Find(name) != nullptr; });
    for (const TarMember& member : directory_.members) {
      if (!IsPathWithin(member.name)) {
        findings_.Refuse(fmt::format("member \"{}\"", member.name),
                         "a name that is no path within a folder",
                         "expected no \"..\", root or \"\\\"");
      } else if (is_checkpoint) {
        CheckMember(member);
      }
    }
    if (!is_checkpoint) {
      reading_.format = "tar";
      return findings_.Refuse("", "a tar archive that is no checkpoint of PyTorch",
                              "expected the members storages, tensors and pickle",
                              findings_.HasRefusals() ? "" : "unpack it and give the files within");
    }
    for (const std::string_view name : kNeeded) {
      if (Find(name) == nullptr) {
        findings_.Refuse("", fmt::format("no member \"{}\"", name),
                         "expected storages, tensors and pickle, as PyTorch wrote before 0.1.10");
      }
    }
    CheckEnd();
  }

  // A link would be extracted as one, and read where it leads.
  void CheckMember(const TarMember& member) {
    const bool is_ours =
        member.name == kMachine || std::ranges::find(kNeeded, member.name) != kNeeded.end();
    const std::string where = fmt::format("member \"{}\"", member.name);
    if (member.type != '0' || member.name.ends_with('/')) {
      findings_.Refuse(where, "a link, folder or device", "expected files alone");
    } else if (!is_ours) {
      findings_.Add(FileVerdict::kReport, where, "a member beside the checkpoint's own",
                    "expected sys_info, storages, tensors and pickle");
    } else if (Find(member.name) != &member) {
      findings_.Refuse(where, "a second member of that name", "expected one");
    }
  }

  void CheckEnd() {
    const std::int64_t left = source_.Size() - directory_.end;
    std::string zeros(static_cast<std::size_t>(std::min(left, kMostZeros)), '\0');
    const auto read = source_.ReadAt(directory_.end, std::as_writable_bytes(std::span(zeros)));
    if (!read || left > kMostZeros || zeros.find_first_not_of('\0') != std::string::npos) {
      findings_.Add(FileVerdict::kReport, fmt::format("byte {}", directory_.end),
                    "bytes behind the last member", "expected zeros to the end of the file");
    }
  }

  // A member's bytes, with places from the start of the file.
  SliceSource Enter(std::string_view name) {
    const TarMember& member = *Find(name);
    place_ = member.offset;
    return *SliceSource::Of(source_, 0, member.offset + member.bytes);
  }

  bool ReadMachine() {
    if (Find(kMachine) == nullptr) {
      return true;
    }
    const SliceSource bytes = Enter(kMachine);
    const auto pickle = Next(bytes, kMachine, {});
    if (!pickle) {
      return false;
    }
    const auto items = pickle->Items(pickle->Root());
    for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
      const std::string_view key = pickle->Text(items[i]);
      const std::int64_t number = pickle->Integer(items[i + 1]);
      if ((key == "protocol_version" && number != 1000) ||
          (key == "little_endian" && number == 0)) {
        findings_.Refuse(kMachine, fmt::format("{} of {}", key, number),
                         "expected protocol 1000 and little-endian numbers, which PyTorch reads");
        return false;
      }
    }
    return IsEnd(bytes, kMachine);
  }

  bool ReadStorages() {
    const SliceSource bytes = Enter("storages");
    const std::int64_t count = NextCount(bytes, "storages");
    for (std::int64_t i = 0; i < count; ++i) {
      if (!ReadStorage(bytes)) {
        return false;
      }
    }
    return count >= 0 && ReadViews(bytes) && IsEnd(bytes, "storages");
  }

  bool ReadStorage(const ByteSource& bytes) {
    const auto about = NextObject(bytes, "storages");
    const auto elements = about ? NextNumber(bytes, 8) : std::nullopt;
    if (!elements) {
      return false;
    }
    const auto items = about->Items(about->Root());
    const std::string key = TorchLabelOf(*about, items[0]);
    const TorchType* type = TorchTypeOfStorage(about->Text(items[2]));
    const Checked size =
        DivideRoundingUp(Checked(*elements) * (type == nullptr ? 0 : type->bits), 8);
    const std::int64_t left = bytes.Size() - place_;
    if (type == nullptr || !size.ok() || size.value() > left) {
      findings_.Refuse(
          fmt::format("byte {}", place_),
          fmt::format("a storage of {} elements of \"{}\"", *elements, about->Text(items[2])),
          fmt::format("its member ends after {} bytes", left), kCutShort);
      return false;
    }
    const auto number = static_cast<std::int32_t>(objects_.storages.size());
    objects_.storages.push_back(
        {.key = key, .type = type, .elements = *elements, .bytes = size.value()});
    places_.push_back({.offset = place_, .bytes = size.value()});
    place_ += size.value();
    return AddView(key, {.storage = number});
  }

  bool AddView(const std::string& key, StorageView view) {
    if (objects_.views.emplace(key, view).second) {
      return true;
    }
    findings_.Refuse(fmt::format("storage \"{}\"", key), "a second one of that number",
                     "expected one");
    return false;
  }

  // Storages that are parts of others.
  bool ReadViews(const ByteSource& bytes) {
    const auto views = Next(bytes, "storages", {});
    if (!views) {
      return false;
    }
    for (const PickleRef view : views->Items(views->Root())) {
      const auto items = views->Items(view);
      const bool is_view = items.size() == 4 && views->Kind(items[2]) == Kind::kInteger &&
                           views->Kind(items[3]) == Kind::kInteger;
      const auto whole = objects_.views.find(is_view ? TorchLabelOf(*views, items[1]) : "");
      if (!is_view || whole == objects_.views.end() ||
          !LiesWithin(whole->second, views->Integer(items[2]), views->Integer(items[3]))) {
        findings_.Refuse("storages", "a part of a storage that does not lie within one",
                         "expected numbers, an offset and elements");
        return false;
      }
      const StorageView part = {whole->second.storage,
                                whole->second.offset + views->Integer(items[2])};
      if (!AddView(TorchLabelOf(*views, items[0]), part)) {
        return false;
      }
    }
    return true;
  }

  bool LiesWithin(const StorageView& whole, std::int64_t offset, std::int64_t elements) const {
    const Checked end = Checked(whole.offset) + offset + elements;
    return offset >= 0 && elements >= 0 && end.ok() &&
           end.value() <= objects_.storages[static_cast<std::size_t>(whole.storage)].elements;
  }

  bool ReadTensors() {
    const SliceSource bytes = Enter("tensors");
    const std::int64_t count = NextCount(bytes, "tensors");
    for (std::int64_t i = 0; i < count; ++i) {
      if (!ReadTensor(bytes)) {
        return false;
      }
    }
    return count >= 0 && IsEnd(bytes, "tensors");
  }

  bool ReadTensor(const ByteSource& bytes) {
    const auto about = NextObject(bytes, "tensors");
    const auto dimensions = about ? NextNumber(bytes, 4) : std::nullopt;
    if (!dimensions) {
      return false;
    }
    const auto items = about->Items(about->Root());
    const std::string key = TorchLabelOf(*about, items[0]);
    const auto view = objects_.views.find(TorchLabelOf(*about, items[1]));
    if (*dimensions > static_cast<std::int64_t>(kMostDimensions) || view == objects_.views.end()) {
      findings_.Refuse(fmt::format("tensor \"{}\" at byte {}", key, place_),
                       fmt::format("{} dimensions in the storage \"{}\"", *dimensions,
                                   TorchLabelOf(*about, items[1])),
                       fmt::format("expected at most {}, in one of the storages", kMostDimensions));
      return false;
    }
    place_ += 4;
    TorchTensor tensor = {
        .type = objects_.storages[static_cast<std::size_t>(view->second.storage)].type,
        .storage = view->second.storage};
    const auto offset =
        ReadCounts(bytes, static_cast<std::size_t>(*dimensions), tensor.shape) &&
                ReadCounts(bytes, static_cast<std::size_t>(*dimensions), tensor.strides)
            ? NextNumber(bytes, 8)
            : std::nullopt;
    if (!offset) {
      return false;
    }
    const Checked place = Checked(*offset) + view->second.offset;
    tensor.offset = place.ok() ? place.value() : -1;
    if (!objects_.tensors.emplace(key, std::move(tensor)).second) {
      findings_.Refuse(fmt::format("tensor \"{}\"", key), "a second one of that number",
                       "expected one");
      return false;
    }
    return true;
  }

  bool ReadCounts(const ByteSource& bytes, std::size_t count, std::vector<std::int64_t>& counts) {
    counts.reserve(count);
    while (counts.size() < count) {
      const auto number = NextNumber(bytes, 8);
      if (!number) {
        return false;
      }
      counts.push_back(*number);
    }
    return true;
  }

  void ReadObject() {
    const SliceSource bytes = Enter("pickle");
    const auto pickle = Next(bytes, "pickle", {});
    if (!pickle) {
      return;
    }
    if (place_ < bytes.Size()) {
      findings_.Add(FileVerdict::kReport, fmt::format("byte {}", place_),
                    fmt::format("{} bytes behind the pickle", bytes.Size() - place_),
                    "expected its end", "another program may read on there");
    }
    const TorchContents contents = TorchContentsOf(*pickle, objects_, findings_);
    std::vector<bool> is_used(contents.storages.size());
    for (const TorchTensor& tensor : contents.tensors) {
      is_used[static_cast<std::size_t>(tensor.storage)] = true;
    }
    if (const auto unused = std::ranges::count(is_used, false); unused > 0) {
      findings_.Add(FileVerdict::kAcceptWithWarning, "storages",
                    fmt::format("{} storages that no tensor looks at", unused), "expected none");
    }
    PlaceTensors(contents, {std::move(places_), false}, findings_, reading_);
  }

  // ---- one thing after the other; nothing: it is not there, which is a finding

  std::optional<Pickle> Next(const ByteSource& bytes, std::string_view member,
                             const PickleLimits& limits) {
    Pickle pickle = ReadPickle(bytes, place_, limits);
    TellGlobals(pickle, member, findings_, reading_);
    if (const auto& fault = pickle.Fault()) {
      findings_.Refuse(fmt::format("byte {}", fault->byte), fault->found,
                       fault->expected + fmt::format(" in the member {}", member));
      return std::nullopt;
    }
    place_ = pickle.End();
    return pickle;
  }

  // (number, what, class), the class being all that it imports.
  std::optional<Pickle> NextObject(const ByteSource& bytes, std::string_view member) {
    auto pickle = Next(bytes, member, kSmall);
    if (!pickle) {
      return std::nullopt;
    }
    const auto items = pickle->Items(pickle->Root());
    if (items.size() != 3 || pickle->Kind(items[2]) != Kind::kGlobal ||
        pickle->Globals().size() != 1) {
      findings_.Refuse(
          fmt::format("byte {}", place_),
          fmt::format("{} in the member {}", Name(pickle->Kind(pickle->Root())), member),
          "expected a number, a place and a class");
      return std::nullopt;
    }
    return pickle;
  }

  // -1: it is none.
  std::int64_t NextCount(const ByteSource& bytes, std::string_view member) {
    const auto pickle = Next(bytes, member, kSmall);
    if (!pickle) {
      return -1;
    }
    const std::int64_t count = pickle->Integer(pickle->Root());
    if (pickle->Kind(pickle->Root()) != Kind::kInteger || count < 0 || count > kMostTensors) {
      findings_.Refuse(
          fmt::format("byte {}", place_),
          fmt::format("{} {} in the member {}", Name(pickle->Kind(pickle->Root())), count, member),
          fmt::format("expected how many, at most {}", kMostTensors));
      return -1;
    }
    return count;
  }

  // A little-endian number from 0 on.
  std::optional<std::int64_t> NextNumber(const ByteSource& bytes, int width) {
    std::array<std::byte, 8> read = {};
    const auto wanted = std::span(read).first(static_cast<std::size_t>(width));
    if (bytes.Size() - place_ < width || !bytes.ReadAt(place_, wanted)) {
      findings_.Refuse(fmt::format("byte {}", place_), "the end of its member", "expected a number",
                       kCutShort);
      return std::nullopt;
    }
    std::uint64_t number = 0;
    for (std::size_t i = wanted.size(); i-- > 0;) {
      number = number << 8 | std::to_integer<std::uint64_t>(read[i]);
    }
    if (number > static_cast<std::uint64_t>(kLargestAmount)) {
      findings_.Refuse(fmt::format("byte {}", place_), fmt::format("the number {}", number),
                       "expected one from 0 to 2^53");
      return std::nullopt;
    }
    place_ += width;
    return static_cast<std::int64_t>(number);
  }

  bool IsEnd(const ByteSource& bytes, std::string_view member) {
    if (place_ < bytes.Size()) {
      findings_.Refuse(
          fmt::format("byte {}", place_),
          fmt::format("{} bytes behind the last of its {}", bytes.Size() - place_, member),
          "expected the end of the member");
    }
    return place_ == bytes.Size();
  }

  const ByteSource& source_;
  const TarDirectory& directory_;
  FileFindings findings_;
  FileReading reading_ = {};
  TorchObjects objects_ = {};
  std::vector<StoragePlace> places_ = {};  // of its storages
  std::int64_t place_ = 0;                 // of what is read next
};

}  // namespace

FileReading ReadTorchTar(const ByteSource& source) {
  const NearbySource nearby(source);  // its pickles are small
  const Result<TarDirectory> directory = ReadTar(nearby);
  if (!directory) {
    return {.format = "tar",
            .findings = {{.verdict = FileVerdict::kRefuse, .text = directory.error().text}}};
  }
  return TarCheckpoint(nearby, *directory).Read();
}

}  // namespace fourpiles
