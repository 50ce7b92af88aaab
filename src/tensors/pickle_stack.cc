#include "tensors/pickle_stack.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace fourpiles {
namespace {

using Kind = PickleKind;

// The names that Python 2 had for modules of Python 3 (CPython, Lib/_compat_pickle.py).
std::string_view ModuleOfPython3(std::string_view module) {
  if (module == "__builtin__") {
    return "builtins";
  }
  return module == "copy_reg" ? "copyreg" : module;
}

// Classes whose objects take neither a state nor items.
constexpr std::array kFixed = std::to_array<std::string_view>(
    {"torch.Size", "torch.device", "builtins.complex", "builtins.bytearray"});

// Before 0.4 parameters took their state: whether they need a gradient, and hooks.
bool IsParameter(std::string_view maker) {
  return maker == "torch.nn.parameter.Parameter" || maker == "torch.autograd.variable.Variable";
}

bool IsTensor(const Pickle& pickle, PickleRef value) {
  const std::string_view maker = pickle.CallableName(value);
  return maker.starts_with("torch._utils._rebuild_") || IsParameter(maker) ||
         maker == "torch._tensor._rebuild_from_type_v2" ||
         (maker.starts_with("torch.") && maker.ends_with("Tensor"));
}

// Containers that are made by a call, and what kind of items they take.
constexpr std::array kMade = std::to_array<std::pair<std::string_view, Kind>>({
    {"builtins.set", Kind::kSet},
    {"collections.Counter", Kind::kDict},
    {"collections.OrderedDict", Kind::kDict},
    {"collections.defaultdict", Kind::kDict},
});

// `otherwise` where nothing is known of the maker.
Kind KindOfMade(std::string_view maker, Kind otherwise) {
  const auto* const made = std::find_if(kMade.begin(), kMade.end(),
                                        [&](const auto& each) { return each.first == maker; });
  return made == kMade.end() ? otherwise : made->second;
}

bool IsFixed(const Pickle& pickle, PickleRef value) {
  return std::find(kFixed.begin(), kFixed.end(), pickle.CallableName(value)) != kFixed.end();
}

}  // namespace

void PickleStack::Fail(std::string found, std::string expected) {
  if (!pickle_.fault_) {
    pickle_.fault_ = {step_place_, std::move(found), std::move(expected)};
  }
}

Pickle PickleStack::Finish(std::int64_t end) && {
  pickle_.end_ = end;
  if (!pickle_.fault_ && Has(1)) {
    pickle_.root_ = stack_.back();
  }
  return std::move(pickle_);
}

void PickleStack::Push(PickleRef value) {
  if (stack_.size() >= limits_.values) {
    return Fail(fmt::format("more than {} values on the stack", limits_.values), "expected fewer");
  }
  stack_.push_back(value);
}

void PickleStack::PushNew(const Node& node) {
  if (pickle_.nodes_.size() >= limits_.values) {
    return Fail(fmt::format("more than {} values", limits_.values), "expected fewer");
  }
  pickle_.nodes_.push_back(node);
  Push(static_cast<PickleRef>(pickle_.nodes_.size() - 1));
}

void PickleStack::PushText(std::string_view text) {
  if (HasRoomFor(text.size())) {
    const std::size_t begin = pickle_.texts_.size();
    pickle_.texts_.append(text);
    PushTextFrom(begin);
  }
}

void PickleStack::PushTextFrom(std::size_t begin, Kind kind) {
  PushNew({.kind = kind,
           .length = static_cast<std::uint32_t>(pickle_.texts_.size() - begin),
           .number = static_cast<std::int64_t>(begin)});
}

bool PickleStack::HasRoomFor(std::uint64_t text) {
  if (text > limits_.text_bytes - pickle_.texts_.size()) {
    Fail(fmt::format("texts of more than {} bytes", limits_.text_bytes), "expected fewer");
    return false;
  }
  return true;
}

void PickleStack::PushList(Kind kind, std::vector<PickleRef> items) {
  pickle_.lists_.push_back(std::move(items));
  PushNumber(static_cast<std::int64_t>(pickle_.lists_.size() - 1), kind);
}

