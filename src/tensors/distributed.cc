#include "tensors/distributed.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/keyed_hash.h"
#include "tensors/pickle_fields.h"

namespace fourpiles {
namespace {

using Kind = PickleKind;

constexpr std::size_t kMostPlaces = 4'000'000;
constexpr std::size_t kMostFiles = 100'000;
constexpr std::size_t kMostTensorBytes = std::size_t{512} << 20U;  // of names, shapes and chunks
constexpr std::size_t kLongestName = 65'535;
constexpr std::int32_t kUnnamed = -1;

// The texts of a pickle by number, equal ones alike. Each value is looked up once: a hostile pickle
// names one long text a million times.
class TextNumbers {
 public:
  explicit TextNumbers(const Pickle& pickle)
      : pickle_(pickle), number_of_(pickle.ValueCount(), kUnnamed) {}

  // kUnnamed: it is no text.
  std::int32_t Of(PickleRef value) {
    if (pickle_.Kind(value) != Kind::kText) {
      return kUnnamed;
    }
    if (number_of_[value] == kUnnamed) {
      const auto next = static_cast<std::int32_t>(numbers_.size());
      number_of_[value] = numbers_.try_emplace(pickle_.Text(value), next).first->second;
    }
    return number_of_[value];
  }

 private:
  const Pickle& pickle_;
  std::vector<std::int32_t> number_of_;
  std::unordered_map<std::string_view, std::int32_t, KeyedHash> numbers_ = {};
};

std::string ListOf(const std::vector<std::int64_t>& numbers) {
  return fmt::format("[{}]", fmt::join(numbers, ", "));
}

class MetadataReader {
 public:
  MetadataReader(const Pickle& pickle, FileFindings& findings)
      : pickle_(pickle), findings_(findings), texts_(pickle) {}

  DistributedContents Read() {
    ReadPlaces();
    const PickleRef state = FieldOf(pickle_, pickle_.Root(), "state_dict_metadata");
    if (pickle_.Kind(state) != Kind::kDict) {
      findings_.Refuse("state_dict_metadata", std::string(Name(pickle_.Kind(state))),
                       "expected a dict");
      return {};
    }
    const auto items = pickle_.Items(state);
    for (std::size_t i = 0; i + 1 < items.size() && used_bytes_ <= kMostTensorBytes; i += 2) {
      Add(items[i], items[i + 1]);
    }
    if (used_bytes_ > kMostTensorBytes) {
      findings_.Refuse("state_dict_metadata",
                       fmt::format("names and shapes of more than {} bytes", kMostTensorBytes),
                       "expected fewer");
    }
    WarnOfUnused();
    return std::move(contents_);
  }

 private:
  // Where a chunk lies: an entry of storage_data. The numbers stay in the pickle until they are
  // used.
  struct Entry {
    std::int32_t name = kUnnamed;
    bool is_used = false;
    PickleRef offset = kNoValue;  // the tuple of numbers; of an object none
    PickleRef info = kNoValue;
  };

  // ---- storage_data

  void ReadPlaces() {
    const PickleRef data = FieldOf(pickle_, pickle_.Root(), "storage_data");
    const auto items = pickle_.Items(data);
    if (pickle_.Kind(data) != Kind::kDict || items.size() / 2 > kMostPlaces) {
      return findings_.Refuse(
          "storage_data",
          fmt::format("{} of {} entries", Name(pickle_.Kind(data)), items.size() / 2),
          fmt::format("expected a dict of at most {}", kMostPlaces));
    }
    entries_.reserve(items.size() / 2);
    for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
      entries_.push_back({.name = texts_.Of(FieldOf(pickle_, items[i], "fqn")),
                          .offset = TupleOf(FieldOf(pickle_, items[i], "offset")),
                          .info = items[i + 1]});
    }
    std::ranges::sort(entries_, [&](const Entry& a, const Entry& b) { return Order(a, b) < 0; });
    const auto twice = std::ranges::adjacent_find(
        entries_, [&](const Entry& a, const Entry& b) { return Order(a, b) == 0; });
    if (twice != entries_.end()) {
      findings_.Refuse("storage_data", "two places for one chunk", "expected one");
    }
  }

