#include "tensors/quantised_layers.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "base/checked.h"

namespace fourpiles {
namespace {

// A quant_state of bitsandbytes is 160 bytes or so; a shape is 8 bytes a dimension.
constexpr std::int64_t kMostSmallBytes = 4'096;

bool IsOneOf(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Whole numbers lie in the files least byte first.
std::int64_t LittleEndian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    value = value << 8U | static_cast<unsigned char>(bytes[i]);
  }
  return bytes.size() == 4 ? static_cast<std::int32_t>(static_cast<std::uint32_t>(value))
                           : static_cast<std::int64_t>(value);
}

// "weight_scale" of "layers.0.q.weight_scale"
std::string_view LastStep(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

void AddBytes(std::int64_t& total, std::int64_t bytes) {
  total = OrLargest(Checked(total) + bytes);
}

std::int64_t& BytesOf(StoredWeight& weight, TensorRole role) {
  switch (role) {
    case TensorRole::kCodes:
      return weight.code_bytes;
    case TensorRole::kScales:
      return weight.scale_bytes;
    case TensorRole::kZeroPoints:
      return weight.zero_point_bytes;
    case TensorRole::kPlain:
    case TensorRole::kOther:
      break;
  }
  return weight.other_bytes;
}

}  // namespace

TensorKind KindOf(const FileTensor& tensor) {
  if (!tensor.type) {
    return TensorKind::kOther;
  }
  const std::string_view name = tensor.type->name;
  if (IsOneOf(name, {"bfloat16", "float16", "float32", "float64"})) {
    return TensorKind::kPlainFloat;
  }
  if (name == "float8_e8m0fnu") {
    return TensorKind::kPowerOfTwo;
  }
  if (name.starts_with("float8_")) {
    return TensorKind::kFloat8;
  }
  if (name == "float4_e2m1fn") {
    return TensorKind::kFloat4;
  }
  return IsOneOf(name, {"int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"})
             ? TensorKind::kInteger
             : TensorKind::kOther;
}

QuantisedLayers::QuantisedLayers(const Checkpoint& checkpoint, const DeclaredQuantisation& declared)
    : checkpoint_(&checkpoint), declared_(&declared) {
  const std::size_t count = checkpoint.tensors.size();
  by_name_.reserve(count);
  result_.tensors.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const FileTensor& tensor = checkpoint.tensors[i];
    result_.tensors[i].parameters = tensor.elements;
    by_name_.try_emplace(tensor.name, static_cast<std::int32_t>(i));
    last_steps_.insert(LastStep(tensor.name));
  }
}

bool QuantisedLayers::IsTaken(std::int32_t index) const {
  return result_.tensors[static_cast<std::size_t>(index)].role != TensorRole::kPlain;
}

std::int32_t QuantisedLayers::Find(std::string_view stem, std::string_view suffix) const {
  std::string name;
  name.reserve(stem.size() + suffix.size());
  name.append(stem).append(suffix);
  if (!last_steps_.contains(LastStep(name))) {
    return kNone;
  }
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? kNone : found->second;
}

const FileTensor* QuantisedLayers::FindTensor(std::string_view stem,
                                              std::string_view suffix) const {
  const std::int32_t index = Find(stem, suffix);
  return index == kNone ? nullptr : &Tensor(index);
}

std::optional<std::string> QuantisedLayers::SmallBytes(std::string_view stem,
                                                       std::string_view suffix) const {
  const FileTensor* tensor = FindTensor(stem, suffix);
  return tensor == nullptr ? std::nullopt : TensorBytes(*checkpoint_, *tensor, kMostSmallBytes);
}

std::optional<std::vector<std::int64_t>> QuantisedLayers::SmallIntegers(
    std::string_view stem, std::string_view suffix) const {
  const FileTensor* tensor = FindTensor(stem, suffix);
  if (tensor == nullptr || !tensor->type) {
    return std::nullopt;
  }
  const bool is_wide = tensor->type->name == "int64";
  const std::optional<std::string> bytes = SmallBytes(stem, suffix);
  const std::size_t width = is_wide ? 8 : 4;
  if (!bytes || (!is_wide && tensor->type->name != "int32") || bytes->size() % width != 0) {
    return std::nullopt;
  }
  std::vector<std::int64_t> values;
  for (std::size_t at = 0; at < bytes->size(); at += width) {
    values.push_back(LittleEndian(std::string_view(*bytes).substr(at, width)));
  }
  return values;
}

