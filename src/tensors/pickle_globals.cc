#include <algorithm>
#include <array>
#include <string_view>

#include "tensors/pickle.h"

namespace fourpiles {
namespace {

// torch/_weights_only_unpickler.py, _get_allowed_globals(), of PyTorch 2.9, and what TorchScript
// needs (torch/jit/_pickle.py).
constexpr std::array kNames = std::to_array<std::string_view>({
    "_codecs.encode",
    "builtins.bytearray",
    "builtins.complex",
    "builtins.set",
    "collections.Counter",
    "collections.OrderedDict",
    "torch.Size",
    "torch.Tensor",
    "torch._tensor._rebuild_from_type_v2",
    "torch._utils._rebuild_device_tensor_from_cpu_tensor",
    "torch._utils._rebuild_device_tensor_from_numpy",
    "torch._utils._rebuild_meta_tensor_no_storage",
    "torch._utils._rebuild_parameter",
    "torch._utils._rebuild_parameter_with_state",
    "torch._utils._rebuild_qtensor",
    "torch._utils._rebuild_sparse_tensor",
    "torch._utils._rebuild_tensor",
    "torch._utils._rebuild_tensor_v2",
    "torch._utils._rebuild_tensor_v3",
    "torch._utils._rebuild_wrapper_subclass",
    "torch.device",
    "torch.jit._pickle.build_boollist",
    "torch.jit._pickle.build_doublelist",
    "torch.jit._pickle.build_intlist",
    "torch.jit._pickle.build_tensor_from_id",
    "torch.jit._pickle.build_tensorlist",
    "torch.jit._pickle.restore_type_tag",
    "torch.nn.parameter.Parameter",
    "torch.per_channel_affine",
    "torch.per_channel_affine_float_qparams",
    "torch.per_channel_symmetric",
    "torch.per_tensor_affine",
    "torch.per_tensor_symmetric",
    "torch.serialization._get_layout",
    "torch.storage.TypedStorage",
    "torch.storage.UntypedStorage",
});

// torch.float32 and its like.
constexpr std::array kTypes = std::to_array<std::string_view>({
    "bfloat16",
    "bit",
    "bits16",
    "bits1x8",
    "bits2x4",
    "bits4x2",
    "bits8",
    "bool",
    "chalf",
    "complex128",
    "complex32",
    "complex64",
    "double",
    "float",
    "float16",
    "float32",
    "float4_e2m1fn_x2",
    "float64",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "half",
    "int",
    "int1",
    "int16",
    "int2",
    "int3",
    "int32",
    "int4",
    "int5",
    "int6",
    "int64",
    "int7",
    "int8",
    "long",
    "qint32",
    "qint8",
    "quint2x4",
    "quint4x2",
    "quint8",
    "short",
    "uint1",
    "uint16",
    "uint2",
    "uint3",
    "uint32",
    "uint4",
    "uint5",
    "uint6",
    "uint64",
    "uint7",
    "uint8",
});

// The letters of torch.FloatStorage and torch.cuda.HalfTensor before the last word.
constexpr std::array kElements = std::to_array<std::string_view>({
    "BFloat16", "Bool",   "Byte",  "Char",  "ComplexDouble", "ComplexFloat", "Double",
    "Float",    "Half",   "Int",   "Long",  "QInt32",        "QInt8",        "QUInt2x4",
    "QUInt4x2", "QUInt8", "Short", "Typed", "Untyped",
});

template <class Names>
bool Contains(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool TakePrefix(std::string_view& name, std::string_view prefix) {
  const bool has = name.starts_with(prefix);
  name.remove_prefix(has ? prefix.size() : 0);
  return has;
}

}  // namespace

bool IsKnownGlobal(std::string_view name) {
  if (TakePrefix(name, "__builtin__.")) {
    return Contains(kNames, "builtins." + std::string(name));
  }
  if (Contains(kNames, name)) {
    return true;
  }
  if (!TakePrefix(name, "torch.")) {
    return false;
  }
  if (Contains(kTypes, name)) {
    return true;
  }
  TakePrefix(name, "cuda.");
  TakePrefix(name, "sparse.");
  for (const std::string_view ending : {"Storage", "Tensor"}) {
    if (name.ends_with(ending)) {
      return Contains(kElements, name.substr(0, name.size() - ending.size()));
    }
  }
  return false;
}

}  // namespace fourpiles
