#include "tensors/torch_tensors.h"

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/keyed_hash.h"
#include "tensors/torch_call.h"
#include "tensors/torch_children.h"
#include "tensors/torch_label.h"

namespace fourpiles {
namespace {

using Kind = PickleKind;

constexpr std::size_t kDeepest = 256;                             // containers in one another
constexpr std::size_t kMostTensorBytes = std::size_t{512} << 20;  // of all names and shapes
constexpr std::size_t kAlwaysFineBytes = std::size_t{1} << 20;    // of them
constexpr std::size_t kBytesOfAByte = 16;  // that a byte of the pickle may add to those
constexpr std::size_t kMostPacked = 16;    // bytes of a pickle that one of the file stands for
constexpr std::size_t kAlwaysFineVisits = 100'000;  // of values on the way down
constexpr std::size_t kVisitsOfAValue = 16;         // that a value may add to those
constexpr std::size_t kLongestName = 65'535;
constexpr std::size_t kLongestKey = 1000;  // of a storage
constexpr std::size_t kMostShown = 100;    // of a name, in a message

// The storage that a persistent id names, and where in it a view begins.
struct StorageUse {
  PickleRef id = kNoValue;
  std::int32_t storage = -1;
  std::int64_t view_offset = 0;
};

class ContentsReader {
 public:
  ContentsReader(const Pickle& pickle, TorchForm form, FileFindings& findings)
      : pickle_(pickle), form_(form), findings_(findings), places_(pickle.ValueCount()) {}
  ContentsReader(const Pickle& pickle, const TorchObjects& objects, FileFindings& findings)
      : pickle_(pickle), objects_(&objects), findings_(findings), places_(pickle.ValueCount()) {}

  // `file_bytes`: that the pickle takes in the file.
  TorchContents Read(std::size_t file_bytes) {
    const auto pickle_bytes = static_cast<std::size_t>(pickle_.End());
    most_bytes_ = std::min(
        kMostTensorBytes,
        kAlwaysFineBytes + kBytesOfAByte * std::min(pickle_bytes, kMostPacked * file_bytes));
    if (objects_ != nullptr) {
      contents_.storages = objects_->storages;
      Walk();
      return std::move(contents_);
    }
    for (PickleRef value = 0; value < pickle_.ValueCount(); ++value) {
      if (pickle_.Kind(value) == Kind::kPersistentId) {
        ReadStorage(value);
      }
    }
    Walk();
    return std::move(contents_);
  }

 private:
  using Child = TorchChild;

  // A container on the way down: its children, and which of them is looked at.
  struct Level {
    PickleRef value = kNoValue;
    std::vector<Child> children = {};
    std::size_t next = 0;
    std::size_t tensors_before = 0;
    bool is_aside = false;  // within the attributes of a dict
  };

  // What is known of a container.
  enum class Place : std::uint8_t {
    kNew,
    kOnTheWay,  // it is one of the levels
    kSeen,
    kEmpty,  // there is no tensor in it
  };

  // ('storage', torch.FloatStorage, "0", "cpu", 10), and in the stream form None or a view: (key,
  // offset, elements).
  void ReadStorage(PickleRef id) {
    const PickleRef tuple = pickle_.Items(id).front();
    const auto items = pickle_.Items(tuple);
    if (form_ == TorchForm::kStream && items.size() == 4 && pickle_.Text(items[0]) == "module") {
      return;  // a class, and its source to compare
    }
    const bool is_storage = pickle_.Kind(tuple) == Kind::kTuple && items.size() >= 5 &&
                            pickle_.Text(items[0]) == "storage" &&
                            pickle_.Text(items[2]).size() <= kLongestKey &&
                            pickle_.Kind(items[4]) == Kind::kInteger;
    if (!is_storage) {
      return findings_.Refuse(
          "persistent id", std::string(Name(pickle_.Kind(tuple))),
          fmt::format("expected a storage, whose key has at most {} bytes", kLongestKey));
    }
    const std::string key = LabelOf(items[2]);
    const TorchType* type = TorchTypeOfStorage(pickle_.Text(items[1]));
    const std::int64_t elements = pickle_.Integer(items[4]);
    const Checked bytes = type == nullptr ? Checked(0) : BytesOf(elements, *type);
    if (type == nullptr || elements < 0 || !bytes.ok()) {
      return findings_.Refuse(
          fmt::format("storage \"{}\"", key),
          type == nullptr ? fmt::format("of \"{}\"", pickle_.Text(items[1]).substr(0, kMostShown))
                          : fmt::format("{} elements", elements),
          "expected a class of storages and a number from 0 to 2^53 bytes");
    }
    Use(id, {.key = key, .type = type, .elements = elements, .bytes = bytes.value()},
        items.size() > 5 ? items[5] : kNoValue);
  }

