#include "plan/paged_cache.h"

#include <algorithm>

#include "formats/storage.h"

namespace fourpiles {
namespace {

constexpr Checked kNoAmount = Checked(kLargestAmount) + 1;

}  // namespace

Checked DivideRoundingDown(Checked a, Checked b) {
  if (!a.ok() || !b.ok() || a.value() < 0 || b.value() <= 0) {
    return kNoAmount;
  }
  return a.value() / b.value();
}

Checked ShareOf(Checked bytes, double share) {
  if (!bytes.ok() || !(share >= 0 && share <= 1)) {
    return kNoAmount;
  }
  return static_cast<std::int64_t>(static_cast<double>(bytes.value()) * share);
}

Checked TokenBytes(const PagedLayer& layer) {
  if (layer.tensor_parallel < 1) {
    return kNoAmount;
  }
  const std::int64_t local = std::max<std::int64_t>(1, layer.heads / layer.tensor_parallel);
  return StorageBytes(Checked(local) * layer.elements_per_head, layer.bits);
}

PagedState PagedStateOf(const Cache& cache, std::int64_t tensor_parallel) {
  return {.convolution_elements = cache.convolution_elements_per_request,
          .recurrent_elements = cache.recurrent_elements_per_request,
          .tensor_parallel = tensor_parallel};
}

Checked StateBytes(const PagedState& state) {
  const Checked convolution =
      DivideRoundingUp(Checked(state.convolution_elements), state.tensor_parallel);
  const Checked recurrent =
      DivideRoundingUp(Checked(state.recurrent_elements), state.tensor_parallel);
  return StorageBytes(convolution, state.convolution_bits) +
         StorageBytes(recurrent, state.recurrent_bits);
}

}  // namespace fourpiles
