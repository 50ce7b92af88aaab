#include "plan/llamacpp_model.h"

#include <map>
#include <tuple>

#include <fmt/format.h>

#include "base/try.h"
#include "plan/llamacpp.h"

namespace fourpiles {
namespace {

void AddAlike(LlamacppModel& loaded) {
  std::map<std::tuple<std::int64_t, bool, const StoredType*>, AlikeTensors> layers;
  for (std::size_t i = 0; i < loaded.gguf.tensors.size(); ++i) {
    const PlacedTensor& placed = loaded.gguf.tensors[i];
    const std::int64_t layer = placed.tensor.layer;
    AlikeTensors one;  // outside the layers each is placed by its name
    AlikeTensors& sum = layer < 0 ? one : layers[{layer, IsExpert(placed), placed.type}];
    sum.number = i;
    sum.elements = sum.elements + Checked(placed.tensor.ne0) * placed.tensor.rows;
    sum.bytes = sum.bytes + TensorBytes(placed);
    sum.device_bytes =
        sum.device_bytes +
        (loaded.padded ? CudaTensorBytes({placed.type, placed.tensor.ne0, placed.tensor.rows})
                       : TensorBytes(placed));
    if (layer < 0) {
      loaded.alike.push_back(one);
    }
  }
  for (const auto& [key, alike] : layers) {
    loaded.alike.push_back(alike);
  }
}

void AddQueryRows(LlamacppModel& loaded) {
  loaded.queries.resize(static_cast<std::size_t>(loaded.layers));
  for (const PlacedTensor& placed : loaded.gguf.tensors) {
    const GgufTensor& tensor = placed.tensor;
    if (tensor.layer < 0 || tensor.layer >= loaded.layers) {
      continue;
    }
    QueryRows& rows = loaded.queries[static_cast<std::size_t>(tensor.layer)];
    if (tensor.name.ends_with(".attn_q.weight")) {
      rows.alone = tensor.rows;
    } else if (tensor.name.ends_with(".attn_qkv.weight")) {
      rows.fused = tensor.rows;
    }
  }
}

Result<GgufTensors> TensorsOf(const Job& job) {
  const Model& model = job.model;
  if (model.checkpoint && job.serving.weights.as_stored && model.checkpoint->gguf) {
    return TensorsOfFile(*model.checkpoint->tensors);
  }
  if (job.bare_count) {
    return WrongUsage(
        {.where = "--engine",
         .found = "llama.cpp's tensors are not known",
         .expected = "expected a model whose layers are known",
         .hint = job.from_file ? "put its config.json beside the tensors" : "give a model"});
  }
  if (!job.serving.weights.mixture) {
    return WrongUsage({.where = "--weights-format",
                       .found = fmt::format("llama.cpp reads GGUF, and \"{}\" is no type of it",
                                            job.serving.weights.name),
                       .expected = "expected a mixture that llama-quantize makes",
                       .hint = "for example q4_k_m, q8_0 or bf16"});
  }
  return TensorsOfNetwork(model.network, job.serving.weights.mixture->name,
                          {.latent = LatentTensors::kSplit});
}

}  // namespace

Result<LlamacppModel> LlamacppModelOf(const Job& job) {
  const Network& network = job.model.network;
  LlamacppModel loaded = {.network = std::make_shared<const Network>(network),
                          .layers = network.num_hidden_layers.value_or(1)};
  loaded.padded = job.device && (job.device->vendor == "NVIDIA" || job.device->vendor == "AMD");
  TRY(loaded.gguf, TensorsOf(job));
  AddAlike(loaded);
  AddQueryRows(loaded);
  return loaded;
}

}  // namespace fourpiles
