// Names: model/gguf_names.h, asked the other way round: every name that a GGUF may have is turned
// into the checkpoint's, and the network's tensors are looked up among those. What the converter
// fuses or splits: ggml-org/llama.cpp, convert_hf_to_gguf.py.

#include "plan/gguf_tensors.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "base/check.h"
#include "base/try.h"
#include "model/gguf_names.h"
#include "plan/llamacpp.h"
#include "plan/rank_network.h"

namespace fourpiles {
namespace {

// Of several that mean one tensor of the checkpoint, the first is taken.
constexpr std::string_view kLayerStems[] = {
    "attn_norm",
    "attn_norm_2",
    "attn_q",
    "attn_k",
    "attn_v",
    "attn_qkv",
    "attn_gate",
    "attn_output",
    "attn_q_norm",
    "attn_k_norm",
    "attn_sinks",
    "attn_output_norm",
    "attn_q_a",
    "attn_q_a_norm",
    "attn_q_b",
    "attn_kv_a_mqa",
    "attn_kv_a_norm",
    "attn_kv_b",
    "ffn_norm",
    "post_attention_norm",
    "post_ffw_norm",
    "post_ffw_norm_1",
    "post_ffw_norm_2",
    "pre_ffw_norm_2",
    "layer_output_norm",
    "ffn_gate_inp",
    "exp_probs_b",
    "ffn_gate_exps",
    "ffn_up_exps",
    "ffn_down_exps",
    "ffn_gate_up_exps",
    "ffn_gate",
    "ffn_up",
    "ffn_down",
    "ffn_gate_shexp",
    "ffn_up_shexp",
    "ffn_down_shexp",
    "ffn_gate_inp_shexp",
    "ffn_latent_down",
    "ffn_latent_up",
    "ssm_in",
    "ssm_ba",
    "ssm_beta",
    "ssm_alpha",
    "ssm_conv1d",
    "ssm_x",
    "ssm_dt",
    "ssm_dt_norm",
    "ssm_b_norm",
    "ssm_c_norm",
    "ssm_a",
    "ssm_d",
    "ssm_norm",
    "ssm_out",
    "ssm_conv1d_q",
    "ssm_conv1d_k",
    "ssm_conv1d_v",
    "ssm_f_a",
    "ssm_f_b",
    "ssm_g_a",
    "ssm_g_b",
    "shortconv.conv",
    "shortconv.in_proj",
    "shortconv.out_proj",
    "indexer.attn_q_b",
    "indexer.attn_k",
    "indexer.k_norm",
    "indexer.proj",
    "layer_output_scale",
    "inp_gate",
    "proj",
    "post_norm",
};
constexpr std::string_view kFrameStems[] = {
    "token_embd",           "position_embd",        "token_types",
    "token_embd_norm",      "output_norm",          "output",
    "per_layer_token_embd", "per_layer_model_proj", "per_layer_proj_norm",
};
constexpr std::string_view kEndings[] = {".weight", ".bias", "", ".scale"};

// The checkpoint's name → llama.cpp's, in layer 0 and outside of layers.
using NameTable = std::map<std::string, std::string, std::less<>>;

NameTable NamesFor(std::string_view model_type) {
  if (model_type == "kimi_k2") {
    model_type = "deepseek_v3";  // whose architecture it has
  }
  NameTable table;
  const auto add = [&](std::string_view prefix, std::string_view stem) {
    for (const std::string_view ending : kEndings) {
      const std::string name = fmt::format("{}{}{}", prefix, stem, ending);
      if (auto checkpoint = CheckpointName(name, model_type)) {
        table.try_emplace(*std::move(checkpoint), name);
      }
    }
  };
  for (const std::string_view stem : kLayerStems) {
    add("blk.0.", stem);
  }
  for (const std::string_view stem : kFrameStems) {
    add("", stem);
  }
  if (model_type == "nemotron-nas") {  // in place of attention: gguf-py/gguf/tensor_mapping.py
    table.try_emplace("model.layers.0.self_attn.linear_attn.weight", "blk.0.attn_output.weight");
  }
  return table;
}

// Which dimension of a matrix its rows run along: the last, but for the layers of GPT-2 and stacked
// experts that are kept (in, out).
bool IsTransposed(const Parameter& parameter, const Network& network) {
  const std::string& type = network.model_type;
  if (type == "gpt2") {
    return parameter.shape.size() == 2 && parameter.name.find("c_") != std::string::npos;
  }
  return parameter.shape.size() == 3 && parameter.routed &&
         (type == "gpt_oss" || type == "qwen3_vl_moe_text" || type == "llama4_text");
}

GgufTensor TensorOf(const Parameter& parameter, const Network& network, std::string name) {
  const std::vector<std::int64_t>& shape = parameter.shape;
  GgufTensor tensor = {.name = std::move(name), .dimensions = static_cast<int>(shape.size())};
  if (parameter.name.find("{}") != std::string::npos) {
    ++tensor.dimensions;  // one tensor for all experts
  }
  if (!shape.empty()) {
    const std::size_t last = shape.size() - 1;
    tensor.ne0 = shape[IsTransposed(parameter, network) ? last - 1 : last];
  }
  tensor.rows = ElementsOf(parameter) / tensor.ne0;
  return tensor;
}

// Gate and up in one tensor, of stacked experts or of a shared part, which a GGUF keeps apart.
bool HoldsGateAndUp(const Parameter& parameter) {
  return parameter.name.find("experts.gate_up_proj") != std::string::npos ||
         parameter.name.ends_with(".input_linear.weight");
}

void AddHalves(std::vector<GgufTensor>& tensors, GgufTensor whole) {
  if (whole.dimensions > 2 || whole.name.ends_with(".weight")) {
    whole.rows /= 2;
  } else {
    whole.ne0 /= 2;  // biases
  }
  GgufTensor up = whole;
  constexpr std::string_view kGate = "ffn_gate";
  const std::size_t place = up.name.find(kGate);
  CHECK(place != std::string::npos);
  up.name.replace(place, kGate.size(), "ffn_up");
  tensors.push_back(std::move(whole));
  tensors.push_back(std::move(up));
}

// kv_b_proj: of every head so many rows of keys, then so many of values, each of the latent's
// width. k_b is stored on its side: of every head kv_lora_rank rows of qk_nope_head_dim.
struct LatentWidths {
  std::int64_t heads = 1;
  std::int64_t nope = 1;
  std::int64_t value = 1;
};

void AddLatent(std::vector<GgufTensor>& tensors, const GgufTensor& whole, const LatentWidths& w,
               LatentTensors how) {
  if (how != LatentTensors::kSplit) {
    tensors.push_back(whole);
  }
  if (how != LatentTensors::kWhole) {
    GgufTensor keys = whole;
    keys.name = "blk.0.attn_k_b.weight";
    keys.ne0 = w.nope;
    keys.rows = w.heads * whole.ne0;
    keys.dimensions = 3;
    GgufTensor values = whole;
    values.name = "blk.0.attn_v_b.weight";
    values.rows = w.heads * w.value;
    values.dimensions = 3;
    tensors.push_back(std::move(keys));
    tensors.push_back(std::move(values));
  }
}

// Rows of a weight of the block, by the end of its name: its outputs.
std::optional<std::int64_t> Outputs(const Block& block, std::string_view ending) {
  const auto found = std::ranges::find_if(
      block.parameters, [&](const Parameter& p) { return p.name.ends_with(ending); });
  return found == block.parameters.end() || found->shape.empty()
             ? std::nullopt
             : std::optional(found->shape.front());
}

std::optional<std::int64_t> Inputs(const Block& block, std::string_view ending) {
  const auto found = std::ranges::find_if(
      block.parameters, [&](const Parameter& p) { return p.name.ends_with(ending); });
  return found == block.parameters.end() || found->shape.empty()
             ? std::nullopt
             : std::optional(found->shape.back());
}

// kv_b has heads × (nope + v) rows, o_proj heads × v inputs, q_b heads × (nope + rope) outputs.
LatentWidths WidthsOf(const Block& block) {
  const std::int64_t kv = Outputs(block, "kv_b_proj.weight").value_or(0);
  const std::int64_t values = Inputs(block, "o_proj.weight").value_or(0);
  const std::int64_t keys = kv - values;
  const std::int64_t queries =
      Outputs(block, "q_b_proj.weight").value_or(Outputs(block, "q_proj.weight").value_or(keys));
  const std::int64_t rope = Outputs(block, "kv_a_proj_with_mqa.weight").value_or(0) -
                            Inputs(block, "kv_b_proj.weight").value_or(0);
  const std::int64_t heads = rope > 0 ? std::max<std::int64_t>(1, (queries - keys) / rope) : 1;
  return {.heads = heads, .nope = keys / heads, .value = values / heads};
}

// The language model of a multimodal checkpoint has its names inside "language_model"; a GGUF keeps
// it alone.
std::string WithoutNest(std::string name) {
  constexpr std::string_view kNest = "language_model.";
  const std::size_t place = name.find(kNest);
  if (place == 0 || (place != std::string::npos && name[place - 1] == '.')) {
    name.erase(place, kNest.size());
  }
  return name;
}

bool IsDropped(std::string_view name) {
  return name.find("pooler.") != std::string_view::npos;  // BERT's, which only classifiers need
}

class GgufConversion {
 public:
  GgufConversion(const Network& network, const GgufOptions& options)
      : network_(network), options_(options), names_(NamesFor(network.model_type)) {}

