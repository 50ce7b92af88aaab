// Layouts that pack integers into words of 32 bits, or several into a byte.
//
//   GPTQ   qweight I32 [in·b/32, out], qzeros I32 [groups, out·b/32], scales [groups, out],
//          g_idx I32 [in]                 AutoGPTQ, auto_gptq/nn_modules/qlinear/qlinear_cuda.py
//   AWQ    gemm: qweight I32 [in, out·b/32], scales [groups, out]; gemv: qweight I32 [out,
//   in·b/32],
//          scales [out, …]; gemv_fast: qweight I16 [out/4, in]      AutoAWQ,
//          awq/modules/linear/*.py
//   EETQ   qweight I8 [in, out], weight_scales [out]           NetEase-FuXi/EETQ, python/eetq
//   MLX    weight U32 [out, in·b/32], scales and biases [out, groups]    mlx, mx.quantize
//   HQQ    W_q U8, the rows packed 2 or 4 a byte, or I32, 10 values of 3 bits a word; the true
//          shape beside it                                     mobiusml/hqq, hqq/core/quantize.py
//
// 3 bits fill words exactly: 32 values lie in 3 words. A row of 128 such values is 128 · 3 / 32 =
// 12 words.

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "base/checked.h"
#include "tensors/quantised_layers.h"

