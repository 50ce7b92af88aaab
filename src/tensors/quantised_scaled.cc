// Layouts with one value a byte, or several, and the scales under the weight's own name.
//
//   float8      weight F8, weight_scale or weight_scale_inv F32 of blocks, rows or the tensor
//               (deepseek-ai/DeepSeek-V3, README_WEIGHTS.md; transformers, integrations/
//               finegrained_fp8.py and fbgemm_fp8.py); scale F8_E8M0 in DeepSeek-V4, whose experts
//               are I8, two E2M1 a byte, with a scale for 32; qscale_weight of Mistral
//   ModelOpt    weight U8 [out, in/2], weight_scale F8_E4M3 [out, in/16], weight_scale_2 F32 []
//               (NVFP4); weight U8 [out/2, in], weight_scale [out, groups] (W4A16): NVIDIA
//               Model-Optimizer, modelopt/torch/export/quant_utils.py
//   MXFP4       weight U8 [out, in/2], weight_scale U8 or F8_E8M0 [out, in/32] (AMD Quark)
//   int8        weight I8 with weight_scale (compressed-tensors), with SCB [out] (bitsandbytes,
//               nn/modules.py, Linear8bitLt), as weight._data with weight._scale (optimum-quanto)
//   BitNet      weight U8 [out/4, in] of -1, 0, 1, weight_scale [1] (transformers,
//               integrations/bitnet.py, pack_weights)

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "base/checked.h"
#include "tensors/quantised_layers.h"

