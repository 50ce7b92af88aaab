#include "plan/gguf_mixture.h"

#include <string>

#include <gtest/gtest.h>

#include "model/catalogue.h"
#include "plan/gguf_tensors.h"

namespace fourpiles {
namespace {

Network NetworkOf(std::string_view id) {
  auto model = FindModel(id);
  EXPECT_TRUE(model) << id;
  return model ? model->network : Network{};
}

double BitsPerWeight(const GgufTensors& gguf) {
  return static_cast<double>(TensorBytes(gguf).value()) * 8 /
         static_cast<double>(TensorElements(gguf).value());
}

// Llama-3.1-8B in ggml-org/llama.cpp, tools/quantize/README.md; the importance matrix was given
// where llama-quantize asks for one.
TEST(Mixtures, HaveTheBitsPerWeightOfLlamaCppsTable) {
  struct Row {
    const char* mixture;
    double bits;
  };
  constexpr Row kTable[] = {
      {"IQ1_S", 2.0042},  {"IQ1_M", 2.1460},  {"IQ2_XXS", 2.3824}, {"IQ2_XS", 2.5882},
      {"IQ2_S", 2.7403},  {"IQ2_M", 2.9294},  {"IQ3_XXS", 3.2548}, {"IQ3_XS", 3.4977},
      {"IQ3_S", 3.6606},  {"IQ3_M", 3.7628},  {"IQ4_XS", 4.4597},  {"IQ4_NL", 4.6818},
      {"Q2_K_S", 2.9697}, {"Q2_K", 3.1593},   {"Q3_K_S", 3.6429},  {"Q3_K_L", 4.2979},
      {"Q4_K_S", 4.6672}, {"Q4_K_M", 4.8944}, {"Q5_K_S", 5.5704},  {"Q5_K_M", 5.7036},
      {"Q6_K", 6.5633},   {"Q8_0", 8.5008},   {"F16", 16.0005},
  };
  const Network network = NetworkOf("llama-3.1-8b");
  for (const Row& row : kTable) {
    const auto mixture = FindMixture(row.mixture, "mixture");
    ASSERT_TRUE(mixture) << row.mixture;
    const auto gguf = TensorsOfNetwork(network, row.mixture,
                                       {.imatrix = mixture->needs_imatrix, .rope_frequencies = 64});
    ASSERT_TRUE(gguf) << row.mixture;
    EXPECT_NEAR(BitsPerWeight(*gguf), row.bits, 0.00005001) << row.mixture;
  }
}

std::vector<std::string> TypesOf(std::string_view mixture, const MixtureModel& model,
                                 const std::vector<GgufTensor>& tensors) {
  std::vector<std::string> names;
  for (const StoredType* type :
       MixtureTypes(*FindMixture(mixture, "mixture"), true, model, tensors)) {
    names.emplace_back(type->name);
  }
  return names;
}

using Names = std::vector<std::string>;

// The rules of llama-quant.cpp that the table does not reach.
TEST(Mixtures, GiveEightExpertsMoreBitsInKeysAndValues) {
  const std::vector<GgufTensor> tensors = {
      {"blk.9.attn_k.weight", 4096, 1024, 2, 9},
      {"blk.9.attn_v.weight", 4096, 1024, 2, 9},
      {"blk.9.attn_output.weight", 4096, 4096, 2, 9},
      {"output.weight", 4096, 32000, 2, -1},
  };
  EXPECT_EQ(TypesOf("Q4_K_M", {.layers = 32, .experts = 8, .queries_per_value = 4}, tensors),
            (Names{"q8_0", "q8_0", "q5_k", "q6_k"}));
}

TEST(Mixtures, GiveA70BMoreBitsInValues) {
  const std::vector<GgufTensor> tensors = {{"blk.12.attn_v.weight", 8192, 1024, 2, 12},
                                           {"output.weight", 8192, 32000, 2, -1}};
  EXPECT_EQ(TypesOf("Q3_K_S", {.layers = 80, .queries_per_value = 8, .size_70b = true}, tensors),
            (Names{"q5_k", "q6_k"}));
  EXPECT_EQ(TypesOf("Q3_K_S", {.layers = 80, .queries_per_value = 8}, tensors),
            (Names{"q3_k", "q6_k"}));
}

TEST(Mixtures, FallBackWhereARowIsNoMultipleOfTheBlock) {
  const std::vector<GgufTensor> tensors = {{"blk.0.ffn_up.weight", 2880, 64, 2, 0},
                                           {"blk.0.attn_k.weight", 100, 64, 2, 0},
                                           {"token_embd.weight", 2880, 64, 2, -1}};
  EXPECT_EQ(TypesOf("Q4_K_S", {.layers = 24}, tensors), (Names{"q5_0", "float16", "q8_0"}));
  EXPECT_EQ(TypesOf("IQ3_S", {.layers = 24}, tensors), (Names{"iq4_nl", "float16", "q8_0"}));
}

TEST(Mixtures, KeepNormsBiasesAndRoutersInFloat32) {
  const std::vector<GgufTensor> tensors = {{"blk.0.attn_norm.weight", 4096, 1, 1, 0},
                                           {"blk.0.ffn_gate_inp.weight", 4096, 128, 2, 0},
                                           {"blk.0.ffn_up_exps.bias", 2880, 32, 2, 0}};
  EXPECT_EQ(TypesOf("Q8_0", {.layers = 1}, tensors), (Names{"float32", "float32", "float32"}));
}

TEST(Mixtures, AreFoundWhateverTheCase) {
  EXPECT_EQ(FindMixture("q4_k", "mixture")->name, "Q4_K_M");
  EXPECT_FALSE(FindMixture("UD-Q4_K_XL", "mixture"));
}

}  // namespace
}  // namespace fourpiles
