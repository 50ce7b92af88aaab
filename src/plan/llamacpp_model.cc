#include "plan/llamacpp_model.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <tuple>

#include <fmt/format.h>

#include "base/try.h"
#include "plan/cache.h"
#include "plan/llamacpp.h"

namespace fourpiles {
namespace {

// CUDA and HIP buffers do.
bool PadsRows(const Job& job) {
  return job.device && (job.device->vendor == "NVIDIA" || job.device->vendor == "AMD");
}

// Families whose windows llama.cpp does not have: their layers keep the whole context
// (src/llama-model.cpp, load_hparams: no swa_type; "Phi SWA is currently disabled").
constexpr std::string_view kWithoutWindows[] = {"mistral",   "mixtral",   "phi3",
                                                "phimoe",    "qwen2",     "qwen3",
                                                "qwen2_moe", "qwen3_moe", "starcoder2"};

// The caches as this build keeps them.
Network WithLlamacppCaches(Network network, const LlamacppVersion& version) {
  const bool windows =
      std::ranges::find(kWithoutWindows, network.model_type) == std::end(kWithoutWindows);
  for (Cache& cache : network.caches) {
    if (!windows) {
      cache.window = std::nullopt;
    }
    if (!version.latent_cache) {
      cache = FullHeads(cache);
    } else if (version.latent_values && cache.rotary_elements > 0) {
      cache.value_elements_per_token = cache.key_elements_per_token - cache.rotary_elements;
    }
  }
  return network;
}

void AddAlike(LlamacppModel& model) {
  std::map<std::tuple<std::int64_t, bool, const StoredType*>, AlikeTensors> layers;
  for (std::size_t i = 0; i < model.gguf.tensors.size(); ++i) {
    const PlacedTensor& placed = model.gguf.tensors[i];
    const std::int64_t layer = placed.tensor.layer;
    AlikeTensors one;  // outside the layers each is placed by its name
    AlikeTensors& sum = layer < 0 ? one : layers[{layer, IsExpert(placed), placed.type}];
    sum.number = i;
    sum.elements = sum.elements + Checked(placed.tensor.ne0) * placed.tensor.rows;
    sum.bytes = sum.bytes + TensorBytes(placed);
    sum.device_bytes =
        sum.device_bytes +
        (model.padded ? CudaTensorBytes({placed.type, placed.tensor.ne0, placed.tensor.rows})
                      : TensorBytes(placed));
    if (layer < 0) {
      model.alike.push_back(one);
    }
  }
  for (const auto& [key, alike] : layers) {
    model.alike.push_back(alike);
  }
}

void AddQueryRows(LlamacppModel& model) {
  model.queries.resize(static_cast<std::size_t>(model.layers));
  for (const PlacedTensor& placed : model.gguf.tensors) {
    const GgufTensor& tensor = placed.tensor;
    if (tensor.layer < 0 || tensor.layer >= model.layers) {
      continue;
    }
    QueryRows& rows = model.queries[static_cast<std::size_t>(tensor.layer)];
    if (tensor.name.ends_with(".attn_q.weight") || tensor.name.ends_with(".attn_q_b.weight")) {
      rows.alone = tensor.rows;
    } else if (tensor.name.ends_with(".attn_qkv.weight")) {
      rows.fused = tensor.rows;
    } else if (tensor.name.ends_with(".attn_k_b.weight")) {
      rows.latent = tensor.rows;
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
  LlamacppModel model = {.network = std::make_shared<const Network>(
                             WithLlamacppCaches(network, job.serving.version.llamacpp)),
                         .layers = network.num_hidden_layers.value_or(1)};
  model.padded = PadsRows(job);
  TRY(model.gguf, TensorsOf(job));
  AddAlike(model);
  AddQueryRows(model);
  return model;
}

}  // namespace fourpiles
