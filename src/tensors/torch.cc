#include "tensors/torch.h"

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "base/ascii.h"
#include "base/keyed_hash.h"
#include "base/try.h"
#include "tensors/torch_tensors.h"
#include "tensors/zip.h"

namespace fourpiles {
namespace {

constexpr std::int64_t kMostPickleBytes = std::int64_t{256} << 20;
constexpr std::int64_t kMostWordBytes = 64;  // of "version" and "byteorder"
constexpr std::string_view kPickle = "data.pkl";

// Archives of other programs, by the ending of a member's name.
struct OtherArchive {
  std::string_view ending = {};
  std::string_view name = {};
};
constexpr std::array kOtherArchives = std::to_array<OtherArchive>({
    {"/archive_format", "a model of torch.export"},
    {"model.weights.h5", "a Keras model"},
});

// The pickle of the checkpoint; nullptr: there is none. PyTorch takes the folder of the first
// member (caffe2/serialize/inline_container.cc).
const ZipMember* DataOf(const ZipDirectory& directory) {
  if (directory.members.empty()) {
    return nullptr;
  }
  const std::string& first = directory.members.front().name;
  const std::string name = first.substr(0, first.find('/') + 1) + std::string(kPickle);
  const auto of_first = std::ranges::find(directory.members, name, &ZipMember::name);
  if (of_first != directory.members.end()) {
    return &*of_first;
  }
  const auto found = std::ranges::find_if(directory.members, [](const ZipMember& member) {
    return member.name == kPickle || member.name.ends_with("/" + std::string(kPickle));
  });
  return found == directory.members.end() ? nullptr : &*found;
}

// A pickle says more in a byte than other members do: less of it may be packed into one.
Result<std::string> UnpackPickle(const ByteSource& source, const ZipMember& member,
                                 std::int64_t limit) {
  constexpr std::int64_t kMostRatio = 200;
  constexpr std::int64_t kAlwaysFine = std::int64_t{1} << 16;
  if (member.bytes > kAlwaysFine && member.bytes / kMostRatio > member.packed_bytes) {
    return BadInput({.where = fmt::format("{}: member \"{}\"", source.Name(), member.name),
                     .found = fmt::format("{} bytes from {}", member.bytes, member.packed_bytes),
                     .expected = fmt::format("expected at most {} from one", kMostRatio)});
  }
  return ReadZipMember(source, member, limit);
}

class ZipCheckpoint {
 public:
  ZipCheckpoint(const ByteSource& source, const ZipDirectory& directory, PickleUse use)
      : source_(source), directory_(directory), use_(use), findings_(source.Name()) {}

  FileReading Read() {
    const ZipMember* data = DataOf(directory_);
    reading_.format = data == nullptr ? "zip" : "torch-zip";
    if (data != nullptr) {
      root_ = data->name.substr(0, data->name.size() - kPickle.size());
      NameMembers();
      is_torchscript_ = std::ranges::any_of(directory_.members, [&](const ZipMember& member) {
        return member.name.starts_with(root_ + "code/");
      });
      ReadWords();
      ReadData(*data);
      CheckMembers();
    } else {
      NameOtherArchive();
    }
    ReadOtherPickles(data);
    reading_.findings = directory_.findings;
    std::ranges::move(std::move(findings_).Take(), std::back_inserter(reading_.findings));
    return std::move(reading_);
  }

 private:
  void NameMembers() {
    members_.reserve(directory_.members.size());
    for (const ZipMember& member : directory_.members) {
      members_.emplace(member.name, &member);
    }
  }

  const ZipMember* Find(std::string_view name) const {
    const auto found = members_.find(name);
    return found == members_.end() ? nullptr : found->second;
  }

  void ReadWords() {
    for (const auto& [name, fact] : {std::pair("version", "version"), {"byteorder", "endian"}}) {
      const ZipMember* member = Find(root_ + name);
      if (member == nullptr) {
        continue;
      }
      if (auto text = ReadZipMember(source_, *member, kMostWordBytes)) {
        while (text->ends_with('\n')) {
          text->pop_back();
        }
        is_big_endian_ = is_big_endian_ || *text == "big";
        reading_.facts.emplace_back(fact, *std::move(text));
      } else {
        Refuse(text.error());
      }
    }
  }

