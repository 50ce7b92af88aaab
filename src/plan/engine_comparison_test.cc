#include "plan/engine_comparison.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "plan/engine_record.h"

namespace fourpiles {
namespace {

EngineComparison Compared(const std::string& model,
                          const std::map<std::string, std::string>& settings) {
  return CompareEngines(model, TypedSettings(settings)).value();
}

const EngineAnswer& AnswerOf(const EngineComparison& comparison, std::string_view engine) {
  return *std::ranges::find(comparison.answers, engine, &EngineAnswer::engine);
}

// What an engine's cache takes beyond the tokens of the load.
std::int64_t Beyond(const EngineComparison& comparison, std::string_view engine) {
  const CacheSize& cache = AnswerOf(comparison, engine).cache;
  return cache.as_allocated.value() - cache.of_tokens.value();
}

TEST(EngineComparison, HasEveryEngineOfTheCatalogue) {
  const EngineComparison comparison = Compared("llama-3.1-8b", {{"context-length", "8192"}});
  ASSERT_EQ(comparison.answers.size(), Engines().size());
  for (const EngineAnswer& answer : comparison.answers) {
    EXPECT_EQ(answer.budget->job.serving.engine->names.id, answer.engine);
  }
}

// A token of Llama-3.1-8B is 32 layers × 8 heads × 256 × 2 bytes = 131,072. 8,200 tokens are 513
// blocks of 16, 257 of 32, and 33 times 256 cells.
TEST(EngineComparison, TellsHowFarACacheIsRoundedUp) {
  constexpr std::int64_t kToken = 131072;
  const EngineComparison comparison =
      Compared("llama-3.1-8b", {{"context-length", "8200"}, {"concurrency", "3"}});
  EXPECT_EQ(AnswerOf(comparison, "vllm").cache.of_tokens, Bytes(3 * 8200 * kToken));
  EXPECT_EQ(Beyond(comparison, "vllm"), 3 * 8 * kToken);
  EXPECT_EQ(Beyond(comparison, "tensorrt-llm"), 3 * 24 * kToken);
  EXPECT_EQ(Beyond(comparison, "llama.cpp"), 3 * 248 * kToken);
  EXPECT_EQ(Beyond(comparison, "sglang"), 0);
  EXPECT_EQ(Beyond(comparison, "transformers"), 0);
}

// Whatever the number of devices: a latent (61 layers × 576 × 2 bytes a token, arXiv 2412.19437)
// is on each of eight ranks.
TEST(EngineComparison, CountsTheCacheOfAllDevices) {
  const EngineComparison comparison =
      Compared("deepseek-v3",
               {{"context-length", "32768"}, {"kv-format", "bf16"}, {"tensor-parallel", "8"}});
  const CacheSize& cache = AnswerOf(comparison, "vllm").cache;
  EXPECT_EQ(cache.of_tokens, Bytes(std::int64_t{8} * 61 * 576 * 2 * 32768));
  EXPECT_EQ(cache.as_allocated, cache.of_tokens);
}

TEST(EngineComparison, AnEngineThatCannotSaysWhy) {
  const EngineComparison comparison =
      Compared("llama-3.1-8b", {{"tensor-parallel", "2"}, {"context-length", "8192"}});
  const EngineAnswer& llamacpp = AnswerOf(comparison, "llama.cpp");
  ASSERT_FALSE(llamacpp.budget);
  EXPECT_EQ(llamacpp.budget.error().text.found, "llama.cpp puts layers on devices");
  EXPECT_TRUE(AnswerOf(comparison, "vllm").budget);
}

TEST(EngineComparison, AMistakeOfAllIsTheirOneError) {
  const auto error = [](const std::map<std::string, std::string>& settings) {
    return CompareEngines("llama-3.1-8b", TypedSettings(settings)).error().text;
  };
  EXPECT_EQ(error({{"context-length", "0"}}).where, "--context-length");
  const ErrorText text = error({{"gpu-layers", "4"}, {"memory-utilization", "0.8"}});
  EXPECT_EQ(text.where, "--engine all");
  EXPECT_NE(text.found.find("vllm (--gpu-layers: vllm has no such setting)"), std::string::npos)
      << text.found;
}

TEST(EngineComparison, DifferencesAreOfPilesThatDiffer) {
  const EngineComparison comparison =
      Compared("llama-3.1-8b", {{"context-length", "8192"}, {"device", "h100-sxm-80gb"}});
  for (const EngineDifference& difference : comparison.differences) {
    EXPECT_NE(difference.line.pile, Pile::kKvCache) << difference.line.what;  // 1 GiB everywhere
    EXPECT_FALSE(difference.engines.empty());
  }
  const auto left = std::ranges::find_if(comparison.differences, [](const EngineDifference& one) {
    return one.engines == std::vector<std::string>{"vllm"} && one.line.pile == Pile::kOverhead;
  });
  ASSERT_NE(left, comparison.differences.end());
  EXPECT_EQ(left->line.formula, "memory × (1 − 0.9) − graphs");
}

TEST(EngineComparison, SolvesForEachEngine) {
  const EngineComparison comparison = Compared(
      "llama-3.1-8b", {{"context-length", "8192"}, {"device", "80GiB"}, {"solve", "concurrency"}});
  for (const EngineAnswer& answer : comparison.answers) {
    ASSERT_TRUE(answer.budget && answer.budget->solution) << answer.engine;
    EXPECT_EQ(answer.budget->solution, answer.budget->serving->max_concurrency) << answer.engine;
  }
}

}  // namespace
}  // namespace fourpiles