  void Use(PickleRef id, TorchStorage storage, PickleRef view) {
    const auto number = static_cast<std::int32_t>(contents_.storages.size());
    const auto [place, is_new] = numbers_.try_emplace(storage.key, number);
    if (is_new) {
      contents_.storages.push_back(std::move(storage));
    } else if (const TorchStorage& first =
                   contents_.storages[static_cast<std::size_t>(place->second)];
               first.bytes != storage.bytes) {
      return findings_.Refuse(
          fmt::format("storage \"{}\"", storage.key),
          fmt::format("once of {} bytes and once of {}", first.bytes, storage.bytes),
          "expected one size");
    }
    StorageUse use = {.id = id, .storage = place->second};
    if (view != kNoValue && pickle_.Kind(view) == Kind::kTuple) {
      const auto items = pickle_.Items(view);
      if (items.size() != 3 || pickle_.Kind(items[1]) != Kind::kInteger) {
        return findings_.Refuse("persistent id", "a view of another form",
                                "expected a key, an offset and a size");
      }
      use.view_offset = pickle_.Integer(items[1]);
    }
    uses_.push_back(use);
  }

  // A storage of types of less than a byte counts bytes.
  static Checked BytesOf(std::int64_t elements, const TorchType& type) {
    return DivideRoundingUp(Checked(elements) * std::max<std::int64_t>(type.bits, 8), 8);
  }

  // ---- the way down

  void Walk() {
    if (pickle_.Root() == kNoValue) {
      return;
    }
    Visit({.value = pickle_.Root()});
    while (!levels_.empty() && !HasGrown()) {
      Level& level = levels_.back();
      if (level.next == level.children.size()) {
        const bool is_empty = level.tensors_before == tensor_count_;
        places_[level.value] = is_empty ? Place::kEmpty : Place::kSeen;
        levels_.pop_back();
      } else {
        Visit(level.children[level.next++]);
      }
    }
    if (HasGrown()) {
      contents_.tensors.clear();
    }
  }

  // A tensor of a state dict takes a hundred bytes and more. A hostile pickle lists one that it
  // shares a million times, each time under a long name, and shares what holds it.
  bool HasGrown() {
    const std::size_t most_visits = kAlwaysFineVisits + kVisitsOfAValue * pickle_.ValueCount();
    if (tensor_bytes_ <= most_bytes_ && visits_ <= most_visits) {
      return false;
    }
    if (!std::exchange(has_grown_, true)) {
      findings_.Refuse("tensors",
                       tensor_bytes_ > most_bytes_
                           ? fmt::format("names and shapes of more than {} bytes", most_bytes_)
                           : fmt::format("shared containers of more than {} values", most_visits),
                       "expected fewer, for a pickle of that size");
    }
    return true;
  }

  void Visit(const Child& child) {
    if (AddTensors(child) || !IsTorchContainer(pickle_, child.value)) {
      return;
    }
    Place& place = places_[child.value];
    const bool is_known_instance = place == Place::kSeen && IsTorchInstance(pickle_, child.value);
    if (place == Place::kOnTheWay || place == Place::kEmpty || is_known_instance) {
      return;
    }
    if (levels_.size() >= kDeepest) {
      if (!std::exchange(is_too_deep_, true)) {
        findings_.Refuse("data.pkl", fmt::format("values within {} others", kDeepest),
                         "expected fewer");
      }
      return;
    }
    TorchChildren children = TorchChildrenOf(pickle_, child.value);
    if (place == Place::kNew) {
      TellOf(child, children);
    }
    visits_ += children.visits;
    place = Place::kOnTheWay;
    const bool is_aside = IsAside(child);
    levels_.push_back({.value = child.value,
                       .children = std::move(children.list),
                       .tensors_before = tensor_count_,
                       .is_aside = is_aside});
  }

