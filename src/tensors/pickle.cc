#include "tensors/pickle.h"

#include <bit>

namespace fourpiles {

std::string_view Name(PickleKind kind) {
  switch (kind) {
    case PickleKind::kNone:
      return "none";
    case PickleKind::kBool:
      return "a bool";
    case PickleKind::kInteger:
    case PickleKind::kBigInteger:
      return "an integer";
    case PickleKind::kFloat:
      return "a float";
    case PickleKind::kBytes:
      return "bytes";
    case PickleKind::kText:
      return "a text";
    case PickleKind::kTuple:
      return "a tuple";
    case PickleKind::kList:
      return "a list";
    case PickleKind::kDict:
      return "a dict";
    case PickleKind::kSet:
      return "a set";
    case PickleKind::kGlobal:
      return "a class or function";
    case PickleKind::kReduced:
      return "an object";
    case PickleKind::kPersistentId:
      break;
  }
  return "a persistent id";
}

std::int64_t Pickle::Integer(PickleRef value) const {
  const Node& node = At(value);
  const bool is_number = node.kind == PickleKind::kBool || node.kind == PickleKind::kInteger ||
                         node.kind == PickleKind::kBytes;
  return is_number ? node.number : 0;
}

double Pickle::Real(PickleRef value) const {
  const Node& node = At(value);
  return node.kind == PickleKind::kFloat ? std::bit_cast<double>(node.number) : 0;
}

std::string_view Pickle::Text(PickleRef value) const {
  const Node& node = At(value);
  if (node.kind == PickleKind::kText || node.kind == PickleKind::kBigInteger) {
    return std::string_view(texts_).substr(static_cast<std::size_t>(node.number), node.length);
  }
  return node.kind == PickleKind::kGlobal ? global_names_[static_cast<std::size_t>(node.number)]
                                          : std::string_view();
}

std::span<const PickleRef> Pickle::Items(PickleRef value) const {
  const Node& node = At(value);
  const auto place = static_cast<std::size_t>(node.number);
  switch (node.kind) {
    case PickleKind::kTuple:
    case PickleKind::kPersistentId:
      return std::span(refs_).subspan(place, node.length);
    case PickleKind::kList:
    case PickleKind::kDict:
    case PickleKind::kSet:
      return lists_[place];
    case PickleKind::kReduced:
      return std::span(lists_[place]).subspan(kParts);
    default:
      return {};
  }
}

PickleRef Pickle::Part(PickleRef value, std::size_t part) const {
  const Node& node = At(value);
  return node.kind == PickleKind::kReduced ? lists_[static_cast<std::size_t>(node.number)][part]
                                           : kNoValue;
}

std::string_view Pickle::CallableName(PickleRef value) const {
  const PickleRef callable = Callable(value);
  return callable != kNoValue && Kind(callable) == PickleKind::kGlobal ? Text(callable)
                                                                       : std::string_view();
}

}  // namespace fourpiles
