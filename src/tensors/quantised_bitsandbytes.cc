// bitsandbytes, 4 bits: two values a byte in a flat tensor, and the true shape in JSON that is
// stored as the bytes of a tensor of its own (bitsandbytes/functional.py, QuantState.as_dict):
//
//   weight [n/2, 1], of uint8 or of any type that the bytes were viewed as
//   weight.absmax F32, or U8 with weight.nested_absmax and weight.nested_quant_map
//   weight.quant_map F32 [16]
//   weight.quant_state.bitsandbytes__nf4 U8: {"quant_type": "nf4", "blocksize": 64, "shape": […],
//   …}
//
// Its 8 bits lie one value a byte: quantised_scaled.cc.

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "base/json.h"
#include "tensors/quantised_layers.h"

namespace fourpiles {
namespace {

constexpr std::string_view kState = ".quant_state.bitsandbytes__";

struct QuantState {
  std::vector<std::int64_t> shape = {};  // empty: not known
  std::int64_t block = 0;
};

std::vector<std::int64_t> ReadShape(const Json* json) {
  const Json::Array* dimensions = json == nullptr ? nullptr : json->AsArray();
  if (dimensions == nullptr || dimensions->size() > kMostDimensions) {
    return {};
  }
  std::vector<std::int64_t> shape;
  for (const Json& dimension : *dimensions) {
    if (dimension.AsInteger() == nullptr || *dimension.AsInteger() < 0) {
      return {};
    }
    shape.push_back(*dimension.AsInteger());
  }
  return shape;
}

QuantState ReadState(const QuantisedLayers& layers, const std::string& name) {
  const std::optional<std::string> text = layers.SmallBytes(name, "");
  const Result<Json> json = ReadJson(text.value_or(""), name, {.bytes = 65'536, .depth = 8});
  if (!json) {
    return {};
  }
  const Json* block = json->Find("blocksize");
  const bool has_block = block != nullptr && block->AsInteger() != nullptr;
  return {.shape = ReadShape(json->Find("shape")),
          .block = has_block ? std::max<std::int64_t>(*block->AsInteger(), 0) : 0};
}

// Whether so many values of four bits are so many bytes.
bool Fills(const std::vector<std::int64_t>& shape, std::int64_t bytes) {
  const Checked needed = DivideRoundingUp(ElementsOf(shape), 2);
  return !shape.empty() && needed.ok() && needed.value() == bytes;
}

}  // namespace

bool AddBitsAndBytes(QuantisedLayers& layers, std::int32_t state) {
  const std::string& name = layers.Tensor(state).name;
  const std::size_t at = name.rfind(kState);
  if (at == std::string::npos) {
    return false;
  }
  const std::string_view weight_name = std::string_view(name).substr(0, at);
  const std::int32_t codes = layers.Find(weight_name, "");
  if (codes == kNone || layers.IsTaken(codes)) {
    layers.SetRole(state, TensorRole::kOther, 0);
    return true;
  }
  QuantState read = ReadState(layers, name);
  const std::int64_t bytes = layers.Tensor(codes).bytes;
  const bool fits = Fills(read.shape, bytes);
  if (!fits) {
    layers.Note("bitsandbytes: quant_state has no shape that fits; counted as two values a byte",
                weight_name);
    read.shape = {OrLargest(Checked(bytes) * 2)};
  }
  const std::int32_t weight =
      layers.Add({.name = std::string(weight_name),
                  .scheme = "bitsandbytes",
                  .format = name.substr(at + kState.size()),
                  .group_size = read.block,
                  .shape = std::move(read.shape),
                  .evidence = Evidence(layers.Declared(), fits ? "quant_state" : "names")},
                 codes);
  layers.Attach(weight, TensorRole::kScales, weight_name, {".absmax", ".nested_absmax"});
  layers.Attach(weight, TensorRole::kOther, weight_name, {".quant_map", ".nested_quant_map"});
  layers.Attach(weight, TensorRole::kOther, name, {""});
  return true;
}

}  // namespace fourpiles
