// Serving with an engine, against figures of their logs and hand computation. The formulas by
// themselves are tested in llamacpp_test.cc and pools_test.cc.

#include "plan/serving.h"

#include <string>

#include <gtest/gtest.h>

#include "plan/solve.h"

namespace fourpiles {
namespace {

Budget Served(const std::string& model, const std::map<std::string, std::string>& settings) {
  return BudgetOf(MakeJob(JobKind::kServe, model, TypedSettings(settings)).value()).value();
}

Bytes CacheOf(const Budget& budget) {
  return budget.piles.at(Pile::kKvCache);
}

constexpr std::int64_t kGib = std::int64_t{1} << 30;
constexpr std::int64_t kMib = std::int64_t{1} << 20;

// serving-memory figures of public logs: Llama-3-70B at 8,192 tokens 2.50 GiB.
TEST(Serving, EveryEngineKeepsTheSameCacheOfLlama70b) {
  for (const char* engine : {"none", "vllm", "sglang", "tensorrt-llm", "transformers"}) {
    EXPECT_EQ(CacheOf(Served("llama-3.1-70b", {{"engine", engine}, {"context-length", "8192"}})),
              Bytes(5 * kGib / 2))
        << engine;
  }
  EXPECT_EQ(CacheOf(Served("llama-3.1-70b", {{"engine", "llama.cpp"},
                                             {"weights-format", "q4_k_m"},
                                             {"context-length", "8192"}})),
            Bytes(5 * kGib / 2));
}

// DeepSeek-AI 2024, arXiv 2412.19437: 61 layers of 512 + 64.
TEST(Serving, TheLatentIsOnEveryRank) {
  const std::int64_t bytes = std::int64_t{61} * 576 * 2 * 32768;
  for (const char* ranks : {"1", "8"}) {
    EXPECT_EQ(CacheOf(Served("deepseek-v3", {{"engine", "vllm"},
                                             {"tensor-parallel", ranks},
                                             {"kv-format", "bf16"},
                                             {"context-length", "32768"}})),
              Bytes(bytes));
  }
}

TEST(Serving, HeadsAreSpreadWholeAndCopiedPastThem) {
  const auto cache = [](const char* ranks) {
    return CacheOf(
        Served("llama-3.1-8b",
               {{"engine", "vllm"}, {"tensor-parallel", ranks}, {"context-length", "8192"}}));
  };
  EXPECT_EQ(cache("1"), Bytes(kGib));
  EXPECT_EQ(cache("8"), Bytes(kGib / 8));
  EXPECT_EQ(cache("16"), Bytes(kGib / 8));
}

// Layers over two devices as llama.cpp puts them: 94 layers are 48 and 46 (its log of
// Qwen3-235B-A22B: 816 and 782 MiB at 8,704 cells of 4 × 128 in float16).
TEST(Serving, LlamacppPutsLayersOnDevices) {
  const Budget budget = Served("qwen3-235b-a22b", {{"engine", "llama.cpp"},
                                                   {"weights-format", "q4_k_m"},
                                                   {"devices", "2"},
                                                   {"context-length", "8704"}});
  ASSERT_EQ(budget.ranks.size(), 2U);
  EXPECT_EQ(budget.ranks[0].piles.at(Pile::kKvCache), Bytes(816 * kMib));
  EXPECT_EQ(budget.ranks[1].piles.at(Pile::kKvCache), Bytes(782 * kMib));
}

// convert_hf_to_gguf.py --outtype bf16 keeps a matrix of the checkpoint in bfloat16; norms, 65
// vectors of 4,096, are float32 there (ggml-org/llama.cpp conversion of every one-dimensional
// tensor).
TEST(Serving, LlamacppReadsThePlainFormats) {
  const Budget budget =
      Served("llama-3.1-8b", {{"engine", "llama.cpp"}, {"context-length", "8192"}});
  Bytes all(0);
  for (const Storage& storage : budget.tape.storages) {
    all += storage.pile == Pile::kWeights ? storage.bytes.expected : Bytes(0);
  }
  EXPECT_EQ(all, Bytes(std::int64_t{8030261248} * 2 + 65 * 4096 * 2));
}

// llama.cpp keeps the embedding on the host, and a tied one on the device too.
TEST(Serving, LlamacppKeepsTheEmbeddingOnTheHost) {
  const Budget tied =
      Served("gemma-3-27b",
             {{"engine", "llama.cpp"}, {"weights-format", "q4_0"}, {"context-length", "4096"}});
  Bytes host(0);
  for (const Storage& storage : tied.tape.storages) {
    host += storage.place == Place::kHost && storage.pile == Pile::kWeights ? storage.bytes.expected
                                                                            : Bytes(0);
  }
  // q6_k, as it is the output layer. The log's 1102.77 MiB are of 64 words more.
  EXPECT_EQ(host, Bytes(std::int64_t{262144} * 5376 / 256 * 210));
}

TEST(Serving, ThePoolIsWhatIsLeft) {
  const Budget budget =
      Served("llama-3.1-8b",
             {{"engine", "vllm"}, {"device", "h100-sxm-80gb"}, {"context-length", "8192"}});
  ASSERT_TRUE(budget.serving && budget.serving->pool);
  const CachePool& pool = *budget.serving->pool;
  // 16 tokens × 32 layers × 8 heads × 256 × 2 bytes are 2 MiB.
  EXPECT_EQ(pool.blocks, pool.bytes.value() / (2 * kMib));
  EXPECT_EQ(pool.tokens, 16 * pool.blocks);
  EXPECT_EQ(*budget.serving->max_concurrency, pool.tokens / 8192);
  // Memory less what is expected is what the pool has beyond the request.
  EXPECT_EQ(*budget.headroom, pool.bytes - CacheOf(budget));
}

TEST(Serving, FewestDevicesAreTensorParallelFirst) {
  const Budget budget = Served("llama-3.1-405b", {{"engine", "vllm"},
                                                  {"device", "h100-sxm-80gb"},
                                                  {"context-length", "8192"},
                                                  {"solve", "devices"}});
  EXPECT_EQ(budget.solution, 16);  // an eighth of 811.7 GB is more than a device has
  EXPECT_EQ(budget.job.serving.layout.tensor, 8);
  EXPECT_EQ(budget.job.serving.layout.pipeline, 2);
}

TEST(Serving, MoreRequestsNeverHaveLongerContexts) {
  const Budget budget =
      Served("gemma-3-27b",
             {{"engine", "llama.cpp"}, {"weights-format", "q4_k_m"}, {"device", "rtx-4090-24gb"}});
  std::int64_t before = budget.serving->contexts.front().context_length;
  for (const ContextRow& row : budget.serving->contexts) {
    EXPECT_LE(row.context_length, before);
    before = row.context_length;
  }
}

// sglang memory_pool.py, MHATokenToKVPoolFP4 and MLATokenToKVPoolFP4: of Llama-3.1-8B and a layer
// 2 × 8 × (128 / 2 + 128 / 16) bytes a token; of DeepSeek-V3 576 / 2 + 576 / 16.
TEST(Serving, SglangKeepsAScaleForEach16ValuesOf4Bits) {
  const auto cache = [](const char* model) {
    return CacheOf(Served(
        model, {{"engine", "sglang"}, {"kv-format", "fp4_e2m1"}, {"context-length", "1000"}}));
  };
  EXPECT_EQ(cache("llama-3.1-8b"), Bytes(1000 * 32 * 2 * 8 * (64 + 8)));
  EXPECT_EQ(cache("deepseek-v3"), Bytes(1000 * 61 * (288 + 36)));
}

// Llama 3.2 Vision, 40 layers of 8 × 128, 8 of which see the image and not the words: of an image
// of 560 pixels and 4 tiles, 4 × 1,601 tokens (vllm/model_executor/models/mllama.py,
// get_max_mllama_image_tokens).
constexpr std::int64_t kTokenOfLayer = 2 * 8 * 128 * 2;

TEST(Serving, CrossAttentionKeepsTheImageAndNotTheContext) {
  const auto cache = [](std::map<std::string, std::string> settings) {
    settings["context-length"] = "8192";
    return CacheOf(Served("llama-3.2-11b-vision-instruct", settings));
  };
  const Bytes words(32 * 8192 * kTokenOfLayer);
  EXPECT_EQ(cache({}), words + Bytes(8 * 6404 * kTokenOfLayer));
  EXPECT_EQ(cache({{"engine", "transformers"}}), words + Bytes(8 * 6404 * kTokenOfLayer));
  EXPECT_EQ(cache({{"image-tokens", "0"}}), words);
  EXPECT_EQ(cache({{"image-tokens", "12808"}}), words + Bytes(8 * 12808 * kTokenOfLayer));
  // Of 448 pixels: 4 × 1,025.
  EXPECT_EQ(CacheOf(Served("llama-3.2-11b-vision", {{"context-length", "8192"}})),
            words + Bytes(8 * 4100 * kTokenOfLayer));
}

// The older vLLM's blocks, and SGLang's slots, have room in every layer, whether for words or for
// the image. vllm-project/vllm#12126: 14.65 GiB are 6,001 blocks of 16 tokens × 163,840 bytes.
TEST(Serving, EnginesThatFillAPoolKeepTheImageInEveryLayer) {
  const std::map<std::string, std::string> settings = {
      {"engine", "vllm"}, {"device", "h100-sxm-80gb"}, {"context-length", "65536"}};
  const Budget budget = Served("llama-3.2-11b-vision-instruct", settings);
  const CachePool& pool = *budget.serving->pool;
  EXPECT_EQ(pool.blocks, pool.bytes.value() / (std::int64_t{16} * 163840));
  // 4,096 blocks of words, 401 of the image: 6,404 / 16, rounded up.
  EXPECT_EQ(CacheOf(budget), Bytes(std::int64_t{4096 + 401} * 16 * 163840));
  EXPECT_EQ(CacheOf(Served("llama-3.2-11b-vision-instruct",
                           {{"engine", "sglang"}, {"context-length", "65536"}})),
            Bytes(std::int64_t{65536 + 6404} * 163840));
}

TEST(Serving, AdviceSavesWhatItSays) {
  const std::map<std::string, std::string> settings = {
      {"engine", "vllm"}, {"device", "h100-sxm-80gb"}, {"context-length", "8192"}};
  const Budget budget = Served("llama-3.1-8b", settings);
  for (const Advice& advice : budget.advice) {
    const std::size_t space = advice.change.find(' ');
    std::map<std::string, std::string> changed = settings;
    changed[advice.change.substr(2, space - 2)] = advice.change.substr(space + 1);
    EXPECT_EQ(budget.total.expected - Served("llama-3.1-8b", changed).total.expected, advice.saves)
        << advice.change;
  }
  EXPECT_FALSE(budget.advice.empty());
}

}  // namespace
}  // namespace fourpiles