  bool IsAside(const Child& child) const {
    return child.number == Child::kAttributes || (!levels_.empty() && levels_.back().is_aside);
  }

  void TellOf(const Child& child, const TorchChildren& children) {
    if (children.has_repeats) {
      findings_.Add(FileVerdict::kAcceptWithWarning, WhereOf("dict", child),
                    "a key that stands twice", "the last value counts, as in Python");
    }
    if (children.is_unclear) {
      findings_.Add(FileVerdict::kReport, WhereOf("dict", child),
                    "an OrderedDict of what is no dict and no list of pairs",
                    "its tensors may be others than those that are listed");
    }
  }

  // Where a finding is; an empty name is the root's.
  std::string WhereOf(std::string_view what, const Child& child) {
    const std::string name = NameOf(child, {});
    tensor_bytes_ += name.size();
    return fmt::format("{} \"{}\"", what, name.substr(0, kMostShown));
  }

  std::string LabelOf(PickleRef key) const { return TorchLabelOf(pickle_, key); }

  std::string NameOf(const Child& last, std::string_view ending) {
    std::string name;
    const auto add = [&](const Child& child) {
      if ((child.key == kNoValue && child.number < 0) || name.size() > kLongestName) {
        return;
      }
      name += name.empty() ? "" : ".";
      name += child.key == kNoValue ? std::to_string(child.number) : LabelOf(child.key);
    };
    for (std::size_t i = 0; i < levels_.size(); ++i) {
      const Level& level = levels_[i];
      if (i + 1 < levels_.size()) {
        add(level.children[level.next - 1]);
      }
    }
    add(last);
    if (!ending.empty()) {
      name += fmt::format("{}{}", name.empty() ? "" : ".", ending);
    }
    return name;
  }

  // ---- tensors

  // Whether the value is a tensor, or was meant to be one.
  bool AddTensors(const Child& child) {
    const TorchCall call = TorchCallOf(pickle_, child.value);
    if (pickle_.Kind(call.value) == Kind::kPersistentId) {
      return objects_ != nullptr && AddObject(child, pickle_.Items(call.value).front());
    }
    if (call.replaces_data) {
      findings_.Add(FileVerdict::kReport, WhereOf("tensor", child),
                    "a state that replaces its data", "expected other attributes",
                    "another tensor than the listed one is loaded");
    }
    constexpr std::string_view kSubclass = "torch._utils._rebuild_wrapper_subclass";
    if (call.maker == kSubclass || !MakesTensor(call)) {
      return false;  // a subclass holds its tensors in its state
    }
    return (call.maker.starts_with(kTensorMaker) &&
            AddMade(child, call.maker.substr(kTensorMaker.size()), call.arguments)) ||
           AddUnclear(child, call.maker);
  }

  // A tensor that is made in a way that is not read here.
  bool AddUnclear(const Child& child, std::string_view maker) {
    ++tensor_count_;
    findings_.Add(FileVerdict::kReport, WhereOf("tensor", child),
                  maker.empty() ? "made of no tensor" : fmt::format("made by {}", maker),
                  "expected torch._utils._rebuild_tensor_v2", "it is not listed");
    return true;
  }

  // A tensor of the tar form. Storages and classes are passed over.
  bool AddObject(const Child& child, PickleRef number) {
    const std::string key =
        pickle_.Text(number).size() > kLongestKey ? "a long text" : LabelOf(number);
    const auto found = objects_->tensors.find(key);
    if (found == objects_->tensors.end()) {
      if (pickle_.Kind(number) != Kind::kTuple && !objects_->views.contains(key)) {
        findings_.Refuse("persistent id", fmt::format("\"{}\"", key.substr(0, kMostShown)),
                         "expected the number of a tensor or storage");
      }
      return true;
    }
    ++tensor_count_;
    TorchTensor tensor = found->second;
    tensor.name = NameOf(child, {});
    tensor_bytes_ += BytesOf(tensor);
    if (tensor.name.size() > kLongestName) {
      findings_.Refuse(fmt::format("tensor \"{}\"", tensor.name.substr(0, kMostShown)),
                       "a long name", fmt::format("expected at most {} bytes", kLongestName));
      return true;
    }
    contents_.tensors.push_back(std::move(tensor));
    return true;
  }

