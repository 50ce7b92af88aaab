#include "tensors/pickle_fields.h"

namespace fourpiles {

PickleRef FieldOf(const Pickle& pickle, PickleRef object, std::string_view name, std::size_t most) {
  const PickleRef state = pickle.State(object);
  const auto items = pickle.Items(state == kNoValue ? object : state);
  const PickleKind kind = pickle.Kind(state == kNoValue ? object : state);
  const bool has_keys = kind == PickleKind::kDict || kind == PickleKind::kReduced;
  if (!has_keys || items.size() > 2 * most) {
    return kNoValue;
  }
  for (std::size_t i = items.size(); i >= 2; i -= 2) {
    if (items[i - 2] != kNoValue && pickle.Text(items[i - 2]) == name) {
      return items[i - 1];
    }
  }
  return kNoValue;
}

}  // namespace fourpiles
