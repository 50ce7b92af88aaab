#include "tensors/torch_tensors.h"

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/keyed_hash.h"

namespace fourpiles {
namespace {

using Kind = PickleKind;

constexpr std::size_t kDeepest = 256;                             // containers in one another
constexpr std::size_t kMostTensorBytes = std::size_t{512} << 20;  // of all names and shapes
constexpr std::size_t kAlwaysFineBytes = std::size_t{16} << 20;   // of them
constexpr std::size_t kBytesOfAValue = 200;                       // that a value may add to those
constexpr std::size_t kLongestName = 65'535;
constexpr std::size_t kLongestKey = 1000;  // of a storage
constexpr std::size_t kMostWrappers = 8;   // parameters of parameters …
constexpr std::size_t kMostShown = 100;    // of a name, in a message
constexpr std::string_view kMaker = "torch._utils._rebuild_";
// Calls whose first argument is the tensor. The last ones made parameters before 0.4.
constexpr std::array kWrappers = std::to_array<std::string_view>({
    "torch._utils._rebuild_parameter",
    "torch._utils._rebuild_parameter_with_state",
    "torch._utils._rebuild_device_tensor_from_cpu_tensor",
    "torch.nn.parameter.Parameter",
    "torch.autograd.variable.Variable",
});

// A value of a container, and what it is called there: by a key, a number, or not at all.
struct Child {
  PickleRef value = kNoValue;
  PickleRef key = kNoValue;
  std::int64_t number = -1;
};

// The storage that a persistent id names, and where in it a view begins.
struct StorageUse {
  PickleRef id = kNoValue;
  std::int32_t storage = -1;
  std::int64_t view_offset = 0;
};

class ContentsReader {
 public:
  ContentsReader(const Pickle& pickle, TorchForm form, FileFindings& findings)
      : pickle_(pickle), form_(form), findings_(findings), seen_(pickle.ValueCount()) {}
  ContentsReader(const Pickle& pickle, const TorchObjects& objects, FileFindings& findings)
      : pickle_(pickle), objects_(&objects), findings_(findings), seen_(pickle.ValueCount()) {}

