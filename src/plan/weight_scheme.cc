#include "plan/weight_scheme.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/ascii.h"
#include "base/nearest_name.h"
#include "base/try.h"
#include "formats/storage.h"
#include "units/parse.h"

namespace fourpiles {
namespace {

// A matrix as the linear layer sees it, on one rank.
struct Matrix {
  Checked count = 1;  // alike: layers × experts
  Checked outputs = 1;
  Checked inputs = 1;
  Checked Elements() const { return count * outputs * inputs; }
};

struct NamedScheme {
  std::string_view name;
  WeightCoding coding;
  std::string_view plain;
  std::int64_t bits = 4;
};
constexpr NamedScheme kSchemes[] = {
    {"fp8", WeightCoding::kFloat8Tensor, "bfloat16", 8},
    {"fp8-channel", WeightCoding::kFloat8Channel, "bfloat16", 8},
    {"fp8-block", WeightCoding::kFloat8Block, "bfloat16", 8},
    {"int8", WeightCoding::kInt8Channel, "bfloat16", 8},
    {"gptq", WeightCoding::kGptq, "float16"},
    {"awq", WeightCoding::kAwq, "float16"},
    {"packed", WeightCoding::kPacked, "bfloat16"},
    {"nf4", WeightCoding::kNormalFloat4, "float16"},
    {"nf4-double", WeightCoding::kNormalFloat4Double, "float16"},
    {"bnb-int8", WeightCoding::kInt8Vector, "float16", 8},
    {"mxfp4", WeightCoding::kMxfp4, "bfloat16"},
    {"nvfp4", WeightCoding::kNvfp4, "bfloat16"},
};

bool Mentions(std::string_view name, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(
      words, [&](std::string_view word) { return name.find(word) != std::string_view::npos; });
}

// The number of the dimension that has the outputs; the last one has the inputs. Stacked experts
// have the experts in front.
std::size_t OutputDimension(const Parameter& parameter) {
  return parameter.shape.size() - 2;
}

std::vector<Checked> LocalShape(const Parameter& parameter, std::int64_t tensor_parallel) {
  std::vector<Checked> shape(parameter.shape.begin(), parameter.shape.end());
  if (parameter.cut) {
    Checked& cut = shape[static_cast<std::size_t>(*parameter.cut)];
    cut = DivideRoundingUp(cut, tensor_parallel);
  }
  return shape;
}

Matrix MatrixOf(const Block& block, const Parameter& parameter, std::int64_t tensor_parallel) {
  const std::vector<Checked> shape = LocalShape(parameter, tensor_parallel);
  const std::size_t outputs = OutputDimension(parameter);
  Matrix matrix = {.count = Checked(block.repeat) * parameter.copies,
                   .outputs = shape[outputs],
                   .inputs = shape[outputs + 1]};
  for (std::size_t i = 0; i < outputs; ++i) {
    matrix.count = matrix.count * shape[i];
  }
  return matrix;
}

struct Coded {
  std::string_view format;  // of the codes
  Checked codes = 0;        // bytes
  Checked scale_count = 0;
  Checked scales = 0;  // bytes of scales, zero points, indices
};

Coded CodedInGroups(const Matrix& matrix, const WeightScheme& scheme) {
  const Checked groups = DivideRoundingUp(matrix.inputs, scheme.group_size) * matrix.count;
  // Codes and zero points are packed into int32.
  const bool symmetric = scheme.coding == WeightCoding::kPacked;
  const Checked zeros =
      symmetric ? Checked(0) : DivideRoundingUp(matrix.outputs * scheme.bits, 32) * 4 * groups;
  Coded coded = {
      .format = scheme.bits == 8 ? "int8" : "int4",
      .codes =
          DivideRoundingUp(matrix.inputs * scheme.bits, 32) * 4 * matrix.outputs * matrix.count,
      .scale_count = groups * matrix.outputs * (symmetric ? 1 : 2),  // each with a zero point
      .scales = groups * matrix.outputs * 2 + zeros};
  if (scheme.coding == WeightCoding::kGptq) {
    coded.scale_count = coded.scale_count + matrix.inputs * matrix.count;
    coded.scales = coded.scales + matrix.inputs * matrix.count * 4;
  }
  return coded;
}

// So many elements to a scale of so many bytes, all in a row of inputs.
Coded CodedInBlocks(const Matrix& matrix, std::string_view format, std::int64_t block,
                    std::int64_t bytes_of_matrix) {
  const Checked scales = DivideRoundingUp(matrix.inputs, block) * matrix.outputs * matrix.count;
  return {.format = format,
          .codes = DivideRoundingUp(matrix.inputs, 2) * matrix.outputs * matrix.count,
          .scale_count = scales,
          .scales = scales + matrix.count * bytes_of_matrix};
}

Coded CodedAsNormalFloat(const Matrix& matrix, bool twice) {
  constexpr std::int64_t kTableBytes = 64;
  constexpr std::int64_t kCodeBook = 1024;  // 256 float32
  const Checked elements = matrix.outputs * matrix.inputs;
  const Checked blocks = DivideRoundingUp(elements, 64);
  const Checked scales =
      twice ? blocks + DivideRoundingUp(blocks, 256) * 4 + 4 + kCodeBook : blocks * 4;
  return {.format = "nf4",
          .codes = DivideRoundingUp(elements, 2) * matrix.count,
          .scale_count = blocks * matrix.count,
          .scales = (scales + kTableBytes) * matrix.count};
}

Coded CodedBy8Bits(const Matrix& matrix, std::string_view format, Checked scales) {
  return {.format = format,
          .codes = matrix.Elements(),
          .scale_count = scales * matrix.count,
          .scales = scales * matrix.count * 4};
}

// NOLINTNEXTLINE(readability-function-size): one flat switch
Coded CodedAs(const Matrix& matrix, const WeightScheme& scheme) {
  switch (scheme.coding) {
    case WeightCoding::kFloat8Tensor:
      return CodedBy8Bits(matrix, "float8_e4m3fn", 1);
    case WeightCoding::kFloat8Channel:
      return CodedBy8Bits(matrix, "float8_e4m3fn", matrix.outputs);
    case WeightCoding::kFloat8Block:
      return CodedBy8Bits(
          matrix, "float8_e4m3fn",
          DivideRoundingUp(matrix.outputs, 128) * DivideRoundingUp(matrix.inputs, 128));
    case WeightCoding::kInt8Channel:
    case WeightCoding::kInt8Vector:
      return CodedBy8Bits(matrix, "int8", matrix.outputs);
    case WeightCoding::kGptq:
    case WeightCoding::kAwq:
    case WeightCoding::kPacked:
      return CodedInGroups(matrix, scheme);
    case WeightCoding::kNormalFloat4:
      return CodedAsNormalFloat(matrix, false);
    case WeightCoding::kNormalFloat4Double:
      return CodedAsNormalFloat(matrix, true);
    case WeightCoding::kMxfp4:
      return CodedInBlocks(matrix, "mxfp4", 32, 0);
    case WeightCoding::kNvfp4:
      return CodedInBlocks(matrix, "nvfp4", 16, 8);
    case WeightCoding::kPlain:
      break;
  }
  return {};
}

void Add(SchemeBytes& sum, std::string_view format, Checked elements, Checked bytes) {
  auto part = std::ranges::find(sum.parts, format, &SchemeBytes::Part::format);
  if (part == sum.parts.end()) {
    part = sum.parts.insert(part, {.format = std::string(format)});
  }
  part->elements = part->elements + elements;
  part->bytes = part->bytes + bytes;
  sum.bytes = sum.bytes + bytes;
}

void AddPlain(SchemeBytes& sum, const Block& block, const Parameter& parameter,
              const WeightScheme& scheme, std::int64_t tensor_parallel) {
  static const NumberFormat float32 = FindFormat("float32").value();
  const NumberFormat& format = parameter.float32 ? float32 : scheme.plain;
  Checked elements = Checked(block.repeat) * parameter.copies;
  for (const Checked& size : LocalShape(parameter, tensor_parallel)) {
    elements = elements * size;
  }
  Add(sum, format.name, elements, StorageBytes(elements, format));
}

// The numbers behind "awq:4:128".
Result<WeightScheme> WithNumbers(WeightScheme scheme, std::string_view numbers,
                                 std::string_view where) {
  const std::size_t colon = numbers.find(':');
  TRY(scheme.bits, ParseCount(numbers.substr(0, colon), where, {2, 8}));
  if (colon != std::string_view::npos) {
    TRY(scheme.group_size, ParseCount(numbers.substr(colon + 1), where, {1, 1 << 20}));
  }
  return scheme;
}

// The output layer's own weight.
bool IsOutputWeight(const Block& block, const Parameter& parameter) {
  const auto reads = [&](const Operator& op) {
    return op.kind == OperatorKind::kLoss && !op.parameters.empty() &&
           op.parameters.front().block < 0 &&
           &block.parameters[static_cast<std::size_t>(op.parameters.front().parameter)] ==
               &parameter;
  };
  return std::ranges::any_of(block.operators, reads);
}

// Whether the module's path has all of one of these in a row.
bool HasModule(std::string_view path, const std::vector<std::string>& modules) {
  const std::string dotted = fmt::format(".{}.", path);
  return std::ranges::any_of(modules, [&](const std::string& module) {
    return dotted.find(fmt::format(".{}.", module)) != std::string::npos;
  });
}

}  // namespace

Result<WeightScheme> FindWeightScheme(std::string_view name, std::string_view where) {
  const std::string lower = LowerCase(name);
  const std::string_view word = std::string_view(lower).substr(0, lower.find(':'));
  for (const NamedScheme& scheme : kSchemes) {
    if (scheme.name == word) {
      TRY(const NumberFormat plain, FindFormat(scheme.plain));
      const WeightScheme found = {.coding = scheme.coding, .plain = plain, .bits = scheme.bits};
      return word == lower ? found : WithNumbers(found, name.substr(word.size() + 1), where);
    }
  }
  if (const auto format = FindFormat(name)) {
    return WeightScheme{.plain = *format};
  }
  std::vector<std::string_view> names = {"bfloat16", "float16", "float32"};
  for (const NamedScheme& scheme : kSchemes) {
    names.push_back(scheme.name);
  }
  return WrongUsage({.where = std::string(where),
                     .found = "unknown weight format \"" + std::string(name) + "\"",
                     .expected = DidYouMean(name, names),
                     .hint = "formats, or fp8, fp8-channel, fp8-block, int8, gptq, awq, nf4, "
                             "nf4-double, bnb-int8, mxfp4, nvfp4, packed"});
}

bool StaysPlain(const Block& block, const Parameter& parameter, const WeightScheme& scheme) {
  if (scheme.coding == WeightCoding::kPlain || parameter.float32) {
    return true;
  }
  if (scheme.coding == WeightCoding::kMxfp4 && !parameter.routed) {
    return true;
  }
  if (scheme.of_frozen && parameter.trainable) {
    return true;
  }
  if (scheme.with_output_layer && IsOutputWeight(block, parameter)) {
    return false;
  }
  const std::string& name = parameter.name;
  const std::size_t least = parameter.routed && name.find("{}") == std::string::npos ? 3 : 2;
  return !IsNumbered(block) || parameter.shape.size() < least ||
         HasModule(fmt::format("{}.{}", block.name, name), scheme.plain_modules) ||
         Mentions(block.name, {"vision", "visual", "audio"}) ||
         Mentions(name, {"norm", "bias", "embed", "router", "conv", "mlp.gate.", "sparse_moe.gate.",
                         "shared_expert_gate", "A_log"});
}

SchemeBytes WeightBytes(const Network& network, const WeightScheme& scheme,
                        std::int64_t tensor_parallel) {
  SchemeBytes sum;
  for (const Block& block : network.blocks) {
    for (const Parameter& parameter : block.parameters) {
      if (StaysPlain(block, parameter, scheme)) {
        AddPlain(sum, block, parameter, scheme, tensor_parallel);
        continue;
      }
      const Matrix matrix = MatrixOf(block, parameter, tensor_parallel);
      const Coded coded = CodedAs(matrix, scheme);
      Add(sum, coded.format, matrix.Elements(), coded.codes);
      Add(sum, "scales", coded.scale_count, coded.scales);
    }
  }
  return sum;
}

}  // namespace fourpiles
