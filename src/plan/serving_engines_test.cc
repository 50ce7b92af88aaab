// What sets the engines apart, by hand from their rules.

#include <string>

#include <gtest/gtest.h>

#include "plan/solve.h"

namespace fourpiles {
namespace {

using Typed = std::map<std::string, std::string>;

Budget Served(const std::string& model, const Typed& settings) {
  return BudgetOf(MakeJob(JobKind::kServe, model, TypedSettings(settings)).value()).value();
}

std::string Refusal(const std::string& model, const Typed& settings) {
  const auto job = MakeJob(JobKind::kServe, model, TypedSettings(settings));
  return job ? "" : job.error().text.where + " | " + job.error().text.found;
}

double FigureOf(const Budget& budget, std::string_view id) {
  for (const EngineFigure& figure : budget.serving->log) {
    if (figure.id == id) {
      return figure.value;
    }
  }
  return -1;
}

constexpr double kMib = 1024.0 * 1024.0;

// Logs of Llama-3.1-8B with its output layer on the host: 258.50 MiB of logits and the last norm,
// 512 × (128,256 + 4,096) × 4 bytes, and the output matrix, 128,256 × 4,096 × 210 / 256 bytes.
TEST(ServingEngines, AnOutputLayerOnTheHostIsCopied) {
  const Typed partly = {{"engine", "llama.cpp"},      {"weights-format", "q4_k_m"},
                        {"context-length", "4096"},   {"device", "rtx-4090-24gb"},
                        {"gpu-layers", "20"},         {"flash-attention", "off"},
                        {"engine-version", "2025-09"}};
  EXPECT_NEAR(FigureOf(Served("llama-3.1-8b", partly), "compute_device_bytes") / kMib, 669.48,
              0.005);
}

// Since late 2025 the output layer is the first to go to a device.
TEST(ServingEngines, OneGpuLayerIsTheOutputLayer) {
  const auto weights = [](const char* version) {
    return FigureOf(Served("llama-3.1-8b", {{"engine", "llama.cpp"},
                                            {"weights-format", "q8_0"},
                                            {"context-length", "4096"},
                                            {"device", "rtx-4090-24gb"},
                                            {"gpu-layers", "1"},
                                            {"engine-version", version}}),
                    "weights_device_bytes");
  };
  const double output = 128256.0 * 4096 / 32 * 34;
  const double norm = 4096 * 4;
  EXPECT_EQ(weights("current"), output + norm);
  // A layer: 2 × 4,096² + 2 × 4,096 × 1,024 + 3 × 4,096 × 14,336 in Q8_0, and two norms.
  EXPECT_EQ(weights("2025-09"), 218103808.0 / 32 * 34 + 2 * norm);
}

// Before llama.cpp had a latent cache: 61 layers of 128 × (192 + 128) elements.
TEST(ServingEngines, LatentAttentionBeforeItsCache) {
  const auto cache = [](const char* version) {
    return FigureOf(Served("deepseek-v3", {{"engine", "llama.cpp"},
                                           {"weights-format", "q4_0"},
                                           {"context-length", "1024"},
                                           {"engine-version", version}}),
                    "kv_bytes") /
           kMib;
  };
  EXPECT_EQ(cache("before-mla"), 61.0 * 128 * 320 * 2 * 1024 / kMib);
  EXPECT_EQ(cache("current"), 61.0 * 576 * 2 * 1024 / kMib);
}

// transformers makes keys and values of the latent before the cache: 61 × 128 × (192 + 128) × 2.
TEST(ServingEngines, TransformersKeepsAllHeadsOfLatentAttention) {
  const Budget budget =
      Served("deepseek-v3",
             {{"engine", "transformers"}, {"context-length", "1024"}, {"kv-format", "bf16"}});
  EXPECT_EQ(budget.piles.at(Pile::kKvCache), Bytes(std::int64_t{1024} * 61 * 128 * 320 * 2));
}

// gpt-oss-20b at 4,096: 12 layers of 256 blocks, 12 with a window of 128 which in a step of 8,192
// tokens may see all 4,096 and begin within a block: 257.
TEST(ServingEngines, AWindowMayBeginWithinABlock) {
  const Budget budget = Served(
      "gpt-oss-20b", {{"engine", "vllm"}, {"context-length", "4096"}, {"device", "h100-sxm-80gb"}});
  EXPECT_NEAR(FigureOf(budget, "max_concurrency"), FigureOf(budget, "blocks") / (256 + 257), 1e-9);
}

// The sampler's logits, 1,024 × 128,256 × 4 bytes and copies of them, are made where the output
// layer is; the first stage has 8,192 tokens of a layer.
TEST(ServingEngines, LogitsAreOfTheLastStage) {
  const Budget budget =
      Served("llama-3.1-8b",
             {{"engine", "vllm"}, {"pipeline-parallel", "2"}, {"device", "h100-sxm-80gb"}});
  ASSERT_EQ(budget.ranks.size(), 2u);
  EXPECT_LT(budget.ranks[0].piles.at(Pile::kWorkspace), Bytes(std::int64_t{2} << 30));
  EXPECT_GT(budget.ranks[1].piles.at(Pile::kWorkspace), Bytes(std::int64_t{3} << 30));
}

// SGLang: 2 groups of experts, each expert cut over 4 ranks, is as much as 8 cuts of each.
TEST(ServingEngines, ExpertsAreCutByTheRanksThatRemain) {
  const auto weights = [](const char* expert) {
    return Served("qwen3-30b-a3b",
                  {{"engine", "sglang"}, {"tensor-parallel", "4"}, {"expert-parallel", expert}})
        .piles.at(Pile::kWeights);
  };
  EXPECT_EQ(weights("1"), weights("2"));
  EXPECT_EQ(weights("1"), weights("4"));
  EXPECT_EQ(Refusal("qwen3-30b-a3b",
                    {{"engine", "vllm"}, {"tensor-parallel", "4"}, {"expert-parallel", "2"}}),
            "--expert-parallel | experts over 2 of 4 ranks");
}

TEST(ServingEngines, QueryHeadsMustDivide) {
  EXPECT_EQ(Refusal("qwen3-14b", {{"engine", "vllm"}, {"tensor-parallel", "16"}}),  // 40 heads
            "--tensor-parallel | 16 devices cannot share the heads");
}

// A draft model runs on the last stage: 16 layers × 8 heads × 64 × 2 × 2 bytes × 8,192 tokens.
TEST(ServingEngines, TheDraftModelIsOnTheLastStage) {
  const auto first = [](const Typed& more) {
    Typed settings = {
        {"engine", "transformers"}, {"pipeline-parallel", "2"}, {"context-length", "8192"}};
    settings.insert(more.begin(), more.end());
    std::vector<Bytes> caches;
    for (const RankBudget& rank : Served("llama-3.1-70b", settings).ranks) {
      caches.push_back(rank.piles.at(Pile::kKvCache));
    }
    return caches;
  };
  const std::vector<Bytes> without = first({});
  const std::vector<Bytes> with = first({{"draft", "llama-3.2-1b"}});
  ASSERT_EQ(with.size(), 2u);
  EXPECT_EQ(with[0], without[0]);
  EXPECT_EQ(with[1] - without[1], Bytes(std::int64_t{16} * 8 * 64 * 2 * 2 * 8192));
}

// Tokens and states have 1 : 0.9 of SGLang's pool: as many requests as their states alone allow.
TEST(ServingEngines, StatesHaveAShareOfTheirOwn) {
  const Budget budget = Served("qwen3.5-27b", {{"engine", "sglang"},
                                               {"device", "h100-sxm-80gb"},
                                               {"weights-format", "fp8"},
                                               {"context-length", "256"},
                                               {"solve", "concurrency"}});
  const double pool = static_cast<double>(budget.serving->pool->bytes.value());
  const double state = static_cast<double>(budget.serving->state_per_request.value());
  EXPECT_EQ(*budget.solution, static_cast<std::int64_t>(pool * 0.9 / 1.9 / state));
}

}  // namespace
}  // namespace fourpiles
