#include "tensors/quantised.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "tensors/quantised_layers.h"

namespace fourpiles {
namespace {

// Every layout keeps some tensor of whole bytes or of fewer bits than 16, so that a checkpoint of
// plain floats needs no look at its names.
bool MayBePacked(const FileTensor& tensor) {
  const TensorKind kind = KindOf(tensor);
  return kind != TensorKind::kPlainFloat && kind != TensorKind::kOther;
}

StoredWeights AllPlain(const Checkpoint& checkpoint, const DeclaredQuantisation& declared) {
  StoredWeights plain;
  plain.tensors.resize(checkpoint.tensors.size());
  std::transform(
      checkpoint.tensors.begin(), checkpoint.tensors.end(), plain.tensors.begin(),
      [](const FileTensor& tensor) { return TensorMeaning{.parameters = tensor.elements}; });
  plain.notes = declared.notes;
  return plain;
}

// HQQ can store its codes viewed as floats.
bool MayBeFloatCodes(const FileTensor& tensor) {
  return KindOf(tensor) == TensorKind::kPlainFloat && tensor.name.ends_with(".W_q");
}

// Those that look at the most telling names first. Returns whether one knew the tensor.
bool AddWeight(QuantisedLayers& layers, std::int32_t index) {
  constexpr std::array kRecognisers = {AddBitsAndBytes, AddOpaque, AddQweight, AddWeightPacked,
                                       AddBlocks,       AddHqq,    AddMlx,     AddScaled};
  return std::any_of(kRecognisers.begin(), kRecognisers.end(),
                     [&](const auto& recogniser) { return recogniser(layers, index); });
}

// Returns whether any layout was recognised.
bool AddWeights(QuantisedLayers& layers) {
  bool any = false;
  for (std::int32_t index = 0; index < layers.TensorCount(); ++index) {
    const FileTensor& tensor = layers.Tensor(index);
    const bool is_power = KindOf(tensor) == TensorKind::kPowerOfTwo;
    if (!layers.IsTaken(index) && !is_power && (MayBePacked(tensor) || MayBeFloatCodes(tensor))) {
      any = AddWeight(layers, index) || any;
    }
  }
  return any;
}

// Tensors that a quantiser leaves beside weights, whose weight may lie in another file or may be
// plain: scales of the key-value cache, of activations, of weights.
bool IsQuantiserState(const FileTensor& tensor) {
  constexpr std::array<std::string_view, 18> kNames = {"weight_scale",   "weight_scale_inv",
                                                       "weight_scale_2", "weight_global_scale",
                                                       "input_scale",    "input_global_scale",
                                                       "input_scale_ub", "output_scale",
                                                       "q_scale",        "k_scale",
                                                       "v_scale",        "kv_scale",
                                                       "prob_scale",     "k_zero_point",
                                                       "v_zero_point",   "qscale_act",
                                                       "_amax",          "qscale_weight"};
  const std::size_t dot = tensor.name.rfind('.');
  const std::string_view last =
      std::string_view(tensor.name).substr(dot == std::string::npos ? 0 : dot + 1);
  return std::find(kNames.begin(), kNames.end(), last) != kNames.end();
}

void SetLooseScales(QuantisedLayers& layers, bool is_quantised) {
  for (std::int32_t index = 0; index < layers.TensorCount(); ++index) {
    const FileTensor& tensor = layers.Tensor(index);
    const bool is_power = KindOf(tensor) == TensorKind::kPowerOfTwo;
    if (!layers.IsTaken(index) && (is_power || (is_quantised && IsQuantiserState(tensor)))) {
      layers.SetRole(index, TensorRole::kScales, 0);
    }
  }
}

}  // namespace

StoredWeights StoredWeightsOf(const Checkpoint& checkpoint) {
  const DeclaredQuantisation declared = DeclaredQuantisationOf(checkpoint.configs);
  const auto& tensors = checkpoint.tensors;
  if (declared.source.empty() && std::none_of(tensors.begin(), tensors.end(), MayBePacked)) {
    return AllPlain(checkpoint, declared);
  }
  QuantisedLayers layers(checkpoint, declared);
  const bool any = AddWeights(layers);
  SetLooseScales(layers, any || !declared.source.empty());
  if (!any && !declared.method.empty() && !tensors.empty()) {
    layers.Note(declared.method + ": declared in " + declared.source +
                    ", but no tensor is packed in a way that is known",
                "");
  }
  return std::move(layers).Finish();
}

}  // namespace fourpiles
