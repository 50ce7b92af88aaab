#pragma once

// What a pickle's steps work on: the values made so far, the stack with its marks, and the memo.
// The first fault ends the reading; a step that fails leaves a stack that is safe to go on with.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/keyed_hash.h"
#include "tensors/pickle.h"

namespace fourpiles {

class PickleStack {
 public:
  explicit PickleStack(const PickleLimits& limits) : limits_(limits) {}

  // At the step that is being read.
  void Fail(std::string found, std::string expected);
  void SetStep(std::int64_t place) { step_place_ = place; }
  bool HasFault() const { return pickle_.fault_.has_value(); }
  // With the value on top as what it makes, unless there was a fault.
  Pickle Finish(std::int64_t end) &&;

  // ---- new values on top
  void PushNone() { PushNew({.kind = PickleKind::kNone}); }
  void PushNumber(std::int64_t number, PickleKind kind = PickleKind::kInteger) {
    PushNew({.kind = kind, .number = number});
  }
  void PushText(std::string_view text);
  // The text that was appended to Texts() from `begin` on.
  void PushTextFrom(std::size_t begin, PickleKind kind = PickleKind::kText);
  std::string& Texts() { return pickle_.texts_; }
  bool HasRoomFor(std::uint64_t text);
  void PushList(PickleKind kind, std::vector<PickleRef> items);
  void PushTuple(std::span<const PickleRef> items, PickleKind kind = PickleKind::kTuple);
  // A module and a name in it, together of at most kLongestGlobal bytes: a hostile pickle names one
  // long text a million times.
  void PushGlobal(const std::string& module, const std::string& name);
  static constexpr std::size_t kLongestGlobal = 1000;
  void PushReduced(PickleRef callable, PickleRef arguments, PickleRef named = kNoValue);
  // The same through __new__() alone, which makes an empty dict or set of any arguments: fault.
  void PushNewObject(PickleRef callable, PickleRef arguments, PickleRef named);

  // ---- the stack
  // How many values lie above the last mark.
  std::size_t Above() const { return stack_.size() - (marks_.empty() ? 0 : marks_.back()); }
  // Whether there are so many; else a fault.
  bool Has(std::size_t values);
  PickleRef Pop();  // needs Has(1)
  // The values above the last mark, which is taken off.
  std::vector<PickleRef> PopMarked();
  // The last values above the last mark, off the stack; needs Has(count).
  std::vector<PickleRef> PopLast(std::size_t count);
  void Mark();
  void Drop();
  void Duplicate();
  // Into the list, dict or set on top, or an object that may be a kind of one.
  void Put(const std::vector<PickleRef>& items, PickleKind kind);
  void Build();  // the state on top becomes that of the object below it
  const Pickle& Values() const { return pickle_; }

  // ---- the memo
  void Remember(std::uint64_t index);
  void RememberNext() { Remember(memo_.size() + far_memo_.size()); }
  void Recall(std::uint64_t index);

 private:
  using Node = Pickle::Node;

  // Whether items of that kind may be put into it; else a fault.
  bool Takes(PickleRef target, PickleKind kind);
  bool IsTaken(PickleRef value) const { return value < is_taken_.size() && is_taken_[value]; }
  void Take(PickleRef value);

  void Push(PickleRef value);
  void PushNew(const Node& node);

  PickleLimits limits_;
  Pickle pickle_ = {};
  std::vector<PickleRef> stack_ = {};
  std::vector<std::size_t> marks_ = {};  // heights of the stack
  std::vector<PickleRef> memo_ = {};
  std::map<std::uint64_t, PickleRef> far_memo_ = {};  // indexes that skip some
  std::unordered_map<std::string, std::uint32_t, KeyedHash> global_numbers_ = {};
  // The containers that a call has taken as they were: what is put into them later, it does not
  // see.
  std::vector<bool> is_taken_ = {};
  std::int64_t step_place_ = 0;
};

}  // namespace fourpiles