  // The tuple of a torch.Size, or the tuple itself.
  PickleRef TupleOf(PickleRef value) const {
    if (pickle_.CallableName(value) == "torch.Size") {
      const auto arguments = pickle_.Items(pickle_.Arguments(value));
      value = arguments.empty() ? kNoValue : arguments.front();
    }
    const auto items = pickle_.Items(value);
    const bool is_tuple = pickle_.Kind(value) == Kind::kTuple && items.size() <= kMostDimensions;
    return is_tuple ? value : kNoValue;
  }

  // By name, then number by number; those without numbers first.
  std::int64_t Order(const Entry& a, const Entry& b) const {
    if (a.name != b.name) {
      return a.name < b.name ? -1 : 1;
    }
    if (a.offset == b.offset) {
      return 0;  // a tuple that both share
    }
    const auto of_a = pickle_.Items(a.offset);
    const auto of_b = pickle_.Items(b.offset);
    for (std::size_t i = 0; i < std::min(of_a.size(), of_b.size()); ++i) {
      const std::int64_t number_a = pickle_.Integer(of_a[i]);
      const std::int64_t number_b = pickle_.Integer(of_b[i]);
      if (number_a != number_b) {
        return number_a < number_b ? -1 : 1;
      }
    }
    return static_cast<std::int64_t>(of_a.size()) - static_cast<std::int64_t>(of_b.size());
  }

  // The place of a chunk, which nothing else has yet. nullptr: there is none.
  Entry* Take(std::int32_t name, PickleRef offset) {
    const Entry wanted = {.name = name, .offset = offset};
    const auto found = std::ranges::lower_bound(
        entries_, wanted, [&](const Entry& a, const Entry& b) { return Order(a, b) < 0; });
    if (found == entries_.end() || Order(*found, wanted) != 0 || found->is_used) {
      return nullptr;
    }
    found->is_used = true;
    return &*found;
  }

  // Nothing: the entry is not of that form, which is a finding.
  std::optional<DistributedPlace> PlaceOf(const Entry& entry, std::string_view of) {
    const PickleRef path = FieldOf(pickle_, entry.info, "relative_path");
    const PickleRef offset = FieldOf(pickle_, entry.info, "offset");
    const PickleRef length = FieldOf(pickle_, entry.info, "length");
    const PickleRef transforms = FieldOf(pickle_, entry.info, "transform_descriptors");
    const bool is_good =
        pickle_.Kind(path) == Kind::kText && pickle_.Text(path).size() <= kLongestName &&
        pickle_.Kind(offset) == Kind::kInteger && pickle_.Kind(length) == Kind::kInteger;
    const Checked end = Checked(pickle_.Integer(offset)) + pickle_.Integer(length);
    if (!is_good || pickle_.Integer(offset) < 0 || pickle_.Integer(length) < 0 || !end.ok()) {
      findings_.Refuse(of, "a place of another form",
                       "expected a relative_path, an offset and a length from 0 to 2^53");
      return std::nullopt;
    }
    if (!pickle_.Items(transforms).empty()) {
      findings_.Refuse(of, fmt::format("bytes that were written through {}", WordsOf(transforms)),
                       "this version reads what torch.save writes",
                       "save the checkpoint without extensions of the stream");
      return std::nullopt;
    }
    const std::int32_t file = FileOf(path);
    if (file < 0) {
      findings_.Refuse("storage_data", fmt::format("more than {} files", kMostFiles),
                       "expected fewer");
      return std::nullopt;
    }
    return DistributedPlace{file, pickle_.Integer(offset), pickle_.Integer(length)};
  }

  // "zstd", of a list of texts.
  std::string WordsOf(PickleRef list) const {
    constexpr std::size_t kMost = 4;
    std::string words;
    for (const PickleRef item :
         pickle_.Items(list).first(std::min(kMost, pickle_.Items(list).size()))) {
      words += fmt::format("{}{}", words.empty() ? "" : ", ", pickle_.Text(item).substr(0, 40));
    }
    return words;
  }