  Result<std::vector<GgufTensor>> Tensors() const {
    std::vector<GgufTensor> all;
    for (const Block& block : network_.blocks) {
      TRY(const std::vector<GgufTensor> tensors, OfBlock(block));
      all.reserve(all.size() + static_cast<std::size_t>(block.repeat) * tensors.size());
      for (std::int64_t i = 0; i < block.repeat; ++i) {
        for (GgufTensor tensor : tensors) {
          tensor.layer = -1;
          if (IsNumbered(block)) {
            tensor.layer = block.first + i;
            tensor.name.replace(0, 6, fmt::format("blk.{}.", tensor.layer));
          }
          all.push_back(std::move(tensor));
        }
      }
    }
    if (options_.rope_frequencies > 0) {
      all.push_back({.name = "rope_freqs.weight", .ne0 = options_.rope_frequencies, .layer = -1});
    }
    return all;
  }

 private:
  // Of the first of its layers.
  Result<std::vector<GgufTensor>> OfBlock(const Block& block) const {
    std::vector<GgufTensor> tensors;
    for (const Parameter& parameter : block.parameters) {
      const std::string prefix = block.name.empty() ? "" : block.name + ".";
      const std::string name =
          WithoutNest((IsNumbered(block) ? WithNumber(prefix, 0) : prefix) + parameter.name);
      const auto found = names_.find(name);
      if (found == names_.end()) {
        if (IsDropped(name)) {
          continue;
        }
        return BadInput({.where = std::string(network_.model_type),
                         .found = fmt::format("llama.cpp's name of \"{}\" is not known", name),
                         .expected = "expected tensors that its converter names",
                         .hint = "give the GGUF itself, or another --engine"});
      }
      GgufTensor tensor = TensorOf(parameter, network_, found->second);
      if (tensor.name.find("attn_kv_b") != std::string::npos) {
        AddLatent(tensors, tensor, WidthsOf(block), options_.latent);
      } else if (HoldsGateAndUp(parameter)) {
        AddHalves(tensors, std::move(tensor));
      } else {
        tensors.push_back(std::move(tensor));
      }
    }
    return tensors;
  }

