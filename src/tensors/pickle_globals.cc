#include <algorithm>
#include <array>
#include <string_view>

#include "base/ascii.h"
#include "tensors/pickle.h"

namespace fourpiles {
namespace {

// torch/_weights_only_unpickler.py, _get_allowed_globals(), of PyTorch 2.9, and of 1.13 that for
// sparse tensors in rows, which has no such name since.
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
    "torch._utils._rebuild_sparse_csr_tensor",
    "torch._utils._rebuild_sparse_tensor",
    "torch._utils._rebuild_tensor",
    "torch._utils._rebuild_tensor_v2",
    "torch._utils._rebuild_tensor_v3",
    "torch._utils._rebuild_wrapper_subclass",
    "torch.device",
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

// torch/jit/_pickle.py. Classes of the archive stand under "__torch__." beside these: they are
// looked up there, never imported.
constexpr std::array kTorchScript = std::to_array<std::string_view>({
    "torch.jit._pickle.build_boollist",
    "torch.jit._pickle.build_doublelist",
    "torch.jit._pickle.build_intlist",
    "torch.jit._pickle.build_tensor_from_id",
    "torch.jit._pickle.build_tensorlist",
    "torch.jit._pickle.restore_type_tag",
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

// The classes of torch.distributed.checkpoint, of PyTorch 1.13 and of 2.0 to 2.9
// (torch/distributed/checkpoint/metadata.py, filesystem.py), and what names the folder that it was
// saved to. They are dataclasses: loading one sets its fields.
constexpr std::array kDistributed = std::to_array<std::string_view>({
    "pathlib.PosixPath",
    "pathlib.WindowsPath",
    "pathlib._local.PosixPath",
    "pathlib._local.WindowsPath",
    "torch.distributed._shard.checkpoint.filesystem._StorageInfo",
    "torch.distributed._shard.checkpoint.metadata.BytesStorageMetadata",
    "torch.distributed._shard.checkpoint.metadata.ChunkStorageMetadata",
    "torch.distributed._shard.checkpoint.metadata.Metadata",
    "torch.distributed._shard.checkpoint.metadata.MetadataIndex",
    "torch.distributed._shard.checkpoint.metadata.TensorStorageMetadata",
    "torch.distributed._shard.sharded_tensor.metadata.MEM_FORMAT_ENCODING",
    "torch.distributed._shard.sharded_tensor.metadata.TensorProperties",
    "torch.distributed.checkpoint.filesystem._StorageInfo",
    "torch.distributed.checkpoint.metadata.BytesStorageMetadata",
    "torch.distributed.checkpoint.metadata.ChunkStorageMetadata",
    "torch.distributed.checkpoint.metadata.Metadata",
    "torch.distributed.checkpoint.metadata.MetadataIndex",
    "torch.distributed.checkpoint.metadata.StorageMeta",
    "torch.distributed.checkpoint.metadata.TensorProperties",
    "torch.distributed.checkpoint.metadata.TensorStorageMetadata",
    "torch.distributed.checkpoint.metadata._MEM_FORMAT_ENCODING",
});

// What DeepSpeed's state dicts of optimizers hold beside tensors (deepspeed/runtime/zero/
// stage_1_and_2.py, state_dict()): an enum, a loss scale, where parameters lie in flat groups.
constexpr std::array kDeepSpeed = std::to_array<std::string_view>({
    "deepspeed.runtime.fp16.loss_scaler.DynamicLossScaler",
    "deepspeed.runtime.fp16.loss_scaler.LossScaler",
    "deepspeed.runtime.zero.config.ZeroStageEnum",
    "deepspeed.utils.tensor_fragment.fragment_address",
});

// The enums whose members Python 3.11 pickles as getattr(enum, member).
struct EnumMember {
  std::string_view name = {};
  std::string_view member = {};
};
constexpr std::string_view kGetAttribute = "builtins.getattr";
constexpr std::string_view kOldFormat =
    "torch.distributed._shard.sharded_tensor.metadata.MEM_FORMAT_ENCODING";
constexpr std::string_view kFormat = "torch.distributed.checkpoint.metadata._MEM_FORMAT_ENCODING";
constexpr std::string_view kStage = "deepspeed.runtime.zero.config.ZeroStageEnum";
constexpr std::array kMembers = std::to_array<EnumMember>({
    {kOldFormat, "TORCH_CONTIGUOUS_FORMAT"},
    {kOldFormat, "TORCH_CHANNELS_LAST"},
    {kOldFormat, "TORCH_PRESERVE_FORMAT"},
    {kFormat, "TORCH_CONTIGUOUS_FORMAT"},
    {kFormat, "TORCH_CHANNELS_LAST"},
    {kFormat, "TORCH_PRESERVE_FORMAT"},
    {kStage, "disabled"},
    {kStage, "optimizer_states"},
    {kStage, "gradients"},
    {kStage, "weights"},
});

// Modules of Python that reach the system or run code, and what of the built-in functions does.
constexpr std::array kDangerous = std::to_array<std::string_view>({
    "_io",      "asyncio",   "bdb",         "code",      "codeop",     "commands",
    "ctypes",   "dill",      "cloudpickle", "ftplib",    "http",       "httplib",
    "idlelib",  "importlib", "io",          "joblib",    "marshal",    "multiprocessing",
    "nt",       "ntpath",    "os",          "pdb",       "pickle",     "_pickle",
    "pip",      "pkgutil",   "popen2",      "posix",     "posixpath",  "profile",
    "cProfile", "pty",       "pydoc",       "requests",  "runpy",      "shutil",
    "signal",   "smtplib",   "socket",      "ssl",       "subprocess", "sys",
    "tempfile", "threading", "timeit",      "trace",     "types",      "urllib",
    "urllib2",  "venv",      "webbrowser",  "zipimport",
});
constexpr std::array kDangerousBuiltins = std::to_array<std::string_view>({
    "__import__",
    "apply",
    "breakpoint",
    "compile",
    "delattr",
    "eval",
    "exec",
    "execfile",
    "file",
    "getattr",
    "globals",
    "input",
    "locals",
    "open",
    "setattr",
    "vars",
});
// Of modules that are not dangerous as a whole.
constexpr std::array kDangerousNames = std::to_array<std::string_view>({
    "numpy.f2py",
    "numpy.load",
    "operator.attrgetter",
    "_operator.attrgetter",
    "operator.methodcaller",
    "_operator.methodcaller",
    "torch.hub",
    "torch.load",
    "torch.serialization.load",
    "torch.jit.load",
    "torch.utils._config_module",
});

template <class Names>
bool Contains(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool IsGetAttribute(const Pickle& pickle, PickleRef value) {
  return pickle.Kind(value) == PickleKind::kGlobal && pickle.Text(value) == kGetAttribute;
}

// Whether the call of getattr gives a member of an enum, which nothing is then done to.
bool IsEnumMember(const Pickle& pickle, PickleRef call) {
  const auto arguments = pickle.Items(pickle.Arguments(call));
  if (arguments.size() != 2 || pickle.Kind(arguments[0]) != PickleKind::kGlobal ||
      pickle.Kind(arguments[1]) != PickleKind::kText || pickle.State(call) != kNoValue ||
      !pickle.Items(call).empty()) {
    return false;
  }
  return std::any_of(kMembers.begin(), kMembers.end(), [&](const EnumMember& each) {
    return each.name == pickle.Text(arguments[0]) && each.member == pickle.Text(arguments[1]);
  });
}

// Whether getattr stands only where it gives members of enums: it is no argument and no item, and
// nothing that a call gave is called.
bool NamesEnumsAlone(const Pickle& pickle) {
  for (PickleRef value = 0; value < pickle.ValueCount(); ++value) {
    const auto items = pickle.Items(value);
    const bool is_passed_on = IsGetAttribute(pickle, pickle.State(value)) ||
                              std::any_of(items.begin(), items.end(), [&](PickleRef item) {
                                return IsGetAttribute(pickle, item);
                              });
    const PickleRef callable = pickle.Callable(value);
    const bool is_bad_call = pickle.Kind(callable) == PickleKind::kReduced ||
                             (IsGetAttribute(pickle, callable) && !IsEnumMember(pickle, value));
    if (is_passed_on || is_bad_call || IsGetAttribute(pickle, pickle.Root())) {
      return false;
    }
  }
  return true;
}

bool IsOfUse(std::string_view name, PickleUse use) {
  return (use == PickleUse::kTorchScript &&
          (Contains(kTorchScript, name) || name.starts_with("__torch__."))) ||
         (use == PickleUse::kDistributed && Contains(kDistributed, name)) ||
         (use == PickleUse::kDeepSpeed && Contains(kDeepSpeed, name));
}

}  // namespace

std::vector<std::string_view> UnknownGlobals(const Pickle& pickle, PickleUse use) {
  std::vector<std::string_view> unknown;
  for (const std::string& name : pickle.Globals()) {
    const bool is_getattr = name == kGetAttribute || name == "__builtin__.getattr";
    const bool has_enums = use == PickleUse::kDistributed || use == PickleUse::kDeepSpeed;
    const bool names_enums = is_getattr && has_enums && NamesEnumsAlone(pickle);
    if (!names_enums && !IsKnownGlobal(name, use)) {
      unknown.emplace_back(name);
    }
  }
  return unknown;
}

bool IsDangerousGlobal(std::string_view name) {
  for (const std::string_view built_in : {"builtins.", "__builtin__."}) {
    if (name.starts_with(built_in)) {
      const std::string_view rest = name.substr(built_in.size());
      return Contains(kDangerousBuiltins, rest.substr(0, rest.find('.')));
    }
  }
  return Contains(kDangerous, name.substr(0, name.find('.'))) ||
         std::any_of(kDangerousNames.begin(), kDangerousNames.end(),
                     [&](std::string_view each) { return name.starts_with(each); });
}

bool IsKnownGlobal(std::string_view name, PickleUse use) {
  if (IsOfUse(name, use)) {
    return true;
  }
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
