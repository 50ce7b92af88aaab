// Layouts whose names say that they are packed.
//
//   compressed-tensors (compressors/quantized_compressors/pack_quantized.py, nvfp4_quantized.py):
//     weight_packed I32 [out, ⌈in·b/32⌉], weight_shape I64 [2], weight_scale [out, groups],
//       weight_zero_point I32 [⌈out·b/32⌉, groups], weight_g_idx [in]; before version 0.10 each
//       word held 32/b values, rounded down, and was filled up
//     weight_packed U8 [out, in/2]: two E2M1 a byte, with weight_scale F8_E4M3 [out, in/16] and
//       weight_global_scale (NVFP4), or U8 [out, in/32] (MXFP4)
//   gpt-oss (openai/gpt-oss, gpt_oss/torch/weights.py): X_blocks U8 [experts, rows, columns/32,
//   16],
//     X_scales U8 [experts, rows, columns/32]

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/checked.h"
#include "tensors/quantised_layers.h"

namespace fourpiles {
namespace {

constexpr std::int64_t kWordBits = 32;

// Whether `in` values of `bits` bits fill so many words, packed without a gap or word by word.
bool FillsWords(std::int64_t in, std::int64_t bits, std::int64_t words) {
  const Checked dense = DivideRoundingUp(Checked(in) * bits, kWordBits);
  const Checked padded = DivideRoundingUp(Checked(in), kWordBits / bits);
  return (dense.ok() && dense.value() == words) || (padded.ok() && padded.value() == words);
}

// Those declared first; 0: no number of bits fits.
std::int64_t BitsThatFit(const DeclaredQuantisation& declared, std::int64_t in,
                         std::int64_t words) {
  for (const DeclaredWeights& weights : declared.weights) {
    if (weights.bits >= 1 && weights.bits <= 8 && FillsWords(in, weights.bits, words)) {
      return weights.bits;
    }
  }
  for (const std::int64_t bits : {4, 8, 2, 3, 5, 6, 7, 1}) {
    if (FillsWords(in, bits, words)) {
      return bits;
    }
  }
  return 0;
}

struct PackedRow {
  std::int64_t in = 0;
  std::int64_t bits = 0;
  std::string_view proof = {};
};

// weight_shape, when it is one of these codes.
std::optional<PackedRow> RowByShape(const QuantisedLayers& layers, std::string_view stem,
                                    const FileTensor& codes) {
  const auto shape = layers.SmallIntegers(stem, ".weight_shape");
  if (!shape || shape->size() != codes.shape.size() || shape->back() < 1 ||
      !std::equal(shape->begin(), shape->end() - 1, codes.shape.begin())) {
    return std::nullopt;
  }
  const std::int64_t bits = BitsThatFit(layers.Declared(), shape->back(), codes.shape.back());
  return bits == 0 ? std::nullopt : std::optional(PackedRow{shape->back(), bits, "weight_shape"});
}

// The order of the columns, or the groups with the declared size, give the length of a row.
std::optional<PackedRow> RowByNeighbours(const QuantisedLayers& layers, std::string_view stem,
                                         const FileTensor& codes) {
  const std::int64_t words = codes.shape.back();
  if (const FileTensor* order = layers.FindTensor(stem, ".weight_g_idx"); order != nullptr) {
    const std::int64_t bits = BitsThatFit(layers.Declared(), order->elements, words);
    if (bits != 0 && order->elements > 0) {
      return PackedRow{order->elements, bits, "weight_g_idx"};
    }
  }
  const FileTensor* scale = layers.FindTensor(stem, ".weight_scale");
  for (const DeclaredWeights& weights : layers.Declared().weights) {
    if (weights.bits < 1 || weights.bits > 8) {
      continue;
    }
    const bool grouped = scale != nullptr && !scale->shape.empty() && weights.group_size > 0;
    const std::int64_t in =
        grouped ? OrLargest(Checked(scale->shape.back()) * weights.group_size) : 0;
    if (grouped && FillsWords(in, weights.bits, words)) {
      return PackedRow{in, weights.bits, "weight_scale"};
    }
  }
  return std::nullopt;
}

std::optional<PackedRow> RowByBits(const QuantisedLayers& layers, const FileTensor& codes) {
  for (const DeclaredWeights& weights : layers.Declared().weights) {
    if (weights.bits >= 1 && weights.bits <= 8) {
      const std::int64_t bits = OrLargest(Checked(codes.shape.back()) * kWordBits);
      return PackedRow{bits / weights.bits, weights.bits, "weight_packed"};
    }
  }
  return std::nullopt;
}

struct Packed {
  std::vector<std::int64_t> shape = {};
  std::string format = {};
  std::string_view proof = {};
};

std::optional<Packed> UnpackWords(const QuantisedLayers& layers, std::string_view stem,
                                  const FileTensor& codes) {
  std::optional<PackedRow> row = RowByShape(layers, stem, codes);
  row = row ? row : RowByNeighbours(layers, stem, codes);
  row = row ? row : RowByBits(layers, codes);
  if (!row) {
    return std::nullopt;
  }
  Packed packed = {codes.shape, IntegerFormat("int", row->bits), row->proof};
  packed.shape.back() = row->in;
  return packed;
}

Packed UnpackNibbles(const FileTensor& codes, const FileTensor* scale) {
  const bool is_float = scale != nullptr && KindOf(*scale) != TensorKind::kPlainFloat;
  Packed packed = {codes.shape, is_float ? "float4_e2m1fn" : "int4", "weight_packed"};
  packed.shape.back() = OrLargest(Checked(packed.shape.back()) * 2);
  return packed;
}

}  // namespace

bool AddWeightPacked(QuantisedLayers& layers, std::int32_t codes) {
  const FileTensor& tensor = layers.Tensor(codes);
  const auto stem = WithoutSuffix(tensor.name, ".weight_packed");
  if (!stem || tensor.shape.empty()) {
    return false;
  }
  const FileTensor* scale = layers.FindTensor(*stem, ".weight_scale");
  const std::optional<Packed> packed = tensor.type->block_bits == 8
                                           ? UnpackNibbles(tensor, scale)
                                           : UnpackWords(layers, *stem, tensor);
  if (!packed) {
    layers.Note("compressed-tensors: packed, the number of bits is not known; it counts as it lies",
                tensor.name);
    layers.SetRole(codes, TensorRole::kCodes, tensor.elements);
    return true;
  }
  const std::int64_t groups = scale == nullptr || scale->shape.size() < 2 ? 1 : scale->shape.back();
  const std::int64_t declared = DeclaredFor(layers.Declared(), *stem).group_size;
  const std::int32_t weight = layers.Add(
      {.name = std::string(*stem) + ".weight",
       .scheme = "compressed-tensors",
       .format = packed->format,
       .group_size =
           groups < 2 && declared == 0 ? 0 : GroupSize(packed->shape.back(), groups, declared),
       .shape = packed->shape,
       .evidence = Evidence(layers.Declared(), packed->proof)},
      codes);
  layers.Attach(weight, TensorRole::kScales, *stem, {".weight_scale", ".weight_global_scale"});
  layers.Attach(weight, TensorRole::kZeroPoints, *stem, {".weight_zero_point"});
  layers.Attach(weight, TensorRole::kOther, *stem,
                {".weight_shape", ".weight_g_idx", ".input_global_scale", ".input_scale",
                 ".input_zero_point"});
  return true;
}

bool AddBlocks(QuantisedLayers& layers, std::int32_t codes) {
  constexpr std::int64_t kBlockBytes = 16;  // 32 values
  const FileTensor& tensor = layers.Tensor(codes);
  const auto stem = WithoutSuffix(tensor.name, "_blocks");
  if (!stem || tensor.type->name != "uint8" || tensor.shape.size() < 3 ||
      tensor.shape.back() != kBlockBytes) {
    return false;
  }
  const FileTensor* scales = layers.FindTensor(*stem, "_scales");
  if (scales == nullptr || OrLargest(Checked(scales->elements) * kBlockBytes) != tensor.elements) {
    return false;
  }
  std::vector<std::int64_t> shape(tensor.shape.begin(), tensor.shape.end() - 1);
  shape.back() = OrLargest(Checked(shape.back()) * kBlockBytes * 2);
  const std::int32_t weight = layers.Add({.name = std::string(*stem),
                                          .scheme = "mxfp4",
                                          .format = "float4_e2m1fn",
                                          .group_size = 2 * kBlockBytes,
                                          .shape = std::move(shape),
                                          .evidence = Evidence(layers.Declared(), "_scales")},
                                         codes);
  layers.Attach(weight, TensorRole::kScales, *stem, {"_scales"});
  return true;
}

}  // namespace fourpiles
