#include "model/from_config.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/try.h"
#include "model/architectures.h"

namespace fourpiles {
namespace {

struct Architecture {
  std::string_view model_type;
  Network (*build)(Record& config);
};

// Sorted by name.
constexpr Architecture kArchitectures[] = {
    {"bamba", BuildBamba},
    {"bert", BuildBert},
    {"bloom", BuildBloom},
    {"cohere", BuildCohere},
    {"cohere2", BuildCohere2},
    {"deepseek_v2", BuildDeepseekV2},
    {"deepseek_v3", BuildDeepseekV3},
    {"deepseek_v32", BuildDeepseekV3},
    {"ernie4_5", BuildErnie45},
    {"exaone4", BuildExaone4},
    {"falcon", BuildFalcon},
    {"falcon_h1", BuildFalconH1},
    {"falcon_mamba", BuildMamba},
    {"gemma", BuildGemma},
    {"gemma2", BuildGemma2},
    {"gemma3_text", BuildGemma3},
    {"gemma4_text", BuildGemma4},
    {"glm4", BuildGlm4},
    {"glm_moe_dsa", BuildDeepseekV3},
    {"gpt2", BuildGpt2},
    {"gpt_bigcode", BuildGptBigCode},
    {"gpt_neox", BuildGptNeox},
    {"gpt_oss", BuildGptOss},
    {"gptj", BuildGptJ},
    {"granite", BuildGranite},
    {"granitemoe", BuildGraniteMoe},
    {"granitemoehybrid", BuildGraniteMoeHybrid},
    {"granitemoeshared", BuildGraniteMoe},
    {"hunyuan_v1_dense", BuildHunyuanDense},
    {"jamba", BuildJamba},
    {"kimi_k2", BuildDeepseekV3},
    {"kimi_linear", BuildKimiLinear},
    {"lfm2", BuildLfm2},
    {"litgpt", BuildLitGpt},
    {"llama", BuildLlama},
    {"llama4_text", BuildLlama4},
    {"mamba", BuildMamba},
    {"mamba2", BuildMamba2},
    {"megatron", BuildMegatron},
    {"mimo_v2_flash", BuildMimoV2},
    {"minimax_m2", BuildMinimaxM2},
    {"ministral3", BuildMistral},
    {"mistral", BuildMistral},
    {"mixtral", BuildMixtral},
    {"mllama", BuildMllama},
    {"mllama_text_model", BuildMllama},
    {"nemotron", BuildNemotron},
    {"nemotron-nas", BuildNemotronNas},
    {"nemotron_h", BuildNemotronH},
    {"olmo2", BuildOlmo2},
    {"olmo3", BuildOlmo3},
    {"opt", BuildOpt},
    {"phi", BuildPhi},
    {"phi3", BuildPhi3},
    {"qwen", BuildQwen},
    {"qwen2", BuildQwen2},
    {"qwen2_moe", BuildQwen2Moe},
    {"qwen3", BuildQwen3},
    {"qwen3_5_moe_text", BuildQwen35Moe},
    {"qwen3_5_text", BuildQwen35},
    {"qwen3_moe", BuildQwen3Moe},
    {"qwen3_next", BuildQwen3Next},
    {"qwen3_vl_moe_text", BuildQwen3VlMoe},
    {"qwen3_vl_text", BuildQwen3},
    {"seed_oss", BuildSeedOss},
    {"smollm3", BuildSmolLm3},
    {"stablelm", BuildStableLm},
    {"starcoder2", BuildStarcoder2},
    {"vit", BuildVit},
};

// Multimodal models whose checkpoint keeps the language model inside "model", not beside it.
constexpr std::string_view kInsideModel[] = {"gemma4", "qwen3_5", "qwen3_5_moe", "qwen3_vl",
                                             "qwen3_vl_moe"};

bool IsOfVision(const Block& block) {
  return block.name.starts_with("vision_model") || block.name == "multi_modal_projector";
}

// "model.norm" becomes "model.language_model.norm" or "language_model.model.norm".
void NestNames(Network& network, std::string_view outer_type) {
  const bool inside = std::find(std::begin(kInsideModel), std::end(kInsideModel), outer_type) !=
                      std::end(kInsideModel);
  constexpr std::string_view kModel = "model.";
  for (Block& block : network.blocks) {
    if (IsOfVision(block)) {
      continue;
    }
    if (!inside) {
      block.name = "language_model." + block.name;
    } else if (block.name.starts_with(kModel)) {
      block.name.insert(kModel.size(), "language_model.");
    }
  }
}

tl::unexpected<Error> UnknownModelType(std::string where, std::string_view model_type) {
  const std::vector<std::string_view> known = KnownModelTypes();
  return BadInput({.where = std::move(where),
                   .found = fmt::format("unknown architecture \"{}\"", model_type),
                   .expected = "expected one of those known here",
                   .hint = fmt::format("known: {}", fmt::join(known, ", "))});
}

Result<Network> Build(const Json& config, std::string_view where) {
  TRY(const Fields fields, Fields::Of(config, std::string(where)));
  TRY(const std::string_view model_type, fields.Text("model_type"));
  const auto* architecture =
      std::find_if(std::begin(kArchitectures), std::end(kArchitectures),
                   [model_type](const Architecture& row) { return row.model_type == model_type; });
  if (architecture == std::end(kArchitectures)) {
    return UnknownModelType(fields.Where("model_type"), model_type);
  }
  Record record(fields);
  Network network = architecture->build(record);
  network.model_type = model_type;
  for (const std::string_view key : {"max_position_embeddings", "n_positions"}) {
    if (record.Has(key)) {
      network.max_position_embeddings = record.Count(key);
    }
  }
  for (const std::string_view key : {"torch_dtype", "dtype"}) {
    if (record.Has(key)) {
      network.stored_format = record.Format(key);
    }
  }
  network.quantization =
      record.MemberText("quantization_config", "quant_method", "unknown method").value_or("");
  TRY_VOID(record.Finish());
  TRY_VOID(CheckNetwork(network, where));
  return network;
}

// What the outer object of a multimodal config, which has a model_type, says for the language model
// too.
Json WithOuterFields(const Json& text_config, const Json& outer) {
  Json::Object merged = *text_config.AsObject();
  for (const std::string_view key :
       {"tie_word_embeddings", "torch_dtype", "dtype", "quantization_config", "vision_config"}) {
    const Json* value = outer.Find(key);
    if (value == nullptr || value->IsNull()) {
      continue;
    }
    std::erase_if(merged, [key](const Json::Member& member) { return member.first == key; });
    merged.emplace_back(key, *value);
  }
  if (text_config.Find("model_type") == nullptr) {
    merged.emplace_back("model_type", *outer.Find("model_type"));
  }
  return merged;
}

}  // namespace

std::vector<std::string_view> KnownModelTypes() {
  std::vector<std::string_view> known;
  for (const Architecture& row : kArchitectures) {
    known.push_back(row.model_type);
  }
  return known;
}

Result<Network> NetworkFromConfig(const Json& config, std::string_view where) {
  const Json* text_config = config.Find("text_config");
  if (text_config == nullptr || text_config->AsObject() == nullptr) {
    return Build(config, where);
  }
  TRY(const Fields outer, Fields::Of(config, std::string(where)));
  TRY(const std::string_view outer_type, outer.Text("model_type"));
  TRY(Network network,
      Build(WithOuterFields(*text_config, config), fmt::format("{}: text_config", where)));
  NestNames(network, outer_type);
  if (std::ranges::none_of(network.blocks, IsOfVision)) {
    network.left_out.insert(network.left_out.begin(), "all but the language model");
  }
  return network;
}

}  // namespace fourpiles