void PickleStack::PushTuple(std::span<const PickleRef> items, Kind kind) {
  const std::size_t place = pickle_.refs_.size();
  pickle_.refs_.insert(pickle_.refs_.end(), items.begin(), items.end());
  PushNew({.kind = kind,
           .length = static_cast<std::uint32_t>(items.size()),
           .number = static_cast<std::int64_t>(place)});
}

void PickleStack::PushGlobal(const std::string& module, const std::string& name) {
  if (module.size() + name.size() > kLongestGlobal) {
    return Fail(fmt::format("an import whose name has more than {} bytes", kLongestGlobal),
                "expected fewer");
  }
  std::string written = module + "." + name;
  const auto [place, is_new] =
      global_numbers_.try_emplace(written, static_cast<std::uint32_t>(global_numbers_.size()));
  const std::uint32_t number = place->second;
  if (is_new) {
    pickle_.global_names_.push_back(fmt::format("{}.{}", ModuleOfPython3(module), name));
    pickle_.globals_.push_back(std::move(written));
  }
  PushNumber(number, Kind::kGlobal);
}

void PickleStack::PushReduced(PickleRef callable, PickleRef arguments, PickleRef named) {
  // A class may lie beside the pickle: PyTorch kept its modules' source there.
  const Kind kind = pickle_.Kind(callable);
  if (kind != Kind::kGlobal && kind != Kind::kReduced && kind != Kind::kPersistentId) {
    return Fail(fmt::format("a call of {}", Name(kind)), "expected a class or function");
  }
  if (pickle_.Kind(arguments) != Kind::kTuple) {
    return Fail(fmt::format("{} as arguments", Name(pickle_.Kind(arguments))), "expected a tuple");
  }
  Take(arguments);
  PushList(Kind::kReduced, {callable, arguments, named});
}

void PickleStack::PushNewObject(PickleRef callable, PickleRef arguments, PickleRef named) {
  const std::string_view name = pickle_.Text(callable);
  const bool is_container =
      name == "collections.OrderedDict" || name == "collections.Counter" || name == "builtins.set";
  if (is_container && (named != kNoValue || !pickle_.Items(arguments).empty())) {
    return Fail(fmt::format("a new {} of arguments", name), "expected none, which it leaves out");
  }
  PushReduced(callable, arguments, named);
}

// With the lists and tuples in it: a call copies the numbers of a shape, or the pairs of a dict.
// Each is gone through once.
void PickleStack::Take(PickleRef value) {
  std::vector<PickleRef> waiting = {value};
  is_taken_.resize(pickle_.nodes_.size());
  while (!waiting.empty()) {
    const PickleRef next = waiting.back();
    waiting.pop_back();
    const Kind kind = pickle_.Kind(next);
    const bool is_list = kind == Kind::kList || kind == Kind::kTuple;
    if (is_taken_[next] || (!is_list && kind != Kind::kDict && kind != Kind::kSet)) {
      continue;
    }
    is_taken_[next] = true;
    if (is_list) {
      const auto items = pickle_.Items(next);
      waiting.insert(waiting.end(), items.begin(), items.end());
    }
  }
}

bool PickleStack::Has(std::size_t values) {
  if (Above() < values) {
    Fail(fmt::format("a step on {} values, of which there are {}", values, Above()),
         "expected them on the stack");
    return false;
  }
  return true;
}

PickleRef PickleStack::Pop() {
  const PickleRef top = stack_.back();
  stack_.pop_back();
  return top;
}

std::vector<PickleRef> PickleStack::PopMarked() {
  if (marks_.empty()) {
    Fail("no mark on the stack", "expected one");
    return {};
  }
  std::vector<PickleRef> items = PopLast(Above());
  marks_.pop_back();
  return items;
}

