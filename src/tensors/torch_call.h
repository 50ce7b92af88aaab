#pragma once

// The call by which a pickle of PyTorch makes a tensor, without what is wrapped around it:
// parameters, subclasses, other devices (torch/_utils.py, torch/_tensor.py).

#include <cstddef>
#include <span>
#include <string_view>

#include "tensors/pickle.h"

namespace fourpiles {

inline constexpr std::string_view kTensorMaker = "torch._utils._rebuild_";

struct TorchCall {
  std::string_view maker = {};  // "torch._utils._rebuild_tensor_v2"; empty: no call of a name
  std::span<const PickleRef> arguments = {};
  PickleRef value = kNoValue;  // the innermost
  bool is_wrapped = false;
  // The state becomes the tensor's attributes, of which "data" puts another tensor in its place.
  bool replaces_data = false;
};

// Of more than 16 wrappers, and of one without arguments, the wrapper itself.
TorchCall TorchCallOf(const Pickle& pickle, PickleRef value);

// Whether it is meant to give a tensor: by a maker, a wrapper or a class of tensors.
bool MakesTensor(const TorchCall& call);

}  // namespace fourpiles
