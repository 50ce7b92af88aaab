#include "tensors/quantised_config.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace fourpiles {
namespace {

using Texts = std::vector<std::string>;

std::string FactsText(std::string_view config, std::string_view quantization) {
  const CheckpointConfigs configs = {.config = ReadJson(config, "config.json").value(),
                                     .quantization = ReadJson(quantization, "q.json").value()};
  std::string text;
  for (const auto& [key, value] : QuantisationFactsOf(configs)) {
    text += key + '=' + Describe(value) + ' ';
  }
  return text;
}

TEST(QuantisationFacts, ReadsConfigJson) {
  EXPECT_EQ(FactsText(R"({"expert_dtype": "fp4", "quantization_config": {"quant_method": "fp8",
                          "quant_algo": "MIXED_PRECISION", "ignore": ["a", "re:b.*"],
                          "quantized_layers": {"x": {"quant_algo": "NVFP4"}}}})",
                      "null"),
            "quant_method=the string \"fp8\" quant_algo=the string \"MIXED_PRECISION\" "
            "expert_dtype=the string \"fp4\" quantized_layers=1 exclude=2 ");
}

TEST(QuantisationFacts, ReadsHfQuantConfig) {
  constexpr std::string_view kDocument = R"({"producer": {"name": "modelopt"}, "quantization": {
      "quant_algo": "FP8", "exclude_modules": ["lm_head"]}})";
  constexpr std::string_view kFacts = "quant_algo=the string \"FP8\" exclude=1 ";
  EXPECT_EQ(FactsText("{}", kDocument), kFacts);
  EXPECT_EQ(FactsText(kDocument, "null"), kFacts);
}

TEST(QuantisationFacts, SaysNothingOfPlainModels) {
  EXPECT_EQ(FactsText(R"({"hidden_size": 64, "text_config": {}})", "null"), "");
  EXPECT_EQ(FactsText("[]", "3"), "");
}

TEST(DeclaredQuantisation, LeavesOutWhatIsOfAWrongKind) {
  const CheckpointConfigs configs = {
      .config = ReadJson(R"({"expert_dtype": 4, "quantization_config": {"quant_method": ["gptq"],
                             "bits": "4", "group_size": 1e3, "weight_block_size": [0, "x"],
                             "config_groups": [1], "quantized_layers": 7, "format": {}}})",
                         "config.json")
                    .value()};
  const DeclaredQuantisation declared = DeclaredQuantisationOf(configs);
  EXPECT_EQ(declared.method, "");
  EXPECT_EQ(declared.block_rows, 0);
  EXPECT_EQ(declared.notes,
            (Texts{"config.json: quant_method: expected a short string; left out",
                   "config.json: format: expected a short string; left out",
                   "config.json: bits: expected a whole number from 1 to 16; left out",
                   "config.json: group_size: expected a whole number from 1 to 1048576; left out",
                   "config.json: expert_dtype: expected a short string; left out"}));
}

// ModelOpt declares models of 22,422 quantised layers.
TEST(DeclaredQuantisation, ReadsAMapOfManyLayers) {
  Json::Object layers;
  for (int i = 0; i < 22'422; ++i) {
    layers.emplace_back("model.layers." + std::to_string(i), Json::Object{{"quant_algo", "MXFP8"}});
  }
  const CheckpointConfigs configs = {
      .quantization =
          Json::Object{{"quantization", Json::Object{{"quant_algo", "MIXED_PRECISION"},
                                                     {"quantized_layers", std::move(layers)}}}}};
  const DeclaredQuantisation declared = DeclaredQuantisationOf(configs);
  EXPECT_EQ(declared.method, "modelopt");
  EXPECT_EQ(declared.source, "hf_quant_config.json");
  EXPECT_EQ(declared.layers.size(), 22'422U);
  EXPECT_EQ(FindDeclaredLayer(declared, "model.layers.22421")->type, "MXFP8");
}

TEST(DeclaredQuantisation, TellsFewOfManyFaults) {
  Json::Object layers;
  for (int i = 0; i < 1000; ++i) {
    layers.emplace_back(std::to_string(i), Json::Object{{"quant_algo", 7}});
  }
  const CheckpointConfigs configs = {
      .config = Json::Object{
          {"quantization_config", Json::Object{{"quantized_layers", std::move(layers)}}}}};
  EXPECT_EQ(DeclaredQuantisationOf(configs).notes.size(), 16U);
}

TEST(DeclaredQuantisation, FindsALayerByItselfOrAFewStepsUp) {
  DeclaredQuantisation declared;
  declared.layers["layers.0.ffn.experts"] = {.bits = 4};
  EXPECT_NE(FindDeclaredLayer(declared, "layers.0.ffn.experts"), nullptr);
  EXPECT_NE(FindDeclaredLayer(declared, "layers.0.ffn.experts.17.w1"), nullptr);
  EXPECT_EQ(FindDeclaredLayer(declared, "layers.1.ffn.experts.17.w1"), nullptr);
  EXPECT_EQ(FindDeclaredLayer(declared, "layers.0.ffn.experts.a.b.c.d.e"), nullptr);
}

}  // namespace
}  // namespace fourpiles