std::vector<PickleRef> PickleStack::PopLast(std::size_t count) {
  std::vector<PickleRef> items(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
  stack_.resize(stack_.size() - count);
  return items;
}

void PickleStack::Mark() {
  if (marks_.size() >= limits_.values) {
    return Fail(fmt::format("more than {} marks", limits_.values), "expected fewer");
  }
  marks_.push_back(stack_.size());
}

void PickleStack::Drop() {
  if (Above() == 0 && !marks_.empty()) {
    marks_.pop_back();
  } else if (Has(1)) {
    stack_.pop_back();
  }
}

void PickleStack::Duplicate() {
  if (Has(1)) {
    Push(stack_.back());
  }
}

// A tensor is no dict: setting items of one was a way to write behind its end (CVE-2026-24747).
bool PickleStack::Takes(PickleRef target, Kind kind) {
  const Kind found = pickle_.Kind(target);
  const bool is_tensor = IsTensor(pickle_, target);
  if (IsTaken(target)) {
    Fail(fmt::format("items for {} that a call has taken before", Name(found)),
         "expected them before it");
  } else if (IsFixed(pickle_, target)) {
    Fail(fmt::format("items for {}", pickle_.CallableName(target)), "expected none");
  } else if ((found != kind && found != Kind::kReduced) || is_tensor) {
    Fail(fmt::format("items for {}", is_tensor ? "a tensor" : Name(found)),
         fmt::format("expected {}", Name(kind)));
  }
  return !HasFault();
}

void PickleStack::Put(const std::vector<PickleRef>& items, Kind kind) {
  if (!Has(1) || !Takes(stack_.back(), kind)) {
    return;
  }
  const PickleRef target = stack_.back();
  const std::string_view maker = pickle_.CallableName(target);
  if (const Kind made = KindOfMade(maker, kind); made != kind && !items.empty()) {
    return Fail(fmt::format("items of {} for {}", Name(kind), maker),
                fmt::format("expected those of {}", Name(made)));
  }
  if (kind == Kind::kDict && items.size() % 2 != 0) {
    return Fail("a key without a value", "expected pairs");
  }
  auto& list = pickle_.lists_[static_cast<std::size_t>(pickle_.nodes_[target].number)];
  if (pickle_.Kind(target) == Kind::kReduced && kind != Kind::kDict) {
    for (const PickleRef item : items) {
      list.insert(list.end(), {kNoValue, item});
    }
  } else {
    list.insert(list.end(), items.begin(), items.end());
  }
}

// PyTorch makes a tensor of its arguments alone; a state would put another one in its place
// (torch/_weights_only_unpickler.py, BUILD).
void PickleStack::Build() {
  if (!Has(2)) {
    return;
  }
  const PickleRef state = Pop();
  const Node& object = pickle_.nodes_[stack_.back()];
  const bool is_old_state = IsParameter(pickle_.CallableName(stack_.back())) &&
                            pickle_.Kind(state) == Kind::kTuple && pickle_.Items(state).size() == 3;
  const bool is_tensor = IsTensor(pickle_, stack_.back()) && !is_old_state;
  if (object.kind != Kind::kReduced || is_tensor || IsFixed(pickle_, stack_.back())) {
    return Fail(fmt::format("a state for {}", is_tensor ? "a tensor" : Name(object.kind)),
                "expected an object");
  }
  pickle_.lists_[static_cast<std::size_t>(object.number)][2] = state;
}

// Writers count from 0 on; other indexes are kept apart, so that a large one takes no memory.
void PickleStack::Remember(std::uint64_t index) {
  if (!Has(1)) {
    return;
  }
  if (memo_.size() + far_memo_.size() >= limits_.values) {
    return Fail(fmt::format("a memo of more than {} values", limits_.values), "expected fewer");
  }
  if (index < memo_.size()) {
    memo_[index] = stack_.back();
  } else if (index == memo_.size() && far_memo_.empty()) {
    memo_.push_back(stack_.back());
  } else {
    far_memo_[index] = stack_.back();
  }
}

void PickleStack::Recall(std::uint64_t index) {
  const auto far = far_memo_.find(index);
  if (index < memo_.size()) {
    Push(memo_[index]);
  } else if (far != far_memo_.end()) {
    Push(far->second);
  } else {
    Fail(fmt::format("memo index {}, which was never set", index), "expected an earlier one");
  }
}

}  // namespace fourpiles