  // That it takes here, roughly.
  static std::size_t BytesOf(const TorchTensor& tensor) {
    return sizeof tensor + tensor.name.size() + 16 * tensor.shape.size();
  }

  bool AddMade(const Child& child, std::string_view what, std::span<const PickleRef> arguments) {
    if (what == "sparse_tensor" || what == "sparse_csr_tensor") {
      return arguments.size() == 2 && AddParts(child, pickle_.Items(arguments[1]));
    }
    if (what == "tensor" || what.starts_with("tensor_v") || what == "qtensor") {
      AddTensor(child, {}, what, arguments);
      if (what == "qtensor" && arguments.size() > 4) {
        AddScales(child, pickle_.Items(arguments[4]));
      }
      return true;
    }
    return what == "meta_tensor_no_storage" && AddMeta(child, arguments);
  }

  // (dtype, shape, strides, whether it needs a gradient): a tensor of the device "meta".
  bool AddMeta(const Child& child, std::span<const PickleRef> arguments) {
    TorchTensor tensor = {.name = NameOf(child, {}), .storage = -1};
    tensor_bytes_ += BytesOf(tensor);
    if (arguments.size() != 4 || IsAside(child) || tensor.name.size() > kLongestName ||
        !ReadCounts(pickle_, arguments[1], tensor.shape) ||
        !ReadCounts(pickle_, arguments[2], tensor.strides)) {
      return false;
    }
    ++tensor_count_;
    tensor_bytes_ += 16 * tensor.shape.size();
    tensor.type = TorchTypeOfDtype(pickle_.Text(arguments[0]));
    if (tensor.type == nullptr) {
      return false;
    }
    contents_.tensors.push_back(std::move(tensor));
    return true;
  }

  // The tensors among the parts of a sparse one.
  bool AddParts(const Child& child, std::span<const PickleRef> parts) {
    // Two or three of them are tensors; then come a size and whether it is coalesced.
    constexpr std::size_t kMostParts = 8;
    if (parts.size() > kMostParts) {
      findings_.Refuse("sparse tensor", fmt::format("{} parts", parts.size()),
                       fmt::format("expected at most {}", kMostParts));
      return true;
    }
    int number = 0;
    for (const PickleRef part : parts) {
      const std::string_view maker = pickle_.CallableName(part);
      if (maker.starts_with(kTensorMaker)) {
        AddTensor(child, fmt::format("<sparse{}>", number++), maker.substr(kTensorMaker.size()),
                  pickle_.Items(pickle_.Arguments(part)));
      }
    }
    return true;
  }

  // (scheme, scales, zero points, axis), of which a scheme for each channel has tensors.
  void AddScales(const Child& child, std::span<const PickleRef> parameters) {
    constexpr std::string_view kEndings[] = {"<scales>", "<zero_points>"};
    for (std::size_t i = 1; i < std::min<std::size_t>(parameters.size(), 3); ++i) {
      const std::string_view maker = pickle_.CallableName(parameters[i]);
      if (maker.starts_with(kTensorMaker)) {
        AddTensor(child, kEndings[i - 1], maker.substr(kTensorMaker.size()),
                  pickle_.Items(pickle_.Arguments(parameters[i])));
      }
    }
  }

