#include "tensors/torch_label.h"

#include <cmath>

#include <fmt/format.h>

namespace fourpiles {
namespace {

using Kind = PickleKind;

constexpr std::size_t kLongestText = 65'536;

// Python writes a whole number of floats as "1.0".
std::string LabelOfReal(double real) {
  return std::trunc(real) == real && std::abs(real) < 1e16 ? fmt::format("{:.1f}", real)
                                                           : fmt::format("{}", real);
}

std::string LabelOfScalar(const Pickle& pickle, PickleRef key) {
  switch (pickle.Kind(key)) {
    case Kind::kText:
    case Kind::kGlobal:
      return std::string(pickle.Text(key).substr(0, kLongestText));
    case Kind::kInteger:
      return std::to_string(pickle.Integer(key));
    case Kind::kBool:
      return pickle.Integer(key) == 1 ? "True" : "False";
    case Kind::kNone:
      return "None";
    case Kind::kFloat:
      return LabelOfReal(pickle.Real(key));
    default:
      return fmt::format("<{}>", Name(pickle.Kind(key)));
  }
}

}  // namespace

std::string TorchLabelOf(const Pickle& pickle, PickleRef key) {
  constexpr std::size_t kMostItems = 16;  // of a tuple
  const auto items = pickle.Items(key);
  if (pickle.Kind(key) != Kind::kTuple || items.size() > kMostItems) {
    return LabelOfScalar(pickle, key);
  }
  std::string label;
  for (const PickleRef item : items) {
    const char* quote = pickle.Kind(item) == Kind::kText ? "'" : "";
    label += fmt::format("{}{}{}{}", label.empty() ? "" : ", ", quote, LabelOfScalar(pickle, item),
                         quote);
  }
  return fmt::format("({}{})", label, items.size() == 1 ? "," : "");
}

}  // namespace fourpiles