  const Network& network_;
  const GgufOptions& options_;
  NameTable names_;
};

const GgufTensor* Find(const std::vector<GgufTensor>& tensors, std::string_view ending) {
  const auto found = std::ranges::find_if(
      tensors, [&](const GgufTensor& tensor) { return tensor.name.ends_with(ending); });
  return found == tensors.end() ? nullptr : &*found;
}

// llama_model::load_hparams: 80 layers are a 70B, in "llama" unless every head has keys of its own.
MixtureModel ModelOf(const Network& network, const std::vector<GgufTensor>& tensors) {
  MixtureModel model = {.layers = network.num_hidden_layers.value_or(1),
                        .experts = ExpertsOf(network),
                        .falcon = network.model_type == "falcon"};
  const GgufTensor* queries = Find(tensors, ".attn_q.weight");
  const GgufTensor* values = Find(tensors, ".attn_v.weight");
  if (queries != nullptr && values != nullptr && values->rows > 0) {
    model.queries_per_value = queries->rows / values->rows;
  }
  const bool llama = network.model_type == "llama" && model.queries_per_value > 1;
  model.size_70b = model.layers == 80 && (llama || network.model_type == "qwen2");
  return model;
}

const PlacedTensor* Embedding(const GgufTensors& gguf) {
  const auto found = std::ranges::find_if(gguf.tensors, [](const PlacedTensor& placed) {
    return placed.tensor.name == "token_embd.weight";
  });
  return found == gguf.tensors.end() ? nullptr : &*found;
}

}  // namespace

Result<GgufTensors> TensorsOfNetwork(const Network& network, std::string_view mixture,
                                     const GgufOptions& options) {
  TRY(const Mixture found, FindMixture(mixture, "mixture"));
  TRY(std::vector<GgufTensor> tensors, GgufConversion(network, options).Tensors());
  const std::vector<const StoredType*> types =
      MixtureTypes(found, options.imatrix, ModelOf(network, tensors), tensors);
  GgufTensors gguf;
  gguf.tied = std::ranges::none_of(
      tensors, [](const GgufTensor& tensor) { return tensor.name == "output.weight"; });
  gguf.tensors.reserve(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    gguf.tensors.push_back({std::move(tensors[i]), types[i]});
  }
  return gguf;
}

bool IsExpert(const PlacedTensor& placed) {
  return placed.tensor.name.find("_exps.") != std::string::npos;
}

Checked TensorBytes(const PlacedTensor& placed) {
  return StorageBytes(placed.tensor.ne0, *placed.type) * placed.tensor.rows;
}

Checked TensorBytes(const GgufTensors& gguf) {
  Checked bytes = 0;
  for (const PlacedTensor& placed : gguf.tensors) {
    bytes = bytes + TensorBytes(placed);
  }
  return bytes;
}

Checked TensorElements(const GgufTensors& gguf) {
  Checked elements = 0;
  for (const PlacedTensor& placed : gguf.tensors) {
    elements = elements + Checked(placed.tensor.ne0) * placed.tensor.rows;
  }
  return elements;
}

std::optional<std::int64_t> DeviceOfLayer(std::int64_t layer, std::int64_t layers,
                                          const GpuPlacement& placement) {
  const std::int64_t all = placement.output_last ? layers : layers + 1;
  const std::int64_t first = std::max<std::int64_t>(0, all - placement.gpu_layers);
  const std::int64_t count = std::min(placement.gpu_layers, layers + 1);
  if (layer < first || layer >= first + count) {
    return std::nullopt;
  }
  return (layer - first) * placement.devices / count;
}

TensorPlaces PlacesOf(const GgufTensors& gguf, const PlacedTensor& placed, std::int64_t layers,
                      const GpuPlacement& placement) {
  const std::string& name = placed.tensor.name;
  std::optional<std::int64_t> device;
  if (placed.tensor.layer >= 0) {
    const bool stays = placement.experts_on_host && IsExpert(placed);
    device = stays ? std::nullopt : DeviceOfLayer(placed.tensor.layer, layers, placement);
  } else if (name.starts_with("output") || name == "rope_freqs.weight") {
    device = DeviceOfLayer(layers, layers, placement);
  } else if (name == "token_embd.weight" && gguf.tied) {
    return {.host = true, .device = DeviceOfLayer(layers, layers, placement)};
  }
  return {.host = !device.has_value(), .device = device};
}

Checked HostTensorBytes(const GgufTensors& gguf, std::int64_t layers,
                        const GpuPlacement& placement) {
  Checked bytes = 0;
  for (const PlacedTensor& placed : gguf.tensors) {
    bytes = PlacesOf(gguf, placed, layers, placement).host ? bytes + TensorBytes(placed) : bytes;
  }
  return bytes;
}

Checked DeviceTensorBytes(const GgufTensors& gguf, std::int64_t layers,
                          const GpuPlacement& placement) {
  Checked bytes = 0;
  for (const PlacedTensor& placed : gguf.tensors) {
    if (PlacesOf(gguf, placed, layers, placement).device) {
      bytes = bytes + CudaTensorBytes({placed.type, placed.tensor.ne0, placed.tensor.rows});
    }
  }
  return bytes;
}

GgufTensors TensorsOfFile(const std::vector<FileTensor>& tensors) {
  static const StoredType* const byte = FindStoredType("int8");
  GgufTensors gguf;
  gguf.tied = std::ranges::none_of(
      tensors, [](const FileTensor& tensor) { return tensor.name == "output.weight"; });
  for (const FileTensor& tensor : tensors) {
    const bool known = tensor.type != nullptr && !tensor.shape.empty() && tensor.shape.back() > 0;
    const std::int64_t ne0 = known ? tensor.shape.back() : std::max<std::int64_t>(1, tensor.bytes);
    std::int64_t layer = -1;
    if (constexpr std::string_view kLayer = "blk."; tensor.name.starts_with(kLayer)) {
      const char* const begin = tensor.name.data() + kLayer.size();
      std::from_chars(begin, tensor.name.data() + tensor.name.size(), layer);
    }
    gguf.tensors.push_back({.tensor = {.name = tensor.name,
                                       .ne0 = ne0,
                                       .rows = known ? tensor.elements / ne0 : 1,
                                       .dimensions = static_cast<int>(tensor.shape.size()),
                                       .layer = layer},
                            .type = known ? tensor.type : byte});
  }
  return gguf;
}

Checked EmbeddingBytes(const GgufTensors& gguf) {
  const PlacedTensor* embedding = Embedding(gguf);
  return embedding == nullptr ? Checked(0) : TensorBytes(*embedding);
}

Checked LargestExpertBytes(const GgufTensors& gguf) {
  std::int64_t largest = 0;
  for (const PlacedTensor& placed : gguf.tensors) {
    if (IsExpert(placed)) {
      largest = std::max(largest, OrLargest(TensorBytes(placed)));
    }
  }
  return largest;
}

}  // namespace fourpiles
