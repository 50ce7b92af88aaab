#include "plan/gguf_tensors.h"

#include <map>
#include <string>

#include <gtest/gtest.h>

#include "model/catalogue.h"

namespace fourpiles {
namespace {

GgufTensors Tensors(std::string_view id, std::string_view mixture,
                    const GgufOptions& options = {}) {
  auto model = FindModel(id);
  EXPECT_TRUE(model) << id;
  auto gguf = TensorsOfNetwork(model->network, mixture, options);
  EXPECT_TRUE(gguf) << id << ": " << gguf.error().text.found;
  return gguf ? *gguf : GgufTensors{};
}

std::map<std::string, int> CountOfTypes(const GgufTensors& gguf) {
  std::map<std::string, int> counts;
  for (const PlacedTensor& placed : gguf.tensors) {
    ++counts[std::string(placed.type->name)];
  }
  return counts;
}

using Counts = std::map<std::string, int>;

// llama.cpp's log of ggml-org's gpt-oss-20b-mxfp4.gguf: "type f32: 289 tensors, type q8_0: 98, type
// mxfp4: 72", file size 11.27 GiB.
TEST(GgufTensors, AreThoseOfTheGgufOfGptOss) {
  const GgufTensors gguf = Tensors("gpt-oss-20b", "MXFP4_MOE");
  EXPECT_EQ(CountOfTypes(gguf), (Counts{{"float32", 289}, {"q8_0", 98}, {"mxfp4", 72}}));
  EXPECT_NEAR(static_cast<double>(TensorBytes(gguf).value()) / 1073741824, 11.27, 0.005);
}

// ikawrakow/ik_llama.cpp: DeepSeek-R1 in Q8_0, "f32 361, q8_0 664", 680,237.97 MiB; with attn_k_b
// and attn_v_b beside kv_b "q8_0 786", 681,274.97 MiB.
TEST(GgufTensors, AreThoseOfTheGgufsOfDeepSeek) {
  const GgufTensors whole = Tensors("deepseek-v3", "Q8_0");
  EXPECT_EQ(CountOfTypes(whole), (Counts{{"float32", 361}, {"q8_0", 664}}));
  EXPECT_NEAR(static_cast<double>(TensorBytes(whole).value()) / 1048576, 680237.97, 0.005);
  const GgufTensors both = Tensors("deepseek-v3", "Q8_0", {.latent = LatentTensors::kBoth});
  EXPECT_EQ(CountOfTypes(both), (Counts{{"float32", 361}, {"q8_0", 786}}));
  EXPECT_NEAR(static_cast<double>(TensorBytes(both).value()) / 1048576, 681274.97, 0.005);
}

// Log of a mainline build, Qwen3-30B-A3B in Q4_K_M: "q4_K 289, q6_K 49", 17.28 GiB.
TEST(GgufTensors, AreThoseOfTheGgufOfQwen3Moe) {
  const GgufTensors gguf = Tensors("qwen3-30b-a3b", "Q4_K_M");
  EXPECT_EQ(CountOfTypes(gguf), (Counts{{"float32", 241}, {"q4_k", 289}, {"q6_k", 49}}));
  EXPECT_NEAR(static_cast<double>(TensorBytes(gguf).value()) / 1073741824, 17.28, 0.005);
}

// Every tensor of these families has a name in llama.cpp's files, and none is lost: the elements
// are those of the checkpoint.
TEST(GgufTensors, HaveTheElementsOfTheCheckpoint) {
  for (const char* id : {"mamba-1.4b", "mamba-codestral-7b", "falcon-h1-7b", "granite-4.0-h-tiny",
                         "granite-3.1-8b", "command-r7b", "jamba-v0.1", "lfm2-1.2b",
                         "kimi-linear-48b-a3b", "llama-3.1-nemotron-ultra-253b"}) {
    EXPECT_EQ(TensorElements(Tensors(id, "Q4_K_M")).value(), ParameterCount(FindModel(id)->network))
        << id;
  }
}

// The same log of Nemotron Ultra that has its layers: "type f32: 147 tensors" of 648, one of them
// the factors of the rotary embedding (ikawrakow/ik_llama.cpp pull request 377).
TEST(GgufTensors, AreThoseOfTheGgufOfNemotronUltra) {
  const GgufTensors gguf =
      Tensors("llama-3.1-nemotron-ultra-253b", "Q3_K_M", {.rope_frequencies = 64});
  EXPECT_EQ(gguf.tensors.size(), 648u);
  EXPECT_EQ(CountOfTypes(gguf)["float32"], 147);
}

// The embedding stays on the host; of untied models that is all of it.
TEST(GgufTensors, LieOnTheDeviceButForTheEmbedding) {
  const GgufTensors gguf = Tensors("llama-3.1-8b", "F16");
  const GpuPlacement all = {.gpu_layers = 33};
  EXPECT_EQ(HostTensorBytes(gguf, 32, all).value(), 128256 * 4096 * std::int64_t{2});
  EXPECT_EQ(DeviceTensorBytes(gguf, 32, all).value(),
            TensorBytes(gguf).value() - 128256 * 4096 * std::int64_t{2});
  EXPECT_EQ(DeviceTensorBytes(gguf, 32, {}).value(), 0);
  EXPECT_EQ(HostTensorBytes(gguf, 32, {}).value(), TensorBytes(gguf).value());
}

// The output layer is the first on the device; in older builds the 33rd.
TEST(GgufTensors, LieOnTheDeviceLayerByLayer) {
  const GgufTensors gguf = Tensors("llama-3.1-8b", "F16");
  const auto bytes = [&](std::int64_t layers, bool output_last) {
    return DeviceTensorBytes(gguf, 32, {.gpu_layers = layers, .output_last = output_last}).value();
  };
  EXPECT_EQ(bytes(8, true) * 4, bytes(32, true));
  EXPECT_EQ(bytes(1, false), 128256 * 4096 * std::int64_t{2} + 4096 * 4);  // and the last norm
  EXPECT_EQ(bytes(9, false) - bytes(1, false), bytes(8, true));
}

// A tied embedding is on the device as the output layer and on the host as the embedding:
// Gemma-3-1B has 262,144 rows of 1,152 in Q8_0.
TEST(GgufTensors, LieTwiceWhereTheEmbeddingIsTied) {
  const GgufTensors gguf = Tensors("gemma-3-1b", "Q8_0");
  constexpr std::int64_t kEmbedding = std::int64_t{262144} * 1152 / 32 * 34;
  EXPECT_TRUE(gguf.tied);
  EXPECT_EQ(EmbeddingBytes(gguf).value(), kEmbedding);
  const GpuPlacement all = {.gpu_layers = 27};
  EXPECT_EQ(HostTensorBytes(gguf, 26, all).value(), kEmbedding);
  EXPECT_GT(DeviceTensorBytes(gguf, 26, all).value(), TensorBytes(gguf).value() - 1);
}

// 128 experts of 1,536 × 4,096 in Q8_0: the 816.00 MiB that a log shows as one tensor.
TEST(GgufTensors, StackTheExpertsOfALayer) {
  const GgufTensors gguf = Tensors("qwen3-235b-a22b", "Q8_0");
  EXPECT_EQ(LargestExpertBytes(gguf).value(), std::int64_t{816} << 20);
}

TEST(GgufTensors, RefuseWhatLlamaCppHasNoNamesFor) {
  const auto model = FindModel("opt-6.7b");
  ASSERT_TRUE(model);
  const auto gguf = TensorsOfNetwork(model->network, "F16");
  ASSERT_FALSE(gguf);
  EXPECT_EQ(gguf.error().text.found,
            "llama.cpp's name of \"model.decoder.embed_tokens.weight\" is not known");
}

}  // namespace
}  // namespace fourpiles