std::int32_t QuantisedLayers::Add(StoredWeight weight, std::int32_t codes) {
  const FileTensor& tensor = Tensor(codes);
  const Checked parameters = ElementsOf(weight.shape);
  const bool is_negative = std::any_of(weight.shape.begin(), weight.shape.end(),
                                       [](std::int64_t dimension) { return dimension < 0; });
  const std::int64_t bits = OrLargest(Checked(tensor.bytes) * 8);
  if (!parameters.ok() || is_negative || parameters.value() > bits || IsTaken(codes)) {
    Note(weight.scheme + ": the declared shape does not fit the codes, which count as they lie",
         tensor.name);
    return kNone;
  }
  if (result_.weights.empty()) {
    result_.weights.reserve(checkpoint_->tensors.size() / 2);  // codes and scales at least
  }
  const auto index = static_cast<std::int32_t>(result_.weights.size());
  weight.parameters = parameters.value();
  result_.weights.push_back(std::move(weight));
  Take(index, TensorRole::kCodes, codes);
  result_.tensors[static_cast<std::size_t>(codes)].parameters = parameters.value();
  return index;
}

void QuantisedLayers::Attach(std::int32_t weight, TensorRole role, std::string_view stem,
                             std::initializer_list<std::string_view> suffixes) {
  if (weight == kNone) {
    return;
  }
  for (const std::string_view suffix : suffixes) {
    const std::int32_t tensor = Find(stem, suffix);
    if (tensor != kNone && !IsTaken(tensor)) {
      Take(weight, role, tensor);
    }
  }
}

void QuantisedLayers::Take(std::int32_t weight, TensorRole role, std::int32_t tensor) {
  result_.tensors[static_cast<std::size_t>(tensor)] = {.role = role, .weight = weight};
  AddBytes(BytesOf(result_.weights[static_cast<std::size_t>(weight)], role), Tensor(tensor).bytes);
}

void QuantisedLayers::SetRole(std::int32_t tensor, TensorRole role, std::int64_t parameters) {
  TensorMeaning& meaning = result_.tensors[static_cast<std::size_t>(tensor)];
  meaning.role = role;
  meaning.parameters = parameters;
}

void QuantisedLayers::Note(std::string text, std::string_view name) {
  Noted& noted = notes_[std::move(text)];
  if (noted.count == 0) {
    noted.first = name;
  }
  ++noted.count;
}

StoredWeights QuantisedLayers::Finish() && {
  result_.notes = declared_->notes;
  for (const auto& [text, noted] : notes_) {
    result_.notes.push_back(noted.first.empty()
                                ? text
                                : text + ": " + noted.first +
                                      (noted.count == 1
                                           ? std::string()
                                           : " and " + std::to_string(noted.count - 1) + " more"));
  }
  return std::move(result_);
}

std::optional<std::string_view> WithoutSuffix(std::string_view name, std::string_view suffix) {
  if (!name.ends_with(suffix)) {
    return std::nullopt;
  }
  return name.substr(0, name.size() - suffix.size());
}

std::optional<std::int64_t> ExactShare(std::int64_t dimension, std::int64_t numerator,
                                       std::int64_t denominator) {
  const Checked product = Checked(dimension) * numerator;
  if (!product.ok() || denominator <= 0 || product.value() % denominator != 0) {
    return std::nullopt;
  }
  return product.value() / denominator;
}

std::int64_t GroupSize(std::int64_t count, std::int64_t scales, std::int64_t declared) {
  const auto fits = [&](std::int64_t size) { return count / size + (count % size > 0) == scales; };
  if (count < 1 || count > kLargestAmount || scales < 1 || scales > count) {
    return 0;
  }
  if (declared > 0 && fits(declared)) {
    return declared;
  }
  if (scales == 1) {
    return 0;
  }
  if (count % scales == 0) {
    return count / scales;
  }
  std::int64_t size = 1;
  while (size < count && !fits(size)) {
    size *= 2;
  }
  return size < count ? size : 0;
}

DeclaredWeights DeclaredFor(const DeclaredQuantisation& declared, std::string_view layer) {
  DeclaredWeights all = declared.weights.empty() ? DeclaredWeights() : declared.weights.front();
  const DeclaredWeights* one = FindDeclaredLayer(declared, layer);
  if (one == nullptr) {
    return all;
  }
  return {.bits = one->bits != 0 ? one->bits : all.bits,
          .group_size = one->group_size != 0 ? one->group_size : all.group_size,
          .type = one->type.empty() ? all.type : one->type};
}

std::string Evidence(const DeclaredQuantisation& declared, std::string_view proof) {
  return declared.source.empty() ? std::string(proof) : declared.source + ", " + std::string(proof);
}

std::string IntegerFormat(std::string_view kind, std::int64_t bits) {
  return std::string(kind) + std::to_string(bits);
}

}  // namespace fourpiles