  std::int32_t FileOf(PickleRef path) {
    const auto next = static_cast<std::int32_t>(contents_.files.size());
    const auto [place, is_new] = files_.try_emplace(texts_.Of(path), next);
    if (is_new) {
      if (contents_.files.size() >= kMostFiles) {
        return -1;
      }
      contents_.files.emplace_back(pickle_.Text(path));
    }
    return place->second;
  }

  // ---- state_dict_metadata

  void Add(PickleRef key, PickleRef value) {
    const std::int32_t number = texts_.Of(key);
    const std::string_view name = pickle_.Text(key);
    if (number == kUnnamed || name.size() > kLongestName) {
      return findings_.Refuse("state_dict_metadata",
                              fmt::format("{} as a name", Name(pickle_.Kind(key))),
                              fmt::format("expected a text of at most {} bytes", kLongestName));
    }
    if (seen_.size() <= static_cast<std::size_t>(number)) {
      seen_.resize(static_cast<std::size_t>(number) + 1);
    }
    const std::string where = fmt::format("tensor \"{}\"", name.substr(0, 200));
    if (seen_[static_cast<std::size_t>(number)]) {
      return findings_.Refuse(where, "a name that stands twice", "expected it once");
    }
    seen_[static_cast<std::size_t>(number)] = true;
    used_bytes_ += name.size() + sizeof(DistributedTensor);
    const std::string_view what = pickle_.CallableName(value);
    if (what.ends_with(".metadata.TensorStorageMetadata")) {
      AddTensor(number, where, {.name = std::string(name)}, value);
    } else if (what.ends_with(".metadata.BytesStorageMetadata")) {
      AddObject(number, where, name);
    } else {
      findings_.Refuse(where, fmt::format("{} {}", Name(pickle_.Kind(value)), what.substr(0, 200)),
                       "expected TensorStorageMetadata or BytesStorageMetadata");
    }
  }

  void AddObject(std::int32_t number, const std::string& where, std::string_view name) {
    const Entry* entry = Take(number, kNoValue);
    if (entry == nullptr) {
      return findings_.Add(FileVerdict::kAcceptWithWarning, where,
                           "an object without a place in storage_data", "expected one");
    }
    if (const auto place = PlaceOf(*entry, where)) {
      contents_.objects.push_back({.name = std::string(name), .place = *place});
    }
  }

  void AddTensor(std::int32_t number, const std::string& where, DistributedTensor tensor,
                 PickleRef value) {
    tensor.type = TypeOf(FieldOf(pickle_, value, "properties"));
    if (tensor.type == nullptr) {
      return findings_.Refuse(where, "an unknown dtype", "expected one of PyTorch's");
    }
    const bool is_shape = ReadCounts(pickle_, FieldOf(pickle_, value, "size"), tensor.shape) &&
                          std::ranges::all_of(tensor.shape, [](std::int64_t d) { return d >= 0; });
    const Checked elements = ElementsOf(tensor.shape);
    if (!is_shape || !elements.ok() || !(elements * tensor.type->bits).ok()) {
      return findings_.Refuse(where, "a shape that cannot be",
                              "expected numbers from 0 on, and at most 2^53 bits");
    }
    used_bytes_ += 8 * tensor.shape.size();
    const PickleRef chunks = FieldOf(pickle_, value, "chunks");
    if (pickle_.Kind(chunks) != Kind::kList) {
      return findings_.Refuse(where, fmt::format("{} as chunks", Name(pickle_.Kind(chunks))),
                              "expected a list");
    }
    for (const PickleRef chunk : pickle_.Items(chunks)) {
      if (!AddChunk(number, where, tensor, chunk)) {
        return;
      }
    }
    if (const std::string fault = TilingFault(tensor.chunks, tensor.shape); !fault.empty()) {
      return findings_.Refuse(where, fault, "expected each element in one chunk");
    }
    contents_.tensors.push_back(std::move(tensor));
  }

  // TensorProperties has a tuple as its state, of which the dtype is the first.
  const TorchType* TypeOf(PickleRef properties) const {
    const PickleRef state = pickle_.State(properties);
    PickleRef dtype = FieldOf(pickle_, properties, "dtype");
    if (pickle_.Kind(state) == Kind::kTuple && !pickle_.Items(state).empty()) {
      dtype = pickle_.Items(state).front();
    }
    return pickle_.Kind(dtype) == Kind::kGlobal ? TorchTypeOfDtype(pickle_.Text(dtype)) : nullptr;
  }