  void ReadData(const ZipMember& data) {
    const auto text = Unpack(data);
    if (!text) {
      return Refuse(text.error());
    }
    const MemorySource bytes(std::string(data.name), std::as_bytes(std::span(*text)));
    const Pickle pickle = ReadPickle(bytes, 0);
    TellGlobals(pickle, data.name, findings_, reading_,
                is_torchscript_ ? PickleUse::kTorchScript : use_);
    if (const auto& fault = pickle.Fault()) {
      return findings_.Refuse(fmt::format("{}: byte {}", data.name, fault->byte), fault->found,
                              fault->expected);
    }
    if (pickle.End() < bytes.Size()) {
      findings_.Add(FileVerdict::kReport, data.name,
                    fmt::format("{} bytes behind the pickle", bytes.Size() - pickle.End()),
                    "expected its end", "another program may read on there");
    }
    is_read_ = true;
    const TorchContents contents =
        TorchContentsOf(pickle, TorchForm::kZip, findings_, data.packed_bytes);
    PlaceTensors(contents, {PlacesOf(contents), is_big_endian_}, findings_, reading_);
  }

  std::vector<StoragePlace> PlacesOf(const TorchContents& contents) {
    std::vector<StoragePlace> places;
    for (const TorchStorage& storage : contents.storages) {
      const ZipMember* member = Find(fmt::format("{}data/{}", root_, storage.key));
      if (member == nullptr) {
        places.emplace_back();
        continue;
      }
      used_.insert(member->name);
      places.push_back({.offset = member->offset,
                        .bytes = member->bytes,
                        .packed = member->method == ZipMethod::kDeflated});
      if (member->bytes > storage.bytes) {
        Warn(member->name, fmt::format("{} bytes", member->bytes),
             fmt::format("the pickle says {}; a slice of a larger tensor may have been saved",
                         storage.bytes));
      }
    }
    return places;
  }

  // An archive without tensors that are read here is no reason to say that it has none. torch.save
  // that broke off leaves a "version" alone.
  void NameOtherArchive() {
    const std::string name = LowerCase(source_.Name());
    const bool is_named = std::ranges::any_of(std::array{".pt", ".pth", ".bin", ".ckpt"},
                                              [&](const char* end) { return name.ends_with(end); });
    const bool is_begun = directory_.members.size() <= 2 && !directory_.members.empty() &&
                          directory_.members.front().name.ends_with("/version");
    if (is_named && is_begun) {
      return findings_.Refuse("", "an archive with a version and no data.pkl",
                              "expected a checkpoint of torch.save",
                              "its writing may have broken off; save it again");
    }
    for (const OtherArchive& other : kOtherArchives) {
      const auto is_telling = [&](const ZipMember& member) {
        return member.name.ends_with(other.ending);
      };
      if (std::ranges::any_of(directory_.members, is_telling)) {
        findings_.Refuse("", fmt::format("{}, which this version does not read", other.name),
                         "expected a checkpoint of torch.save");
        return;
      }
    }
  }

  // Storages that nothing names, members beside the checkpoint, code.
  void CheckMembers() {
    std::int64_t unused = 0;
    const std::string data = root_ + "data/";
    for (const ZipMember& member : directory_.members) {
      if (!member.name.starts_with(root_)) {
        findings_.Add(FileVerdict::kReport, member.name, "a member of another folder",
                      fmt::format("expected all in \"{}\"", root_));
      } else if (member.name.starts_with(data) && !IsPickleName(member.name)) {
        unused += used_.contains(member.name) ? 0 : 1;
      }
    }
    TellOfCases();
    if (unused > 0 && is_read_) {
      Warn(data, fmt::format("{} storages that the pickle does not name", unused), "expected none");
    }
    if (is_torchscript_) {
      reading_.facts.emplace_back("torchscript", true);
      Warn(root_ + "code/", "TorchScript, which holds code beside its tensors",
           "nothing of it was run");
    }
  }

