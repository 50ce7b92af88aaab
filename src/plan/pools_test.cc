// The pools of vLLM, SGLang and TensorRT-LLM against what their logs say.

#include <gtest/gtest.h>

#include "model/catalogue.h"
#include "plan/engine_record.h"
#include "plan/sglang.h"
#include "plan/tensorrt_llm.h"
#include "plan/vllm.h"
#include "plan/weight_scheme.h"

namespace fourpiles {
namespace {

constexpr double kGib = 1024.0 * 1024.0 * 1024.0;

Checked Gib(double gib) {
  return static_cast<std::int64_t>(gib * kGib);
}

// Llama-3.1-8B: 32 layers, 8 heads of 128 + 128, bfloat16.
Checked LlamaTokenBytes() {
  return TokenBytes({.heads = 8, .elements_per_head = 256}) * 32;
}

TEST(Vllm, BlocksOfALogLieBetweenTheEndsOfWhatItPrints) {
  // vllm#10517: 3.81 GiB, 1952 blocks.
  VllmPool pool = {.token_bytes = LlamaTokenBytes()};
  pool.available = Gib(3.805);
  EXPECT_LE(VllmBlocks(pool).value(), 1952);
  pool.available = Gib(3.815);
  EXPECT_GE(VllmBlocks(pool).value(), 1952);
}

TEST(Vllm, AvailableIsWhatTheLogSays) {
  // vllm#10511, H100: 79.22 × 0.9 − 14.96 − 1.26 − 1.79 = 53.29.
  const Checked available =
      VllmAvailableBytes(VllmRequestedBytes(Gib(79.22), 0.9), {Gib(14.96), Gib(1.26), Gib(1.79)});
  EXPECT_NEAR(static_cast<double>(available.value()) / kGib, 53.29, 0.005);
}

TEST(Vllm, SuggestionOfALogIsWhatIsAvailableLessGraphsAndABuffer) {
  // A log of Qwen3-8B-FP8 on an RTX 4090: 9,232,221,491 available, graphs 0.68 GiB, 8,347,223,347.
  const Checked suggested = VllmSuggestedCacheBytes(9'232'221'491, Gib(0.68));
  EXPECT_NEAR(static_cast<double>(suggested.value()), 8'347'223'347.0, 0.005 * kGib);
}

TEST(Vllm, CpuBlocksOfTwoLogs) {
  // Llama-3.2-11B-Vision, 40 layers of 8 heads (vllm#12126); Llama-2-13B, 40 layers of 40 heads.
  const Checked vision = TokenBytes({.heads = 8, .elements_per_head = 256}) * 40 * 16;
  EXPECT_EQ(VllmCpuBlocks(Gib(4), vision).value(), 1638);
  const Checked llama = TokenBytes({.heads = 40, .elements_per_head = 256}) * 40 * 16;
  EXPECT_EQ(VllmCpuBlocks(Gib(4), llama).value(), 327);
}

TEST(Vllm, GroupsOfKimiLinearHaveAPaddingLayer) {
  // vllm#28228: 7 layers of latent attention, 20 of linear attention, 2.30 GiB, 75,840 tokens.
  const std::int64_t counts[] = {7, 20};
  const VllmGroups groups = VllmGroupsOf(counts);
  EXPECT_EQ(groups.group_size, 7);
  EXPECT_EQ(groups.groups, 4);
  EXPECT_EQ(groups.padding_layers, 1);
  const Checked page = StateBytes({.convolution_elements = 3 * 3 * 32 * 128,
                                   .recurrent_elements = 32 * 128 * 128,
                                   .tensor_parallel = 2});
  EXPECT_EQ(page.value(), 1'085'440);
  const Checked token = TokenBytes({.elements_per_head = 512 + 64, .tensor_parallel = 2});
  EXPECT_EQ(VllmAttentionBlock(page, token, 64).value(), 960);
  EXPECT_EQ(VllmTokens({.available = Gib(2.3),
                        .token_bytes = token,
                        .block_tokens = 960,
                        .group_size = 7,
                        .groups = 4})
                .value(),
            75'840);
}

TEST(Vllm, AttentionBlockOfQwen35IsRoundedTo16) {
  // Qwen3.5-122B on 2 ranks, fp8 cache: 4,176 tokens, 0.19 % of padding.
  const Checked page = StateBytes({.convolution_elements = 3 * (2 * 16 + 64) * 128,
                                   .recurrent_elements = 64 * 128 * 128,
                                   .tensor_parallel = 2});
  const Checked token =
      TokenBytes({.heads = 2, .elements_per_head = 512, .bits = 8, .tensor_parallel = 2});
  EXPECT_EQ(VllmAttentionBlock(page, token, 16).value(), 4'176);
}

TEST(Vllm, CountsThatDifferByLessThanHalfShareGroupsOfTheLarger) {
  const std::int64_t counts[] = {10, 14};
  EXPECT_EQ(VllmGroupsOf(counts).group_size, 14);
  EXPECT_EQ(VllmGroupsOf({}).group_size, 0);
}

TEST(Vllm, ConcurrencyOfLogs) {
  EXPECT_NEAR(VllmConcurrencyOfTokens(1952 * 16, 20'000), 1.56, 0.005);  // vllm#10517
  EXPECT_NEAR(VllmConcurrency(1952, 20'000 / 16), 1.56, 0.005);
  EXPECT_EQ(VllmConcurrency(1952, 0), 0);
}

TEST(Vllm, HeadsPastOneARankAreCopied) {
  EXPECT_EQ(TokenBytes({.heads = 8, .elements_per_head = 256, .tensor_parallel = 16}).value(), 512);
}

TEST(Sglang, WindowTokensOfALog) {
  EXPECT_EQ(SglangWindowTokens(70'656, 0.8, 256).value(), 56'320);
}

// As many bytes as before the split: 12 layers of each kind, 1,000 tokens of 24 are 1,111 in one
// kind and 888 in the other.
TEST(Sglang, WindowsShareThePoolByTheirBytes) {
  const SglangPools pools =
      SglangSplitTokens(1000, {.full_cell = 12 * 2048, .window_cell = 12 * 2048, .ratio = 0.8});
  EXPECT_EQ(pools.full_tokens.value(), 1111);
  EXPECT_EQ(pools.window_tokens.value(), 888);
}

TEST(Sglang, SizesOfLogs) {
  // Kimi-K2.5, 61 layers, 2,454,421 tokens: 160.63 "GB" of 2^30.
  const Checked bytes = SglangPoolBytes(2'454'421, 0, 61 * 576 * 2);
  EXPECT_NEAR(static_cast<double>(bytes.value()) / kGib, 160.63, 0.005);
}

TEST(Sglang, NothingIsLeftWhereTheWeightsTakeMoreThanTheirShare) {
  const Checked bytes = SglangCacheBytes({.available_before_load = Gib(80),
                                          .available_after_load = Gib(4),
                                          .memory_fraction_static = 0.9});
  EXPECT_EQ(SglangMaxTotalTokens(bytes, LlamaTokenBytes(), 1).value(), 0);
}

TEST(TensorrtLlm, BytesOfALog) {
  // TensorRT-LLM#1400: 69,524,783,104 bytes for 132,608 tokens, 32 layers of 32 heads.
  const Checked token = TokenBytes({.heads = 32, .elements_per_head = 256}) * 32;
  EXPECT_EQ(token.value(), 524'288);
  EXPECT_EQ((token * 132'608).value(), 69'524'783'104);
  EXPECT_EQ(TensorrtLlmTokens({.free_bytes = 69'524'783'104,
                               .free_fraction = 1,
                               .token_bytes = token,
                               .block_tokens = 128})
                .value(),
            132'608);
}

TEST(Engines, EachHasASourceAndIsFoundByItsNames) {
  EXPECT_EQ(Engines().size(), 5u);
  for (const EngineRecord& engine : Engines()) {
    EXPECT_GE(engine.source.size(), 10u) << engine.names.id;
    for (const EngineTerm& term : engine.terms) {
      EXPECT_GE(term.source.size(), 10u) << term.id;
    }
    for (const std::string& alias : engine.names.aliases) {
      EXPECT_EQ(FindEngine(alias)->names.id, engine.names.id);
    }
  }
  ASSERT_NE(FindTerm(*FindEngine("vllm"), "cuda_graphs"), nullptr);
  EXPECT_EQ(FindTerm(*FindEngine("vllm"), "none"), nullptr);
}

double WeightGib(std::string_view model, std::string_view scheme, std::int64_t ranks) {
  const SchemeBytes bytes =
      WeightBytes(FindModel(model)->network, *FindWeightScheme(scheme, "test"), ranks);
  return static_cast<double>(bytes.bytes.value()) / kGib;
}

TEST(WeightScheme, PlainWeightsAreTheSafetensorsTotal) {
  // total_size of the public model.safetensors.index.json.
  for (const auto& [model, total] :
       {std::pair("llama-3.1-8b", 16'060'522'496), std::pair("llama-3.1-70b", 141'107'412'992),
        std::pair("qwen3-30b-a3b", 61'064'245'248)}) {
    EXPECT_EQ(
        WeightBytes(FindModel(model)->network, *FindWeightScheme("bf16", "test"), 1).bytes.value(),
        total)
        << model;
  }
}

TEST(WeightScheme, WeightsThatEnginesLogged) {
  struct Case {
    const char* model;
    const char* scheme;
    std::int64_t ranks;
    double logged;  // GiB
    double share;   // how near
  };
  constexpr Case kCases[] = {
      {"llama-3.1-8b", "bf16", 1, 14.9888, 0.005},     // vllm#10517
      {"llama-3.1-8b", "bf16", 2, 7.48, 0.005},        // vllm#10511
      {"qwen2.5-72b", "awq:4:128", 2, 19.3952, 0.01},  // vLLM on 2 A40
      {"qwen3-8b", "fp8-block", 1, 8.80, 0.01},        // vLLM, Qwen3-8B-FP8
      {"gpt-oss-120b", "mxfp4", 1, 60.8, 0.01},        // the files; vLLM repacks: 64.4
  };
  for (const Case& one : kCases) {
    EXPECT_NEAR(WeightGib(one.model, one.scheme, one.ranks) / one.logged, 1, one.share)
        << one.model << " " << one.scheme;
  }
}

TEST(WeightScheme, NormsEmbeddingsAndRoutersStayPlain) {
  const Network network = FindModel("qwen3-30b-a3b")->network;
  const WeightScheme scheme = *FindWeightScheme("fp8", "test");
  int routers = 0;
  for (const Block& block : network.blocks) {
    for (const Parameter& parameter : block.parameters) {
      const bool plain = StaysPlain(block, parameter, scheme);
      const std::string& name = parameter.name;
      EXPECT_EQ(plain, !IsNumbered(block) || name.find("proj") == std::string::npos) << name;
      routers += name == "mlp.gate.weight" ? 1 : 0;
    }
  }
  EXPECT_GE(routers, 1);
}

TEST(WeightScheme, UnknownNamesAreRefusedWithTheNearest) {
  const auto scheme = FindWeightScheme("nvpf4", "--weights-format");
  ASSERT_FALSE(scheme);
  EXPECT_EQ(scheme.error().text.found, "unknown weight format \"nvpf4\"");
  EXPECT_EQ(scheme.error().text.expected, "did you mean \"nvfp4\"?");
}

}  // namespace
}  // namespace fourpiles
