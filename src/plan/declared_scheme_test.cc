#include "plan/declared_scheme.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "plan/solve.h"

namespace fourpiles {
namespace {

std::optional<DeclaredScheme> SchemeOf(std::string_view quantisation, std::int64_t layers = 2) {
  const Json config =
      Json::Object{{"quantization_config", ReadJson(quantisation, "quantization_config").value()}};
  return SchemeDeclaredBy(DeclaredQuantisationOf({.config = config}),
                          FindFormat("bfloat16").value(), layers);
}

// The config.json files that AutoGPTQ, AutoAWQ, bitsandbytes, compressed-tensors and ModelOpt
// write.
TEST(DeclaredScheme, EachMethodIsTheFormatThatWouldBeTyped) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {R"({"quant_method": "fp8", "weight_block_size": [128, 128]})", "fp8-block"},
      {R"({"quant_method": "fp8", "activation_scheme": "static"})", "fp8"},
      {R"({"quant_method": "gptq", "bits": 8, "group_size": 32, "desc_act": true})", "gptq:8:32"},
      {R"({"quant_method": "gptq", "bits": 4, "group_size": -1})", "gptq:4:1048576"},
      {R"({"quant_method": "awq", "bits": 4, "group_size": 64, "version": "gemm"})", "awq:4:64"},
      {R"({"quant_method": "bitsandbytes", "load_in_4bit": true,
           "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": true})",
       "nf4-double"},
      {R"({"quant_method": "bitsandbytes", "load_in_4bit": true})", "nf4"},
      {R"({"quant_method": "bitsandbytes", "load_in_8bit": true})", "bnb-int8"},
      {R"({"quant_method": "mxfp4"})", "mxfp4"},
      {R"({"quant_method": "compressed-tensors", "format": "float-quantized", "config_groups":
           {"group_0": {"weights": {"num_bits": 8, "type": "float", "strategy": "channel"}}}})",
       "fp8-channel"},
      {R"({"quant_method": "compressed-tensors", "format": "int-quantized", "config_groups":
           {"group_0": {"weights": {"num_bits": 8, "type": "int"}}}})",
       "int8"},
      {R"({"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups":
           {"group_0": {"weights": {"num_bits": 4, "type": "int", "group_size": 128}}}})",
       "packed:4:128"},
      {R"({"quant_method": "modelopt", "quant_algo": "NVFP4"})", "nvfp4"},
      {R"({"quant_method": "aqlm"})", ""},
  };
  for (const auto& [config, name] : cases) {
    const std::optional<DeclaredScheme> scheme = SchemeOf(config);
    EXPECT_EQ(scheme ? scheme->name : "", name) << config;
  }
}

TEST(DeclaredScheme, ModulesThatAreLeftOutStayPlain) {
  using Names = std::vector<std::string>;
  const std::pair<std::string_view, Names> cases[] = {
      {R"(["model.layers.*.self_attn", "lm_head"])", {"lm_head", "self_attn"}},
      {R"(["re:.*mlp.gate$", "re:.*\\.self_attn\\..*"])", {"mlp.gate", "self_attn"}},
      {R"(["model.layers.0.mlp.up_proj", "model.layers.1.mlp.up_proj",
           "model.layers.0.mlp.down_proj"])",
       {"mlp.up_proj"}},  // down_proj in one of two layers
      {R"(["re:.*(gate|up)_proj"])", {}},
  };
  for (const auto& [ignored, modules] : cases) {
    const auto scheme = SchemeOf(
        fmt::format(R"({{"quant_method": "fp8", "modules_to_not_convert": {}}})", ignored));
    EXPECT_EQ(scheme->scheme.plain_modules, modules) << ignored;
  }
}

std::int64_t WeightsOf(const std::string& model) {
  const Job job = MakeJob(JobKind::kServe, model, {}).value();
  return BudgetOf(job)->piles.at(Pile::kWeights).value();
}

// metadata.total_size of openai/gpt-oss-20b and -120b, model.safetensors.index.json.
TEST(DeclaredScheme, GptOssIsServedAsItsFilesAre) {
  EXPECT_EQ(WeightsOf("gpt-oss-20b"), 13'761'264'768);
  EXPECT_EQ(WeightsOf("gpt-oss-120b"), 65'248'815'744);
}

// Of 671,026,419,200 parameters 1,853,358,080 are embeddings and the output layer, 106,430,464 and
// 14,848 routers and their biases, 1,006,592 norms: two bytes each. The other 669,065,609,216 are a
// byte each, and four for each 128 × 128: 40,836,524 scales, and 61 × 56 ÷ 2 more, as 576 rows are
// 4.5 × 128. In the files the biases are float32, two bytes more each.
TEST(DeclaredScheme, DeepSeekV3IsServedInBlocksOfFloat8) {
  constexpr std::int64_t kPlain = 1'853'358'080 + 106'430'464 + 14'848 + 1'006'592;
  constexpr std::int64_t kScales = 40'836'524 + 61 * 28;
  EXPECT_EQ(WeightsOf("deepseek-v3"), 669'065'609'216 + 2 * kPlain + 4 * kScales);
}

TEST(DeclaredScheme, ATypedFormatGoesBefore) {
  const Job job =
      MakeJob(JobKind::kServe, "gpt-oss-20b", TypedSettings({{"weights-format", "bfloat16"}}))
          .value();
  EXPECT_EQ(job.serving.weights.name, "bfloat16");
  EXPECT_EQ(BudgetOf(job)->piles.at(Pile::kWeights), Bytes(std::int64_t{20914757184} * 2));
}

}  // namespace
}  // namespace fourpiles