  // PyTorch looks members up whatever the case (miniz, mz_zip_reader_locate_file): of "data/a" and
  // "data/A" it would read one for both.
  void TellOfCases() {
    std::unordered_set<std::string, KeyedHash> names;
    names.reserve(directory_.members.size());
    for (const ZipMember& member : directory_.members) {
      if (!names.insert(LowerCase(member.name)).second) {
        findings_.Add(FileVerdict::kReport, member.name, "a name that differs in case alone",
                      "expected another one", "PyTorch reads one of them for both");
      }
    }
  }

  static bool IsPickleName(std::string_view name) {
    return name.ends_with(".pkl") || name.ends_with(".pickle");
  }

  // What other programs may load.
  void ReadOtherPickles(const ZipMember* data) {
    for (const ZipMember& member : directory_.members) {
      if (&member == data || !IsPickleName(member.name)) {
        continue;
      }
      const bool is_ours =
          member.name == root_ + "constants.pkl" || member.name == root_ + "bytecode.pkl";
      if (data != nullptr && !is_ours) {
        findings_.Add(FileVerdict::kReport, member.name, "a pickle beside the checkpoint's own",
                      "expected one");
      }
      const auto text = Unpack(member);
      if (!text) {
        Refuse(text.error());
        continue;
      }
      const MemorySource bytes(std::string(member.name), std::as_bytes(std::span(*text)));
      const Pickle pickle = ReadPickle(bytes, 0);
      TellGlobals(pickle, member.name, findings_, reading_,
                  is_torchscript_ ? PickleUse::kTorchScript : PickleUse::kStateDict);
      if (const auto& fault = pickle.Fault()) {
        findings_.Add(FileVerdict::kReport, fmt::format("{}: byte {}", member.name, fault->byte),
                      fault->found, fault->expected);
      }
    }
  }

  // A pickle, all of which together are at most kMostPickleBytes: a thousand members of 1 KB may
  // unpack to 1 MiB each.
  Result<std::string> Unpack(const ZipMember& member) {
    auto text = UnpackPickle(source_, member, kMostPickleBytes - pickle_bytes_);
    pickle_bytes_ += text ? std::ssize(*text) : 0;
    return text;
  }

  void Warn(std::string_view where, std::string found, std::string expected) {
    findings_.Add(FileVerdict::kAcceptWithWarning, where, std::move(found), std::move(expected));
  }
  void Refuse(const Error& error) {
    findings_.Add({.verdict = FileVerdict::kRefuse, .text = error.text});
  }

  const ByteSource& source_;
  const ZipDirectory& directory_;
  PickleUse use_;
  FileFindings findings_;
  FileReading reading_ = {};
  // By names, which lie in the directory.
  std::unordered_map<std::string_view, const ZipMember*, KeyedHash> members_ = {};
  std::unordered_set<std::string_view, KeyedHash> used_ = {};  // names of storages
  std::string root_ = {};                                      // "archive/"
  bool is_big_endian_ = false;
  bool is_torchscript_ = false;
  bool is_read_ = false;           // the pickle is whole
  std::int64_t pickle_bytes_ = 0;  // that were unpacked
};

}  // namespace

FileReading ReadTorchZip(const ByteSource& source) {
  return ReadTorchZipFor(source, PickleUse::kStateDict);
}

FileReading ReadTorchZipFor(const ByteSource& source, PickleUse use) {
  const Result<ZipDirectory> directory = ReadZip(source);
  if (!directory) {
    return {.format = "zip",
            .findings = {{.verdict = FileVerdict::kRefuse, .text = directory.error().text}}};
  }
  return ZipCheckpoint(source, *directory, use).Read();
}

Result<Pickle> ReadTorchPickle(const ByteSource& source) {
  TRY(const ZipDirectory directory, ReadZip(source));
  const ZipMember* data = DataOf(directory);
  if (data == nullptr) {
    return BadInput({std::string(source.Name()), "a zip archive without data.pkl",
                     "expected a checkpoint of torch.save", ""});
  }
  TRY(const std::string text, UnpackPickle(source, *data, kMostPickleBytes));
  return ReadPickle(MemorySource(std::string(data->name), std::as_bytes(std::span(text))), 0);
}

}  // namespace fourpiles