  TorchContents Read() {
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
  // A container on the way down: its children, and which of them is looked at.
  struct Level {
    std::vector<Child> children = {};
    std::size_t next = 0;
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

  static Checked BytesOf(std::int64_t elements, const TorchType& type) {
    return DivideRoundingUp(Checked(elements) * type.bits, 8);
  }

  // ---- the way down

  void Walk() {
    if (pickle_.Root() == kNoValue) {
      return;
    }
    const std::size_t most = MostBytes();
    Visit({.value = pickle_.Root()});
    while (!levels_.empty() && tensor_bytes_ <= most) {
      Level& level = levels_.back();
      if (level.next == level.children.size()) {
        levels_.pop_back();
      } else {
        Visit(level.children[level.next++]);
      }
    }
    if (tensor_bytes_ > most) {
      findings_.Refuse("tensors", fmt::format("names and shapes of more than {} bytes", most),
                       "expected fewer");
    }
  }

  // A tensor of a state dict has ten values of its own and more. A hostile pickle lists one that it
  // shares a million times, each time under a long name.
  std::size_t MostBytes() const {
    return std::min(kMostTensorBytes, kAlwaysFineBytes + kBytesOfAValue * pickle_.ValueCount());
  }

  void Visit(Child child) {
    if (AddTensors(child)) {
      return;
    }
    const Kind kind = pickle_.Kind(child.value);
    const bool is_container = kind == Kind::kTuple || kind == Kind::kList || kind == Kind::kDict ||
                              kind == Kind::kSet || kind == Kind::kReduced;
    if (!is_container || seen_[child.value]) {
      return;
    }
    seen_[child.value] = true;
    if (levels_.size() >= kDeepest) {
      if (!std::exchange(is_too_deep_, true)) {
        findings_.Refuse("data.pkl", fmt::format("values within {} others", kDeepest),
                         "expected fewer");
      }
      return;
    }
    levels_.push_back({.children = ChildrenOf(child.value)});
  }

  std::vector<Child> ChildrenOf(PickleRef value) const {
    const auto items = pickle_.Items(value);
    std::vector<Child> children;
    children.reserve(items.size());
    switch (pickle_.Kind(value)) {
      case Kind::kDict:
        AddPairs(items, children);
        break;
      case Kind::kReduced:
        AddArguments(value, children);
        if (pickle_.State(value) != kNoValue) {
          children.push_back({.value = pickle_.State(value)});
        }
        AddPairs(items, children);
        break;
      default:
        AddNumbered(items, children);
    }
    return children;
  }

  static void AddPairs(std::span<const PickleRef> items, std::vector<Child>& children) {
    for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
      children.push_back(
          {.value = items[i + 1], .key = items[i], .number = static_cast<std::int64_t>(i / 2)});
    }
  }
  static void AddNumbered(std::span<const PickleRef> items, std::vector<Child>& children) {
    for (const PickleRef item : items) {
      children.push_back({.value = item, .number = static_cast<std::int64_t>(children.size())});
    }
  }
  // What an object was made from. Python 2 made an OrderedDict from a list of pairs.
  void AddArguments(PickleRef value, std::vector<Child>& children) const {
    const auto arguments = pickle_.Items(pickle_.Arguments(value));
    if (arguments.size() != 1) {
      return AddNumbered(arguments, children);
    }
    if (pickle_.CallableName(value) != "collections.OrderedDict") {
      children.push_back({.value = arguments[0]});
      return;
    }
    for (const PickleRef pair : pickle_.Items(arguments[0])) {
      if (const auto items = pickle_.Items(pair); items.size() == 2) {
        children.push_back({.value = items[1], .key = items[0]});
      }
    }
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
    PickleRef value = child.value;
    for (std::size_t i = 0; i < kMostWrappers; ++i) {
      if (pickle_.Kind(value) == Kind::kPersistentId) {
        return objects_ != nullptr && AddObject(child, pickle_.Items(value).front());
      }
      const std::string_view maker = pickle_.CallableName(value);
      const auto arguments =
          maker.empty() ? std::span<const PickleRef>() : pickle_.Items(pickle_.Arguments(value));
      if (maker == "torch._tensor._rebuild_from_type_v2") {
        return AddTyped(child, arguments);
      }
      const bool is_wrapper =
          std::find(kWrappers.begin(), kWrappers.end(), maker) != kWrappers.end();
      if (!is_wrapper || arguments.empty()) {
        return maker.starts_with(kMaker) && AddMade(child, maker.substr(kMaker.size()), arguments);
      }
      value = arguments.front();
    }
    return false;
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

  // (function, class, its arguments, state)
  bool AddTyped(const Child& child, std::span<const PickleRef> arguments) {
    const bool is_made = arguments.size() >= 3 && pickle_.Kind(arguments[0]) == Kind::kGlobal &&
                         pickle_.Text(arguments[0]).starts_with(kMaker);
    if (!is_made) {
      return false;
    }
    return AddMade(child, pickle_.Text(arguments[0]).substr(kMaker.size()),
                   pickle_.Items(arguments[2]));
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
    return false;
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
      if (maker.starts_with(kMaker)) {
        AddTensor(child, fmt::format("<sparse{}>", number++), maker.substr(kMaker.size()),
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
      if (maker.starts_with(kMaker)) {
        AddTensor(child, kEndings[i - 1], maker.substr(kMaker.size()),
                  pickle_.Items(pickle_.Arguments(parameters[i])));
      }
    }
  }

  // Makers begin with a storage, an offset, a shape and strides; the third kind ends with a dtype.
  void AddTensor(const Child& child, std::string_view ending, std::string_view what,
                 std::span<const PickleRef> arguments) {
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
  std::vector<bool> seen_;
  std::vector<Level> levels_ = {};
  std::vector<StorageUse> uses_ = {};  // by id
  std::unordered_map<std::string, std::int32_t, KeyedHash> numbers_ = {};
  std::size_t tensor_bytes_ = 0;
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

TorchContents TorchContentsOf(const Pickle& pickle, TorchForm form, FileFindings& findings) {
  return ContentsReader(pickle, form, findings).Read();
}

TorchContents TorchContentsOf(const Pickle& pickle, const TorchObjects& objects,
                              FileFindings& findings) {
  return ContentsReader(pickle, objects, findings).Read();
}

std::string TorchLabelOf(const Pickle& pickle, PickleRef key) {
  switch (pickle.Kind(key)) {
    case Kind::kText:
    case Kind::kGlobal:
      return std::string(pickle.Text(key).substr(0, kLongestName + 1));
    case Kind::kInteger:
    case Kind::kBool:
      return std::to_string(pickle.Integer(key));
    default:
      return fmt::format("<{}>", Name(pickle.Kind(key)));
  }
}

}  // namespace fourpiles