  // False: it makes no part of the tensor, which is a finding.
  bool AddChunk(std::int32_t number, const std::string& where, DistributedTensor& tensor,
                PickleRef chunk) {
    TensorBox box;
    const PickleRef offsets = FieldOf(pickle_, chunk, "offsets");
    if (!ReadCounts(pickle_, offsets, box.start) ||
        !ReadCounts(pickle_, FieldOf(pickle_, chunk, "sizes"), box.shape)) {
      findings_.Refuse(where, "a chunk of another form", "expected offsets and sizes");
      return false;
    }
    used_bytes_ += sizeof(TensorPiece) + sizeof box + 32 * box.start.size();
    if (!LiesWithin(box, tensor.shape)) {
      findings_.Refuse(
          where, fmt::format("a chunk from {} of shape {}", ListOf(box.start), ListOf(box.shape)),
          fmt::format("expected it within {}", ListOf(tensor.shape)));
      return false;
    }
    const Entry* entry = Take(number, TupleOf(offsets));
    if (entry == nullptr) {
      findings_.Refuse(where,
                       fmt::format("a chunk from {} that has no place in storage_data, or a second "
                                   "one from there",
                                   ListOf(box.start)),
                       "expected one place for each chunk");
      return false;
    }
    const auto place = PlaceOf(*entry, where);
    if (place) {
      tensor.chunks.push_back(std::move(box));
      tensor.places.push_back(*place);
    }
    return place.has_value();
  }

  void WarnOfUnused() {
    const auto unused =
        std::ranges::count_if(entries_, [](const Entry& entry) { return !entry.is_used; });
    if (unused > 0 && !findings_.HasRefusals()) {
      findings_.Add(FileVerdict::kAcceptWithWarning, "storage_data",
                    fmt::format("{} places that no tensor has", unused), "expected none");
    }
  }

  const Pickle& pickle_;
  FileFindings& findings_;
  TextNumbers texts_;
  std::vector<Entry> entries_ = {};                            // by name and offset
  std::unordered_map<std::int32_t, std::int32_t> files_ = {};  // by the number of the text
  std::vector<bool> seen_ = {};                                // names, by number
  std::size_t used_bytes_ = 0;
  DistributedContents contents_ = {};
};

// Places of tensors and objects in the order of files and bytes: one that begins before the one
// before it ends. Each byte is read once at most, whatever the pickle says.
bool HaveOverlaps(const DistributedContents& contents) {
  std::vector<DistributedPlace> places;
  places.reserve(contents.objects.size() + contents.tensors.size());
  for (const DistributedTensor& tensor : contents.tensors) {
    places.insert(places.end(), tensor.places.begin(), tensor.places.end());
  }
  for (const DistributedObject& object : contents.objects) {
    places.push_back(object.place);
  }
  std::ranges::sort(places, [](const DistributedPlace& a, const DistributedPlace& b) {
    return std::pair(a.file, a.offset) < std::pair(b.file, b.offset);
  });
  return std::ranges::adjacent_find(places,
                                    [](const DistributedPlace& a, const DistributedPlace& b) {
                                      return a.file == b.file && a.offset + a.bytes > b.offset;
                                    }) != places.end();
}

}  // namespace

bool IsDistributed(const Pickle& pickle) {
  const std::string_view name =
      pickle.Root() == kNoValue ? std::string_view() : pickle.CallableName(pickle.Root());
  return name.starts_with("torch.distributed.") && name.ends_with(".metadata.Metadata");
}

DistributedContents DistributedContentsOf(const Pickle& pickle, FileFindings& findings) {
  DistributedContents contents = MetadataReader(pickle, findings).Read();
  if (HaveOverlaps(contents)) {
    findings.Refuse("storage_data", "places that overlap", "expected each byte in one");
    return {.files = std::move(contents.files)};
  }
  return contents;
}

}  // namespace fourpiles
