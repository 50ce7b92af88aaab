#include "tensors/torch_children.h"

#include <cmath>
#include <span>
#include <string_view>
#include <unordered_map>

#include "base/keyed_hash.h"

namespace fourpiles {
namespace {

using Kind = PickleKind;

constexpr double kLargestWhole = 9007199254740992.0;  // 2^53
constexpr std::size_t kKeyBytesOfAVisit = 64;
constexpr std::string_view kOrderedDict = "collections.OrderedDict";

void AddPairs(std::span<const PickleRef> items, std::vector<TorchChild>& children) {
  for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
    children.push_back(
        {.value = items[i + 1], .key = items[i], .number = static_cast<std::int64_t>(i / 2)});
  }
}

void AddNumbered(std::span<const PickleRef> items, std::vector<TorchChild>& children) {
  for (const PickleRef item : items) {
    children.push_back({.value = item, .number = static_cast<std::int64_t>(children.size())});
  }
}

// What OrderedDict() takes: a dict of one or the other kind, or pairs, as Python 2 wrote them.
// False: something else.
bool AddOrdered(const Pickle& pickle, PickleRef items, std::vector<TorchChild>& children) {
  const Kind kind = pickle.Kind(items);
  if (kind == Kind::kDict || pickle.CallableName(items) == kOrderedDict) {
    children.push_back({.value = items});
    return true;
  }
  bool is_clear = kind == Kind::kList || kind == Kind::kTuple;
  for (const PickleRef pair : pickle.Items(items)) {
    const auto parts = pickle.Items(pair);
    const bool is_pair = pickle.Kind(pair) == Kind::kTuple || pickle.Kind(pair) == Kind::kList;
    if (is_pair && parts.size() == 2) {
      children.push_back({.value = parts[1], .key = parts[0]});
    }
    is_clear = is_clear && is_pair && parts.size() == 2;
  }
  return is_clear;
}

// What an object was made from, its state, and what was put into it. False: not all is clear.
bool AddObject(const Pickle& pickle, PickleRef object, std::vector<TorchChild>& children) {
  const bool is_ordered = pickle.CallableName(object) == kOrderedDict;
  const auto arguments = pickle.Items(pickle.Arguments(object));
  bool is_clear = true;
  if (arguments.size() != 1) {
    AddNumbered(arguments, children);
  } else if (is_ordered) {
    is_clear = AddOrdered(pickle, arguments[0], children);
  } else {
    children.push_back({.value = arguments[0]});
  }
  if (const PickleRef state = pickle.State(object); state != kNoValue) {
    children.push_back(
        {.value = state, .number = is_ordered ? TorchChild::kAttributes : TorchChild::kNoNumber});
  }
  AddPairs(pickle.Items(object), children);
  return is_clear;
}

// Keys that Python holds for equal: texts, numbers (1, 1.0 and True), else one and the same value.
class Keys {
 public:
  explicit Keys(const Pickle& pickle) : pickle_(pickle) {}

  // Where the key stood first: `place` if it is new.
  std::size_t FirstOf(PickleRef key, std::size_t place) {
    const auto [same, is_new_value] = values_.try_emplace(key, place);
    if (!is_new_value) {
      return same->second;
    }
    std::size_t first = place;
    if (pickle_.Kind(key) == Kind::kText) {
      first = texts_.try_emplace(pickle_.Text(key), place).first->second;
    } else if (pickle_.Kind(key) == Kind::kInteger || pickle_.Kind(key) == Kind::kBool) {
      first = numbers_.try_emplace(pickle_.Integer(key), place).first->second;
    } else if (const double real = pickle_.Real(key); pickle_.Kind(key) == Kind::kFloat &&
                                                      std::trunc(real) == real &&
                                                      std::abs(real) < kLargestWhole) {
      first = numbers_.try_emplace(static_cast<std::int64_t>(real), place).first->second;
    }
    same->second = first;
    return first;
  }

 private:
  const Pickle& pickle_;
  std::unordered_map<PickleRef, std::size_t> values_ = {};
  std::unordered_map<std::string_view, std::size_t, KeyedHash> texts_ = {};
  std::unordered_map<std::int64_t, std::size_t> numbers_ = {};
};

// Python's dicts keep the place of a key and take its last value. True: some key stood twice.
bool KeepLast(const Pickle& pickle, std::vector<TorchChild>& children) {
  Keys keys(pickle);
  std::size_t kept = 0;
  for (const TorchChild& child : children) {
    const std::size_t first = child.key == kNoValue ? kept : keys.FirstOf(child.key, kept);
    if (first < kept) {
      children[first].value = child.value;
    } else {
      children[kept++] = child;
    }
  }
  const bool has_repeats = kept < children.size();
  children.resize(kept);
  return has_repeats;
}

}  // namespace

bool IsTorchContainer(const Pickle& pickle, PickleRef value) {
  const Kind kind = pickle.Kind(value);
  return kind == Kind::kTuple || kind == Kind::kList || kind == Kind::kDict || kind == Kind::kSet ||
         kind == Kind::kReduced;
}

bool IsTorchInstance(const Pickle& pickle, PickleRef value) {
  return pickle.Kind(value) == Kind::kReduced && pickle.CallableName(value) != kOrderedDict;
}

TorchChildren TorchChildrenOf(const Pickle& pickle, PickleRef container) {
  TorchChildren children;
  const auto items = pickle.Items(container);
  children.list.reserve(items.size());
  const Kind kind = pickle.Kind(container);
  if (kind == Kind::kReduced) {
    children.is_unclear = !AddObject(pickle, container, children.list);
  } else if (kind == Kind::kDict) {
    AddPairs(items, children.list);
  } else {
    AddNumbered(items, children.list);
  }
  for (const TorchChild& child : children.list) {
    children.visits += 1 + pickle.Text(child.key).size() / kKeyBytesOfAVisit;
  }
  if (kind == Kind::kReduced || kind == Kind::kDict) {
    children.has_repeats = KeepLast(pickle, children.list);
  }
  return children;
}

}  // namespace fourpiles
