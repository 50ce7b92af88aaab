#include "plan/run_row.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/ascii.h"
#include "base/try.h"
#include "model/catalogue.h"
#include "model/from_config.h"
#include "plan/device.h"

namespace fourpiles {
namespace {

// A word in a model's name, in lower case, and the model_type that it stands for; the first that
// fits. Tied: the output layer is the embedding.
struct FamilyWord {
  std::string_view word;
  std::string_view model_type;
  bool tied = false;
};
constexpr FamilyWord kFamilies[] = {
    {"deepseek-v2", "deepseek_v2"},
    {"deepseek-coder-v2", "deepseek_v2"},
    {"deepseek", "deepseek_v3"},
    {"kimi-k2", "deepseek_v3"},
    {"gpt-oss", "gpt_oss"},
    {"pythia", "gpt_neox"},
    {"neox", "gpt_neox"},
    {"gemma-3", "gemma3_text", true},
    {"gemma-2", "gemma2", true},
    {"gemma", "gemma", true},
    {"glm-4-", "glm4"},
    {"glm-z1", "glm4"},
    {"phi-3", "phi3"},
    {"phi-4", "phi3"},
    {"phi-2", "phi"},
    {"falcon-h", ""},
    {"falcon", "falcon"},
    {"command-r", "cohere", true},
    {"bge", "bert"},
    {"bert", "bert"},
    {"qwen3.", ""},
    {"qwen3-next", ""},
    {"qwen3", "qwen3"},
    {"qwen2", "qwen2"},
    {"mixtral", "mixtral"},
    {"mistral", "mistral"},
    {"llama-4", ""},
    {"bitnet", ""},
    {"nemotron", ""},
    {"llama", "llama"},
};

// A size of the row, and what a config.json calls it.
struct Size {
  std::string_view row;
  std::string_view config;
};
constexpr Size kSizes[] = {
    {"n_layer", "num_hidden_layers"},
    {"n_embd", "hidden_size"},
    {"n_head", "num_attention_heads"},
    {"n_head_kv", "num_key_value_heads"},
    {"head_dim", "head_dim"},
    {"n_ff", "intermediate_size"},
    {"n_vocab", "vocab_size"},
    {"n_pos", "max_position_embeddings"},
    {"n_swa", "sliding_window"},
    {"kv_lora_rank", "kv_lora_rank"},
    {"q_lora_rank", "q_lora_rank"},
    {"qk_rope", "qk_rope_head_dim"},
    {"qk_nope", "qk_nope_head_dim"},
    {"v_head", "v_head_dim"},
    {"n_dense", "first_k_dense_replace"},
    {"n_expert_used", "num_experts_per_tok"},
};

void Put(Json::Object& config, std::string_view key, Json value) {
  const auto found = std::ranges::find(config, key, &Json::Member::first);
  if (found == config.end()) {
    config.emplace_back(std::string(key), std::move(value));
  } else {
    found->second = std::move(value);
  }
}

// The config of the catalogue's model of that name; of a multimodal one the language model's.
std::optional<Json::Object> CatalogueConfig(std::string_view name) {
  const std::vector<ModelRecord> records = ModelRecords();
  std::vector<Names> names;
  std::ranges::transform(records, std::back_inserter(names), &ModelRecord::names);
  const auto found = FindName(name, names, {"model", "model", ""});
  if (!found) {
    return std::nullopt;
  }
  const Json& config = records[*found].config;
  const Json* text = config.Find("text_config");
  const Json::Object* object = (text == nullptr ? config : *text).AsObject();
  return object == nullptr ? std::nullopt : std::optional(*object);
}

Json::Object FamilyConfig(const FamilyWord& family, const Fields& arch) {
  std::string model_type(family.model_type);
  if (model_type == "qwen3" && arch.Has("n_expert")) {
    model_type = "qwen3_moe";
  }
  Json::Object config;
  Put(config, "model_type", model_type);
  Put(config, "tie_word_embeddings", family.tied);
  if (model_type == "gpt_neox") {
    Put(config, "attention_bias", true);
  }
  if (model_type == "deepseek_v2") {
    Put(config, "n_shared_experts", 2);
  }
  if (model_type == "deepseek_v3") {
    Put(config, "n_shared_experts", 1);
    Put(config, "topk_method", "noaux_tc");
  }
  return config;
}

// Experts have different words in different configs.
void PutExperts(Json::Object& config, const Fields& arch) {
  if (const std::int64_t experts = RowCount(arch, "n_expert"); experts > 0) {
    for (const char* key : {"num_experts", "n_routed_experts", "num_local_experts"}) {
      Put(config, key, experts);
    }
    if (std::ranges::find(config, "num_experts_per_tok", &Json::Member::first) == config.end()) {
      Put(config, "num_experts_per_tok", std::min<std::int64_t>(experts, 8));
    }
  }
  if (const std::int64_t width = RowCount(arch, "n_ff_exp"); width > 0) {
    Put(config, "moe_intermediate_size", width);
    if (!arch.Has("n_ff")) {
      Put(config, "intermediate_size", width);
    }
  }
}

const FamilyWord* FamilyRow(std::string_view model) {
  const std::string lower = LowerCase(model);
  const auto* found = std::ranges::find_if(kFamilies, [&](const FamilyWord& family) {
    return lower.find(family.word) != std::string::npos;
  });
  return found == std::end(kFamilies) || found->model_type.empty() ? nullptr : found;
}

// "Q8_0 (+attn_k_b,v_b)", "IQ4_XS file", "Q2_K_R4": the mixture's own name.
std::string MixtureWord(std::string text) {
  if (text.starts_with("MXFP4")) {
    return "MXFP4_MOE";
  }
  text = text.substr(0, text.find(' '));
  // Rows that lie interleaved have the size of those that do not.
  for (const std::string_view ending : {"_R4", "_R8", "_4_4", "_4_8", "_8_8"}) {
    if (text.size() > ending.size() + 3 && text.ends_with(ending)) {
      return text.substr(0, text.size() - ending.size());
    }
  }
  return text;
}

}  // namespace

std::int64_t RowCount(const Fields& fields, std::string_view key, std::int64_t otherwise) {
  const auto read = fields.OptionalInteger(key, {0, kLargestAmount});
  return read && *read ? **read : otherwise;
}

bool RowSays(const Fields& row, std::string_view key, std::string_view word) {
  return LowerCase(RunText(row, key)).find(LowerCase(word)) != std::string::npos;
}

Result<std::int64_t> RowNeeds(const Fields& fields, std::string_view key) {
  if (!fields.Has(key)) {
    return NotExpressible(fmt::format("no field {}", key));
  }
  return fields.Integer(key, {0, kLargestAmount});
}

Result<Fields> RowArch(const Fields& row) {
  return row.Has("arch") ? row.Object("arch") : NotExpressible("no field arch");
}

bool IsIkLlama(const Fields& row) {
  return RunText(row, "engine") == "ik_llama.cpp";
}

std::string FamilyOfName(std::string_view model) {
  const FamilyWord* family = FamilyRow(model);
  return family == nullptr ? "" : std::string(family->model_type);
}

Result<Json> RowConfig(const Fields& row) {
  const std::string model = RunText(row, "model");
  TRY(const Fields arch, RowArch(row));
  std::optional<Json::Object> config = CatalogueConfig(model);
  if (!config) {
    const FamilyWord* family = FamilyRow(model);
    if (family == nullptr) {
      return NotExpressible(fmt::format("model \"{}\" says no family that is known", model));
    }
    config = FamilyConfig(*family, arch);
  }
  for (const Size& size : kSizes) {
    if (const std::int64_t value = RowCount(arch, size.row); value > 0) {
      Put(*config, size.config, value);
    }
  }
  PutExperts(*config, arch);
  if (RowCount(arch, "n_head") == 0 && FamilyOfName(model) == "bert") {
    Put(*config, "num_attention_heads", 1);  // which changes no tensor
  }
  return Json(*std::move(config));
}

Result<Network> RowNetwork(const Fields& row) {
  TRY(const Json config, RowConfig(row));
  auto network = NetworkFromConfig(config, "arch");
  if (!network) {
    const ErrorText& text = network.error().text;
    return NotExpressible(fmt::format("{}: {}", text.where, text.found));
  }
  return network;
}

Result<GgufTensors> RowTensors(const Fields& row) {
  const std::string words = RunText(row, "dtype_quant");
  if (RowSays(row, "notes", "custom mix")) {
    return NotExpressible("a mix of the author's own");
  }
  const auto mixture = FindMixture(MixtureWord(words), "dtype_quant");
  if (!mixture) {
    return NotExpressible(fmt::format("dtype_quant \"{}\" is no mixture of llama-quantize", words));
  }
  TRY(const Network network, RowNetwork(row));
  GgufOptions options;
  options.latent =
      words.find("k_b") == std::string::npos ? LatentTensors::kWhole : LatentTensors::kBoth;
  // llama.cpp's own table was made with an importance matrix only where one is needed.
  const bool plain =
      RowSays(row, "notes", "without imatrix") || RowSays(row, "source", "tools/quantize/README");
  options.imatrix = mixture->needs_imatrix || !plain;
  const std::string model = LowerCase(RunText(row, "model"));
  if (network.model_type == "llama" && model.find("-3.") != std::string::npos) {
    options.rope_frequencies = 64;
  }
  auto tensors = TensorsOfNetwork(network, mixture->name, options);
  if (!tensors) {
    return NotExpressible(tensors.error().text.found);
  }
  return tensors;
}

std::optional<Bytes> RowDeviceMemory(const Fields& row) {
  std::string words = RunText(row, "device");
  std::ranges::replace(words, ' ', '-');
  for (std::string_view rest = words; !rest.empty();) {
    for (const std::string& name : {std::string(rest), fmt::format("rtx-{}", rest)}) {
      if (const auto device = FindDevice(name)) {
        return device->memory;
      }
    }
    const std::size_t dash = rest.find('-');
    rest = dash == std::string_view::npos ? "" : rest.substr(dash + 1);
  }
  return std::nullopt;
}

bool ExpertsAreOnHost(const Fields& row, const Checked& bytes) {
  for (const std::string_view words :
       {"experts on CPU", "experts on host", "exps=CPU", "cpu-moe"}) {
    if (RowSays(row, "notes", words)) {
      return true;
    }
  }
  const std::optional<Bytes> memory = RowDeviceMemory(row);
  return memory && OrLargest(bytes) > memory->value();
}

Result<Prediction> InUnitOf(const Fields& row, const Checked& bytes) {
  struct Unit {
    std::string_view name;
    double bytes;
  };
  constexpr Unit kUnits[] = {{"bytes", 1},        {"KiB", 1024}, {"MiB", 1048576},
                             {"GiB", 1073741824}, {"MB", 1e6},   {"GB", 1e9}};
  if (!bytes.ok()) {
    return NotExpressible("the sizes pass 2^53 bytes");
  }
  const std::string name = RunText(row, "unit");
  const auto* unit = std::ranges::find(kUnits, name, &Unit::name);
  if (unit == std::end(kUnits)) {
    return NotExpressible(fmt::format("unit \"{}\" is no unit of bytes", name));
  }
  return Prediction{static_cast<double>(bytes.value()) / unit->bytes, name};
}

}  // namespace fourpiles
