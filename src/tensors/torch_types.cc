#include "tensors/torch_types.h"

#include <algorithm>
#include <array>

#include "base/ascii.h"

namespace fourpiles {
namespace {

// c10/core/ScalarType.h of PyTorch 2.9. Types of fewer bits than a byte are kept in packs of bytes,
// whose shape counts the packs, but for the quantised ones, whose shape counts elements.
constexpr std::array kTypes = std::to_array<TorchType>({
    {"Untyped", "", "U8", "uint8", 8},
    {"Double", "float64", "F64", "float64", 64},
    {"Float", "float32", "F32", "float32", 32},
    {"Half", "float16", "F16", "float16", 16},
    {"BFloat16", "bfloat16", "BF16", "bfloat16", 16},
    {"Long", "int64", "I64", "int64", 64},
    {"Int", "int32", "I32", "int32", 32},
    {"Short", "int16", "I16", "int16", 16},
    {"Char", "int8", "I8", "int8", 8},
    {"Byte", "uint8", "U8", "uint8", 8},
    {"Bool", "bool", "BOOL", "bool", 8},
    {"ComplexFloat", "complex64", "C64", "complex64", 64},
    {"ComplexDouble", "complex128", "C128", "complex128", 128},
    {"", "complex32", "C32", "", 32},
    {"QInt8", "qint8", "QI8", "int8", 8},
    {"QUInt8", "quint8", "QU8", "uint8", 8},
    {"QInt32", "qint32", "QI32", "int32", 32},
    {"QUInt4x2", "quint4x2", "QU4", "uint4", 4},
    {"QUInt2x4", "quint2x4", "QU2", "", 2},
    {"", "uint16", "U16", "uint16", 16},
    {"", "uint32", "U32", "uint32", 32},
    {"", "uint64", "U64", "uint64", 64},
    {"", "float8_e4m3fn", "F8_E4M3", "float8_e4m3fn", 8},
    {"", "float8_e5m2", "F8_E5M2", "float8_e5m2", 8},
    {"", "float8_e4m3fnuz", "F8_E4M3FNUZ", "float8_e4m3fnuz", 8},
    {"", "float8_e5m2fnuz", "F8_E5M2FNUZ", "float8_e5m2fnuz", 8},
    {"", "float8_e8m0fnu", "F8_E8M0", "float8_e8m0fnu", 8},
    {"", "float4_e2m1fn_x2", "F4x2", "uint8", 8},
    {"", "bits8", "B8", "uint8", 8},
    {"", "bits16", "B16", "uint16", 16},
});

struct Alias {
  std::string_view word;
  std::string_view name;
};
constexpr std::array kAliases = std::to_array<Alias>({
    {"double", "float64"},
    {"float", "float32"},
    {"half", "float16"},
    {"long", "int64"},
    {"int", "int32"},
    {"short", "int16"},
    {"chalf", "complex32"},
    {"cfloat", "complex64"},
    {"cdouble", "complex128"},
});

}  // namespace

const TorchType* TorchTypeOfStorage(std::string_view global) {
  constexpr std::string_view kEnding = "Storage";
  if (!TakePrefix(global, "torch.") || !global.ends_with(kEnding)) {
    return nullptr;
  }
  std::string_view word = global.substr(0, global.size() - kEnding.size());
  TakePrefix(word, "storage.");
  TakePrefix(word, "cuda.");
  const auto* const found = std::find_if(kTypes.begin(), kTypes.end(), [&](const TorchType& type) {
    return !type.storage.empty() && type.storage == word;
  });
  return found == kTypes.end() ? nullptr : found;
}

const TorchType* TorchTypeOfDtype(std::string_view global) {
  if (!TakePrefix(global, "torch.")) {
    return nullptr;
  }
  const auto* const alias = std::find_if(kAliases.begin(), kAliases.end(),
                                         [&](const Alias& each) { return each.word == global; });
  const std::string_view word = alias == kAliases.end() ? global : alias->name;
  const auto* const found = std::find_if(kTypes.begin(), kTypes.end(), [&](const TorchType& type) {
    return !type.name.empty() && type.name == word;
  });
  return found == kTypes.end() ? nullptr : found;
}

}  // namespace fourpiles
