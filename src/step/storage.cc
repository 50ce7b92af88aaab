#include "step/storage.h"

namespace fourpiles {

Shape Shape::WithLast(std::int64_t length) const {
  Shape shape = *this;
  shape.lengths[static_cast<std::size_t>(rank - 1)] = length;
  return shape;
}

std::string_view Name(Pile pile) {
  switch (pile) {
    case Pile::kWeights:
      return "weights";
    case Pile::kGradients:
      return "gradients";
    case Pile::kOptimizerState:
      return "optimizer_state";
    case Pile::kActivations:
      return "activations";
    case Pile::kKvCache:
      return "kv_cache";
    case Pile::kWorkspace:
      return "workspace";
    case Pile::kOverhead:
      break;
  }
  return "overhead";
}

std::string_view Name(Place place) {
  switch (place) {
    case Place::kDevice:
      return "device";
    case Place::kHostPinned:
      return "host_pinned";
    case Place::kHost:
      break;
  }
  return "host";
}

}  // namespace fourpiles
