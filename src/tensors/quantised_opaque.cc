// Layouts that are known by the names of their tensors only: code books, trellises, sparse masks.
// Their tensors count as they lie. Names: transformers, src/transformers/integrations/{aqlm,vptq,
// spqr,higgs,fp_quant}.py; Cornell-RelaxML/quip-sharp, lib/linear; turboderp/exllamav2 and
// exllamav3, ext.py; IST-DASLab/marlin; pytorch/ao; compressed-tensors, compressors.

#include <array>

#include "tensors/quantised_layers.h"

namespace fourpiles {
namespace {

struct OpaqueLayout {
  std::string_view suffix;     // of the codes
  std::string_view neighbour;  // another tensor that the layer must have; "": any
  std::string_view scheme;
};

constexpr std::array<OpaqueLayout, 16> kLayouts = {{
    {".codes", ".codebooks", "aqlm"},
    {".indices", ".centroids.weight", "vptq"},
    {".dense_weights", "", "spqr"},
    {".Qidxs", "", "quip#"},
    {".q_weight", ".q_scale", "exl2"},
    {".trellis", "", "exl3"},
    {".weight", ".tables2", "higgs"},
    {".weight", ".tables", "higgs"},
    {".qweight", ".forward_hadamard_matrix", "fp_quant"},
    {".qweight", ".lookup_table", "squeezellm"},
    {".weight_qdata", "", "torchao"},
    {"._weight_qdata", "", "torchao"},
    {"._data._data", "", "quanto"},
    {".weight_packed", ".scale_packed", "marlin-24"},
    {".compressed", ".bitmask", "sparse-bitmask"},
    {".B", ".s", "marlin"},
}};

bool Knows(const QuantisedLayers& layers, const OpaqueLayout& layout, std::string_view name) {
  const auto stem = WithoutSuffix(name, layout.suffix);
  return stem && (layout.neighbour.empty() || layers.Find(*stem, layout.neighbour) != kNone);
}

}  // namespace

bool AddOpaque(QuantisedLayers& layers, std::int32_t codes) {
  const FileTensor& tensor = layers.Tensor(codes);
  for (const OpaqueLayout& layout : kLayouts) {
    if (Knows(layers, layout, tensor.name)) {
      layers.Note(
          std::string(layout.scheme) + ": packed, the logical number of parameters is not known",
          tensor.name);
      layers.SetRole(codes, TensorRole::kCodes, tensor.elements);
      return true;
    }
  }
  return false;
}

}  // namespace fourpiles