namespace fourpiles {
namespace {

constexpr std::int64_t kMostPackedBits = 8;

bool IsBits(const std::optional<std::int64_t>& bits) {
  return bits && *bits >= 1 && *bits <= kMostPackedBits;
}

std::int64_t Floor(std::int64_t dimension, std::int64_t numerator, std::int64_t denominator) {
  const Checked product = Checked(dimension) * numerator;
  return product.ok() && product.value() >= 0 ? product.value() / denominator : 0;
}

// A weight [out, in] in a matrix of words.
struct Unpacked {
  std::int64_t bits;
  std::int64_t out;
  std::int64_t in;
  std::string_view proof;
};

// The tensors of a layer "stem".
struct WordMatrix {
  std::string_view stem;
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t word;         // bits
  const FileTensor* scales;  // a matrix, or nullptr
  DeclaredWeights declared;
};

const FileTensor* FindMatrix(const QuantisedLayers& layers, std::string_view stem,
                             std::string_view suffix) {
  const FileTensor* tensor = layers.FindTensor(stem, suffix);
  return tensor != nullptr && tensor->shape.size() == 2 && tensor->elements > 0 ? tensor : nullptr;
}

std::optional<Unpacked> GptqWithBits(const WordMatrix& matrix, std::int64_t bits,
                                     std::string_view proof) {
  return Unpacked{.bits = bits,
                  .out = matrix.columns,
                  .in = Floor(matrix.rows, matrix.word, bits),
                  .proof = proof};
}

// The groups are known from the scales, their size only by habit.
std::optional<Unpacked> GptqByScales(QuantisedLayers& layers, const WordMatrix& matrix) {
  constexpr std::int64_t kUsualGroup = 128;  // the default of AutoGPTQ
  if (matrix.scales == nullptr) {
    return std::nullopt;
  }
  const std::int64_t group =
      matrix.declared.group_size > 0 ? matrix.declared.group_size : kUsualGroup;
  const std::int64_t in = OrLargest(Checked(matrix.scales->shape[0]) * group);
  const std::optional<std::int64_t> bits = ExactShare(matrix.rows, matrix.word, in);
  if (!IsBits(bits)) {
    return std::nullopt;
  }
  if (matrix.declared.group_size == 0) {
    layers.Note("gptq: groups of 128 are taken for granted", matrix.stem);
  }
  return GptqWithBits(matrix, *bits, "scales");
}

std::optional<Unpacked> UnpackGptq(QuantisedLayers& layers, const WordMatrix& matrix) {
  const FileTensor* order = layers.FindTensor(matrix.stem, ".g_idx");
  if (order != nullptr && order->elements > 0) {
    const auto bits = ExactShare(matrix.rows, matrix.word, order->elements);
    if (IsBits(bits)) {
      if (IsBits(matrix.declared.bits) && *bits != matrix.declared.bits) {
        layers.Note("gptq: g_idx and the config disagree about the bits; g_idx counts",
                    matrix.stem);
      }
      return GptqWithBits(matrix, *bits, "g_idx");
    }
  }
  if (const FileTensor* zeros = FindMatrix(layers, matrix.stem, ".qzeros"); zeros != nullptr) {
    const auto bits = ExactShare(zeros->shape[1], matrix.word, matrix.columns);
    if (IsBits(bits)) {
      return GptqWithBits(matrix, *bits, "qzeros");
    }
  }
  if (IsBits(matrix.declared.bits)) {
    return GptqWithBits(matrix, matrix.declared.bits, "qweight");
  }
  return GptqByScales(layers, matrix);
}

std::optional<Unpacked> UnpackAwqGemv(const WordMatrix& matrix) {
  constexpr std::int64_t kAwqBits = 4;  // AutoAWQ has no other
  const std::int64_t bits = IsBits(matrix.declared.bits) ? matrix.declared.bits : kAwqBits;
  return Unpacked{.bits = bits,
                  .out = matrix.rows,
                  .in = Floor(matrix.columns, matrix.word, bits),
                  .proof = "scales"};
}

// Nothing: the shapes beside each other are not those of AWQ.
std::optional<Unpacked> UnpackAwq(const QuantisedLayers& layers, const WordMatrix& matrix) {
  if (matrix.scales == nullptr) {
    return std::nullopt;
  }
  const std::int64_t scale_rows = matrix.scales->shape[0];
  const std::int64_t scale_columns = matrix.scales->shape[1];
  if (matrix.word == 16 && OrLargest(Checked(matrix.rows) * 4) == scale_columns) {
    return Unpacked{.bits = 4, .out = scale_columns, .in = matrix.columns, .proof = "scales"};
  }
  if (layers.Declared().format == "gemv" && scale_rows == matrix.rows) {
    return UnpackAwqGemv(matrix);
  }
  if (scale_columns == matrix.columns) {
    return std::nullopt;  // GPTQ
  }
  const auto bits = ExactShare(matrix.columns, matrix.word, scale_columns);
  if (IsBits(bits) && scale_rows <= matrix.rows && scale_rows != matrix.rows) {
    return Unpacked{.bits = *bits, .out = scale_columns, .in = matrix.rows, .proof = "scales"};
  }
  return scale_rows == matrix.rows ? UnpackAwqGemv(matrix) : std::nullopt;
}

void AddEetq(QuantisedLayers& layers, std::int32_t codes, std::string_view stem) {
  const FileTensor& tensor = layers.Tensor(codes);
  const std::int32_t weight = layers.Add({.name = std::string(stem) + ".weight",
                                          .scheme = "eetq",
                                          .format = "int8",
                                          .shape = {tensor.shape[1], tensor.shape[0]},
                                          .evidence = Evidence(layers.Declared(), "weight_scales")},
                                         codes);
  layers.Attach(weight, TensorRole::kScales, stem, {".weight_scales"});
}

void AddUnpacked(QuantisedLayers& layers, std::int32_t codes, const WordMatrix& matrix,
                 const Unpacked& unpacked, std::string_view scheme) {
  const std::string& method = layers.Declared().method;
  const bool by_columns = scheme == "awq" && unpacked.out == matrix.rows;  // gemv
  const std::int64_t groups =
      matrix.scales == nullptr ? 0 : matrix.scales->shape[by_columns ? 1 : 0];
  StoredWeight weight = {.name = std::string(matrix.stem) + ".weight",
                         .scheme = method == "auto-round" ? method : std::string(scheme),
                         .format = IntegerFormat("uint", unpacked.bits),
                         .group_size = GroupSize(unpacked.in, groups, matrix.declared.group_size),
                         .shape = {unpacked.out, unpacked.in},
                         .evidence = Evidence(layers.Declared(), unpacked.proof)};
  if (by_columns && matrix.declared.group_size > 0) {
    weight.group_size = matrix.declared.group_size;  // the columns of the scales are filled up
  }
  const std::int32_t index = layers.Add(std::move(weight), codes);
  layers.Attach(index, TensorRole::kScales, matrix.stem, {".scales"});
  layers.Attach(index, TensorRole::kZeroPoints, matrix.stem, {".qzeros"});
  layers.Attach(index, TensorRole::kOther, matrix.stem, {".g_idx"});
}

// The number of bits, and of values in a group.
struct MlxPacking {
  std::int64_t bits;
  std::int64_t group_size;
};

// The words and the scales of a row and the size of a group give the bits, so that the declared
// bits are not needed; groups of 64 are the default of mlx.
std::optional<MlxPacking> FindMlxPacking(std::int64_t words, std::int64_t scales,
                                         std::int64_t declared_group) {
  constexpr std::int64_t kUsualBits = 4;
  std::optional<MlxPacking> found;
  for (const std::int64_t group :
       {declared_group, std::int64_t{64}, std::int64_t{32}, std::int64_t{128}, std::int64_t{16}}) {
    const auto bits = ExactShare(words, 32, OrLargest(Checked(scales) * group));
    const bool fits = IsBits(bits) && *bits != 1 && *bits != 7;
    if (fits && (group == declared_group || *bits == kUsualBits)) {
      return MlxPacking{*bits, group};
    }
    found = fits && !found ? MlxPacking{*bits, group} : found;
  }
  return found;
}

// mlx 0.29, mx.quantize: the modes mxfp4, mxfp8 and nvfp4 have scales of one byte and no biases.
std::string MlxFormat(const MlxPacking& packing, bool has_byte_scales) {
  if (!has_byte_scales) {
    return IntegerFormat("uint", packing.bits);
  }
  return packing.bits == 4 ? "float4_e2m1fn" : "float8_e4m3fn";
}

// Values of `bits` bits in a word of HQQ.
std::int64_t HqqValuesPerWord(std::int64_t word, std::int64_t bits) {
  return word / bits;
}

std::optional<std::vector<std::int64_t>> HqqShape(const QuantisedLayers& layers,
                                                  std::string_view stem) {
  auto shape = layers.SmallIntegers(stem, ".shape");
  const bool is_shape = shape && !shape->empty() && shape->size() <= kMostDimensions &&
                        std::ranges::all_of(*shape, [](std::int64_t d) { return d > 0; });
  return is_shape ? shape : std::nullopt;
}

// 0 when nothing says it.
std::int64_t HqqBits(const QuantisedLayers& layers, std::string_view stem) {
  const auto said = layers.SmallIntegers(stem, ".nbits");
  if (said && said->size() == 1 && IsBits(said->front())) {
    return said->front();
  }
  const DeclaredWeights declared = DeclaredFor(layers.Declared(), stem);
  return IsBits(declared.bits) ? declared.bits : 0;
}

// The bits that a value can have where `bytes` hold all values: 3 for 10 values in 4 bytes.
std::int64_t BitsEach(std::int64_t bytes, const std::vector<std::int64_t>& shape) {
  const Checked values = ElementsOf(shape);
  return values.ok() && values.value() > 0 ? Floor(bytes, 8, values.value()) : 0;
}

}  // namespace

bool AddQweight(QuantisedLayers& layers, std::int32_t codes) {
  const FileTensor& tensor = layers.Tensor(codes);
  const auto stem = WithoutSuffix(tensor.name, ".qweight");
  if (!stem || tensor.shape.size() != 2) {
    return false;
  }
  if (layers.Find(*stem, ".weight_scales") != kNone) {
    AddEetq(layers, codes, *stem);
    return true;
  }
  const WordMatrix matrix = {.stem = *stem,
                             .rows = tensor.shape[0],
                             .columns = tensor.shape[1],
                             .word = tensor.type->block_bits,
                             .scales = FindMatrix(layers, *stem, ".scales"),
                             .declared = DeclaredFor(layers.Declared(), *stem)};
  if (const auto awq = UnpackAwq(layers, matrix)) {
    AddUnpacked(layers, codes, matrix, *awq, "awq");
  } else if (const auto gptq = UnpackGptq(layers, matrix)) {
    AddUnpacked(layers, codes, matrix, *gptq, "gptq");
  } else {
    layers.Note("qweight: packed, the number of bits is not known; it counts as it lies",
                tensor.name);
    layers.SetRole(codes, TensorRole::kCodes, tensor.elements);
  }
  return true;
}

bool AddMlx(QuantisedLayers& layers, std::int32_t codes) {
  const FileTensor& tensor = layers.Tensor(codes);
  const std::string_view stem = WithoutSuffix(tensor.name, ".weight").value_or(tensor.name);
  const FileTensor* scales = layers.FindTensor(stem, ".scales");
  if (tensor.type->name != "uint32" || scales == nullptr || tensor.shape.size() < 2 ||
      scales->shape.size() != tensor.shape.size()) {
    return false;
  }
  const auto packing = FindMlxPacking(tensor.shape.back(), scales->shape.back(),
                                      DeclaredFor(layers.Declared(), stem).group_size);
  if (!packing) {
    layers.Note("mlx: packed, the number of bits is not known; it counts as it lies", tensor.name);
    layers.SetRole(codes, TensorRole::kCodes, tensor.elements);
    return true;
  }
  if (DeclaredFor(layers.Declared(), stem).group_size == 0) {
    layers.Note(
        "mlx: no config says how large the groups are; the usual ones are taken for granted",
        tensor.name);
  }
  StoredWeight weight = {
      .name = tensor.name,
      .scheme = "mlx",
      .format = MlxFormat(*packing, scales->type && scales->type->block_bits == 8),
      .group_size = packing->group_size,
      .shape = tensor.shape,
      .evidence = Evidence(layers.Declared(), "scales")};
  weight.shape.back() = Floor(tensor.shape.back(), 32, packing->bits);
  const std::int32_t index = layers.Add(std::move(weight), codes);
  layers.Attach(index, TensorRole::kScales, stem, {".scales"});
  layers.Attach(index, TensorRole::kZeroPoints, stem, {".biases"});
  return true;
}

bool AddHqq(QuantisedLayers& layers, std::int32_t codes) {
  const FileTensor& tensor = layers.Tensor(codes);
  const auto stem = WithoutSuffix(tensor.name, ".W_q");
  if (!stem || !tensor.type) {
    return false;
  }
  const std::int64_t bits = HqqBits(layers, *stem);
  auto shape = HqqShape(layers, *stem);
  const std::string_view proof = shape ? "shape" : "nbits";
  if (!shape && bits == 0) {
    layers.Note("hqq: packed, the logical number of parameters is not known", tensor.name);
    layers.SetRole(codes, TensorRole::kCodes, tensor.elements);
    return true;
  }
  if (!shape) {
    layers.Note("hqq: no shape beside the codes, so rows that fill the last word count", *stem);
    shape = {OrLargest(Checked(tensor.elements) * HqqValuesPerWord(tensor.type->block_bits, bits))};
  }
  const auto group = layers.SmallIntegers(*stem, ".group_size");
  StoredWeight weight = {
      .name = std::string(*stem) + ".weight",
      .scheme = "hqq",
      .format = IntegerFormat("uint", bits != 0 ? bits : BitsEach(tensor.bytes, *shape)),
      .group_size = DeclaredFor(layers.Declared(), *stem).group_size,
      .shape = *shape,
      .evidence = Evidence(layers.Declared(), proof)};
  if (group && group->size() == 1 && group->front() > 0) {
    weight.group_size = group->front();
  }
  const std::int32_t index = layers.Add(std::move(weight), codes);
  layers.Attach(index, TensorRole::kScales, *stem, {".scale"});
  layers.Attach(index, TensorRole::kZeroPoints, *stem, {".zero"});
  layers.Attach(
      index, TensorRole::kOther, *stem,
      {".shape", ".nbits", ".group_size", ".axis", ".packing", ".meta", ".channel_wise",
       ".unpack_view_dtype", ".view_as_float", ".quant_scale", ".quant_zero", ".compute_dtype",
       ".offload_meta", ".stores_quant_config", ".optimize", ".round_zero", ".encoded_state_dict"});
  return true;
}

}  // namespace fourpiles
