#include "tensors/torch_call.h"

#include <algorithm>
#include <array>

namespace fourpiles {
namespace {

constexpr int kMostWrappers = 16;
constexpr std::string_view kTypedMaker = "torch._tensor._rebuild_from_type_v2";
constexpr std::string_view kStatefulWrapper = "torch._utils._rebuild_parameter_with_state";
// Calls whose first argument is the tensor. The last ones made parameters before 0.4.
constexpr std::array kWrappers = std::to_array<std::string_view>({
    "torch._utils._rebuild_parameter",
    kStatefulWrapper,
    "torch._utils._rebuild_device_tensor_from_cpu_tensor",
    "torch.nn.parameter.Parameter",
    "torch.autograd.variable.Variable",
});

bool IsWrapper(std::string_view maker) {
  return std::find(kWrappers.begin(), kWrappers.end(), maker) != kWrappers.end();
}

// Whether the state of a call's fourth argument has "data" (torch/_utils.py, _set_obj_state), or
// more attributes than are looked at.
bool ReplacesData(const Pickle& pickle, std::span<const PickleRef> arguments) {
  constexpr std::size_t kMostAttributes = 64;
  const auto items = arguments.size() > 3 ? pickle.Items(arguments[3]) : arguments.first(0);
  if (items.size() > 2 * kMostAttributes) {
    return true;
  }
  return std::any_of(items.begin(), items.end(),
                     [&](PickleRef item) { return pickle.Text(item) == "data"; });
}

// _rebuild_from_type_v2(function, class, its arguments, state) calls the function.
void TakeType(const Pickle& pickle, TorchCall& call) {
  if (call.maker == kTypedMaker && call.arguments.size() >= 3 &&
      pickle.Kind(call.arguments[0]) == PickleKind::kGlobal) {
    call.replaces_data = call.replaces_data || ReplacesData(pickle, call.arguments);
    call.maker = pickle.Text(call.arguments[0]);
    call.arguments = pickle.Items(call.arguments[2]);
  }
}

}  // namespace

TorchCall TorchCallOf(const Pickle& pickle, PickleRef value) {
  TorchCall call;
  for (int i = 0; i <= kMostWrappers; ++i) {
    call.value = value;
    call.maker = pickle.CallableName(value);
    call.arguments =
        call.maker.empty() ? call.arguments.first(0) : pickle.Items(pickle.Arguments(value));
    TakeType(pickle, call);
    if (!IsWrapper(call.maker) || call.arguments.empty()) {
      break;
    }
    if (call.maker == kStatefulWrapper) {
      call.replaces_data = call.replaces_data || ReplacesData(pickle, call.arguments);
    }
    if (i < kMostWrappers) {
      call.is_wrapped = true;
      value = call.arguments.front();
    }
  }
  return call;
}

bool MakesTensor(const TorchCall& call) {
  return call.is_wrapped || call.maker.starts_with(kTensorMaker) || IsWrapper(call.maker) ||
         call.maker == kTypedMaker ||
         (call.maker.starts_with("torch.") && call.maker.ends_with("Tensor"));
}

}  // namespace fourpiles