namespace fourpiles {
namespace {

// The codes, under "stem.weight" or a name of their own, and the scales beside them.
struct ScaledCodes {
  const FileTensor* tensor;
  std::string_view name;  // of the weight
  std::string_view stem;  // without ".weight"
  const FileTensor* scale = nullptr;
  std::string_view proof = {};  // the end of the scale's name
  bool has_second_scale = false;
};

// How the values lie in the bytes.
struct Packing {
  std::int64_t per_byte = 1;
  std::size_t axis_from_end = 1;  // which dimension is shorter than the weight's
  std::string_view format = {};
  std::string_view scheme = {};  // where the config file names none
};

// A learnable "scale" may stand beside plain weights and beside integers; beside these it cannot.
bool MayHaveBareScale(const FileTensor& codes, const FileTensor& scale) {
  const TensorKind kind = KindOf(codes);
  return kind == TensorKind::kFloat8 || kind == TensorKind::kFloat4 ||
         KindOf(scale) == TensorKind::kPowerOfTwo;
}

void FindScale(const QuantisedLayers& layers, ScaledCodes& codes) {
  struct Place {
    std::string_view stem;
    std::string_view suffix;
  };
  const std::array<Place, 7> places = {{{codes.name, "_scale_inv"},
                                        {codes.name, "_scale"},
                                        {codes.name, "_weight_scale"},
                                        {codes.name, "._scale"},
                                        {codes.stem, ".SCB"},
                                        {codes.stem, ".qscale_weight"},
                                        {codes.stem, ".scale"}}};
  for (const Place& place : places) {
    const FileTensor* scale = layers.FindTensor(place.stem, place.suffix);
    const bool is_bare = place.suffix == ".scale";
    if (scale != nullptr && (!is_bare || MayHaveBareScale(*codes.tensor, *scale))) {
      codes.scale = scale;
      codes.proof = place.suffix.substr(1);
      break;
    }
  }
  codes.has_second_scale = layers.Find(codes.name, "_scale_2") != kNone ||
                           layers.Find(codes.name, "_weight_scale_2") != kNone;
}

// A dimension counted from the last; 1: the shape has fewer.
std::int64_t FromEnd(const FileTensor& tensor, std::size_t from_end) {
  return tensor.shape.size() < from_end ? 1 : tensor.shape[tensor.shape.size() - from_end];
}

bool HasTimes(std::int64_t dimension, std::int64_t factor, std::int64_t of) {
  const Checked product = Checked(dimension) * factor;
  return product.ok() && of > 0 && product.value() == of;
}

bool IsFp4Expert(const QuantisedLayers& layers, const ScaledCodes& codes) {
  return layers.Declared().expert_dtype == "fp4" &&
         codes.name.find(".experts.") != std::string_view::npos;
}

Packing PackingOfInt8(const QuantisedLayers& layers, const ScaledCodes& codes) {
  constexpr std::int64_t kMxBytes = 16;  // 32 values of 4 bits share a scale
  const bool by_shape = KindOf(*codes.scale) == TensorKind::kPowerOfTwo &&
                        HasTimes(FromEnd(*codes.scale, 1), kMxBytes, FromEnd(*codes.tensor, 1));
  if (by_shape || IsFp4Expert(layers, codes)) {
    return {.per_byte = 2, .format = "float4_e2m1fn", .scheme = "fp4"};
  }
  const std::string_view scheme = codes.proof == "SCB"      ? "bitsandbytes"
                                  : codes.proof == "_scale" ? "quanto"
                                                            : "int8";
  return {.format = "int8", .scheme = scheme};
}

// Two E2M1 a byte, along the dimension where a scale stands for so many bytes.
Packing PackingOfFp4(const ScaledCodes& codes, std::int64_t bytes_each, std::string_view scheme) {
  const bool is_last = HasTimes(FromEnd(*codes.scale, 1), bytes_each, FromEnd(*codes.tensor, 1));
  const bool is_next = HasTimes(FromEnd(*codes.scale, 2), bytes_each, FromEnd(*codes.tensor, 2));
  return {.per_byte = 2,
          .axis_from_end = !is_last && is_next ? std::size_t{2} : std::size_t{1},
          .format = "float4_e2m1fn",
          .scheme = scheme};
}

Packing PackingOfUint8(const QuantisedLayers& layers, const ScaledCodes& codes) {
  constexpr std::int64_t kMxGroup = 32;
  const FileTensor& scale = *codes.scale;
  const TensorKind kind = KindOf(scale);
  if (kind == TensorKind::kFloat8) {
    return PackingOfFp4(codes, 8, codes.has_second_scale ? "modelopt" : "nvfp4");
  }
  if (kind == TensorKind::kInteger || kind == TensorKind::kPowerOfTwo) {
    return HasTimes(FromEnd(scale, 1), kMxGroup, FromEnd(*codes.tensor, 1))
               ? Packing{.format = "float8_e4m3fn", .scheme = "mxfp8"}
               : PackingOfFp4(codes, kMxGroup / 2, "mxfp4");
  }
  const std::string& method = layers.Declared().method;
  if (method == "bitnet" || (method.empty() && scale.elements == 1 && !codes.has_second_scale)) {
    return {.per_byte = 4, .axis_from_end = 2, .format = "ternary", .scheme = "bitnet"};
  }
  if (HasTimes(FromEnd(*codes.tensor, 2), 2, FromEnd(scale, 2))) {
    return {.per_byte = 2, .axis_from_end = 2, .format = "int4", .scheme = "modelopt"};
  }
  return {.format = "uint8", .scheme = "uint8"};
}

Packing PackingOf(const QuantisedLayers& layers, const ScaledCodes& codes) {
  const std::string_view type = codes.tensor->type->name;
  if (type == "int8") {
    return PackingOfInt8(layers, codes);
  }
  if (type == "uint8") {
    return PackingOfUint8(layers, codes);
  }
  return {.format = type, .scheme = KindOf(*codes.tensor) == TensorKind::kFloat8 ? "fp8" : "fp4"};
}

// How many rows and columns share a scale.
void SetGroups(const DeclaredQuantisation& declared, const ScaledCodes& codes,
               StoredWeight& weight) {
  const std::vector<std::int64_t>& scale = codes.scale->shape;
  if (scale.size() < 2 || weight.shape.size() != scale.size()) {
    return;
  }
  const std::int64_t rows = weight.shape[scale.size() - 2];
  const std::int64_t scale_rows = scale[scale.size() - 2];
  const bool is_float8 = KindOf(*codes.tensor) == TensorKind::kFloat8;
  const std::int64_t block_rows = is_float8 ? declared.block_rows : 0;
  const std::int64_t block_columns =
      is_float8 ? declared.block_columns : DeclaredFor(declared, codes.stem).group_size;
  weight.group_size = GroupSize(weight.shape.back(), scale.back(),
                                codes.scale->elements > 1 || is_float8 ? block_columns : 0);
  if (scale_rows != rows && codes.scale->elements > 1) {
    weight.group_size = weight.group_size != 0 ? weight.group_size : weight.shape.back();
    weight.group_rows = std::max<std::int64_t>(GroupSize(rows, scale_rows, block_rows), 1);
  } else if (scale_rows != rows && weight.group_size != 0) {
    weight.group_rows = std::max<std::int64_t>(block_rows, 1);
  }
}

std::string SchemeOf(const QuantisedLayers& layers, const ScaledCodes& codes,
                     const Packing& packing) {
  const std::string& method = layers.Declared().method;
  return method.empty() || codes.has_second_scale ? std::string(packing.scheme) : method;
}

void AttachNeighbours(QuantisedLayers& layers, std::int32_t weight, const ScaledCodes& codes) {
  layers.Attach(weight, TensorRole::kScales, codes.name,
                {"_scale_inv", "_scale", "_weight_scale", "._scale", "_scale_2", "_weight_scale_2",
                 "_global_scale"});
  layers.Attach(weight, TensorRole::kZeroPoints, codes.name, {"_zero_point", "._shift"});
  layers.Attach(weight, TensorRole::kOther, codes.name,
                {"_g_idx", "_shape", "_format", "_input_scale"});
  layers.Attach(weight, TensorRole::kScales, codes.stem, {".SCB", ".qscale_weight"});
  if (codes.proof == "scale") {
    layers.Attach(weight, TensorRole::kScales, codes.stem, {".scale"});
  }
  layers.Attach(weight, TensorRole::kOther, codes.stem,
                {".weight_format", ".input_scale", ".input_scale_ub", ".input_zero_point",
                 ".input_global_scale", ".output_scale", ".pre_quant_scale", ".qscale_act",
                 ".activation_scale", ".q_scale", ".k_scale", ".v_scale"});
}

bool MayBeScaled(const FileTensor& tensor) {
  const TensorKind kind = KindOf(tensor);
  return !tensor.shape.empty() && (kind == TensorKind::kFloat8 || kind == TensorKind::kFloat4 ||
                                   (kind == TensorKind::kInteger && tensor.type->block_bits == 8));
}

}  // namespace

bool AddScaled(QuantisedLayers& layers, std::int32_t codes) {
  const FileTensor& tensor = layers.Tensor(codes);
  if (!MayBeScaled(tensor)) {
    return false;
  }
  const std::string_view name = WithoutSuffix(tensor.name, "._data").value_or(tensor.name);
  ScaledCodes scaled = {
      .tensor = &tensor, .name = name, .stem = WithoutSuffix(name, ".weight").value_or(name)};
  FindScale(layers, scaled);
  if (scaled.scale == nullptr) {
    return false;
  }
  const Packing packing = PackingOf(layers, scaled);
  StoredWeight weight = {.name = std::string(name),
                         .scheme = SchemeOf(layers, scaled, packing),
                         .format = std::string(packing.format),
                         .shape = tensor.shape,
                         .evidence = Evidence(layers.Declared(), scaled.proof)};
  const std::size_t from_end = std::min(packing.axis_from_end, weight.shape.size());
  std::int64_t& packed = weight.shape[weight.shape.size() - from_end];
  packed = OrLargest(Checked(packed) * packing.per_byte);
  SetGroups(layers.Declared(), scaled, weight);
  AttachNeighbours(layers, layers.Add(std::move(weight), codes), scaled);
  return true;
}

}  // namespace fourpiles