  // Makers begin with a storage, an offset, a shape and strides; the third kind ends with a dtype.
  void AddTensor(const Child& child, std::string_view ending, std::string_view what,
                 std::span<const PickleRef> arguments) {
    ++tensor_count_;
    if (IsAside(child)) {
      return findings_.Add(FileVerdict::kReport, WhereOf("tensor", child), "an attribute of a dict",
                           "expected an item", "it is not listed");
    }
    TorchTensor tensor = {.name = NameOf(child, ending)};
    const StorageUse* use = arguments.size() < 4 ? nullptr : UseOf(arguments[0]);
    const bool is_good = use != nullptr && tensor.name.size() <= kLongestName &&
                         pickle_.Kind(arguments[1]) == Kind::kInteger &&
                         ReadCounts(pickle_, arguments[2], tensor.shape) &&
                         ReadCounts(pickle_, arguments[3], tensor.strides);
    tensor_bytes_ += BytesOf(tensor);
    if (!is_good) {
      tensor.name.resize(std::min(tensor.name.size(), kLongestName));
      return findings_.Refuse(fmt::format("tensor \"{}\"", tensor.name),
                              "a long name, or other arguments",
                              "expected a storage, an offset, a shape and strides");
    }
    tensor.storage = use->storage;
    tensor.type = contents_.storages[static_cast<std::size_t>(use->storage)].type;
    if (what == "tensor_v3") {
      tensor.type = arguments.size() > 6 ? TorchTypeOfDtype(pickle_.Text(arguments[6])) : nullptr;
      if (tensor.type == nullptr) {
        return findings_.Refuse(fmt::format("tensor \"{}\"", tensor.name), "an unknown dtype",
                                "expected one of PyTorch's");
      }
    }
    const Checked offset = Checked(pickle_.Integer(arguments[1])) + use->view_offset;
    tensor.offset = offset.ok() ? offset.value() : -1;
    contents_.tensors.push_back(std::move(tensor));
  }

  const StorageUse* UseOf(PickleRef id) const {
    const auto found =
        std::lower_bound(uses_.begin(), uses_.end(), id,
                         [](const StorageUse& use, PickleRef wanted) { return use.id < wanted; });
    return found == uses_.end() || found->id != id ? nullptr : &*found;
  }

  const Pickle& pickle_;
  TorchForm form_ = TorchForm::kStream;
  const TorchObjects* objects_ = nullptr;  // of the tar form
  FileFindings& findings_;
  std::vector<Place> places_;  // of each value
  std::vector<Level> levels_ = {};
  std::vector<StorageUse> uses_ = {};  // by id
  std::unordered_map<std::string, std::int32_t, KeyedHash> numbers_ = {};
  std::size_t most_bytes_ = 0;    // of names and shapes
  std::size_t tensor_bytes_ = 0;  // of those that were listed
  std::size_t tensor_count_ = 0;  // listed or not
  std::size_t visits_ = 0;
  bool has_grown_ = false;
  bool is_too_deep_ = false;
  TorchContents contents_ = {};
};

}  // namespace

bool ReadCounts(const Pickle& pickle, PickleRef value, std::vector<std::int64_t>& counts) {
  if (pickle.CallableName(value) == "torch.Size") {
    const auto arguments = pickle.Items(pickle.Arguments(value));
    value = arguments.empty() ? value : arguments.front();
  }
  const auto items = pickle.Items(value);
  const bool is_sequence = pickle.Kind(value) == Kind::kTuple || pickle.Kind(value) == Kind::kList;
  const bool is_good = is_sequence && items.size() <= kMostDimensions &&
                       std::all_of(items.begin(), items.end(), [&](PickleRef item) {
                         return pickle.Kind(item) == Kind::kInteger;
                       });
  if (is_good) {
    counts.reserve(counts.size() + items.size());
    std::transform(items.begin(), items.end(), std::back_inserter(counts),
                   [&](PickleRef item) { return pickle.Integer(item); });
  }
  return is_good;
}

TorchContents TorchContentsOf(const Pickle& pickle, TorchForm form, FileFindings& findings,
                              std::int64_t file_bytes) {
  return ContentsReader(pickle, form, findings)
      .Read(static_cast<std::size_t>(std::min(file_bytes, pickle.End())));
}

TorchContents TorchContentsOf(const Pickle& pickle, const TorchObjects& objects,
                              FileFindings& findings) {
  return ContentsReader(pickle, objects, findings).Read(static_cast<std::size_t>(pickle.End()));
}

}  // namespace fourpiles
