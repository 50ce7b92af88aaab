#include "model/gguf_config.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/testing.h"
#include "model/catalogue.h"
#include "model/from_config.h"
#include "model/test_configs.h"

namespace fourpiles {
namespace {

// Metadata as a JSON object, in the order of the file.
std::vector<MetadataEntry> Metadata(std::string_view text) {
  const Result<Json> json = ReadJson(text, "metadata");
  EXPECT_TRUE(json) << ErrorLine(json);
  std::vector<MetadataEntry> metadata;
  for (const auto& [key, value] : *json->AsObject()) {
    const Json::Array* array = value.AsArray();
    metadata.push_back(
        {.key = key, .value = value, .array_length = array == nullptr ? -1 : std::ssize(*array)});
  }
  return metadata;
}

std::vector<FileTensor> Tensors(
    std::vector<std::pair<std::string, std::vector<std::int64_t>>> tensors) {
  std::vector<FileTensor> made;
  for (auto& [name, shape] : tensors) {
    made.push_back({.name = std::move(name), .shape = std::move(shape)});
  }
  return made;
}

Result<Network> NetworkOf(std::string_view metadata, const std::vector<FileTensor>& tensors) {
  const Result<Json> config = ConfigFromGguf(Metadata(metadata), tensors, "a.gguf");
  return config ? NetworkFromConfig(*config, "a.gguf")
                : Result<Network>(tl::make_unexpected(config.error()));
}

// The keys as llama.cpp's loader lists them for the files of these models ("llama_model_loader: -
// kv 11: llama.block_count u32 = 32").
constexpr const char* kLlama31 = R"({
  "general.architecture": "llama", "general.type": "model",
  "llama.block_count": 32, "llama.context_length": 131072, "llama.embedding_length": 4096,
  "llama.feed_forward_length": 14336, "llama.attention.head_count": 32,
  "llama.attention.head_count_kv": 8, "llama.rope.freq_base": 500000.0,
  "llama.attention.layer_norm_rms_epsilon": 1e-05, "llama.vocab_size": 128256,
  "llama.rope.dimension_count": 128})";

struct Case {
  const char* model;  // of the catalogue, whose count is that of the published checkpoint
  const char* metadata;
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> tensors;
};

std::vector<Case> Cases() {
  return {
      {"llama-3.1-8b", kLlama31, {{"output.weight", {128256, 4096}}}},
      {"qwen3-8b",
       R"({"general.architecture": "qwen3", "qwen3.block_count": 36, "qwen3.context_length": 40960,
           "qwen3.embedding_length": 4096, "qwen3.feed_forward_length": 12288,
           "qwen3.attention.head_count": 32, "qwen3.attention.head_count_kv": 8,
           "qwen3.attention.key_length": 128, "qwen3.attention.value_length": 128})",
       {{"token_embd.weight", {151936, 4096}}, {"output.weight", {151936, 4096}}}},
      {"gemma-2-2b",
       R"({"general.architecture": "gemma2", "gemma2.context_length": 8192,
           "gemma2.embedding_length": 2304, "gemma2.block_count": 26,
           "gemma2.feed_forward_length": 9216, "gemma2.attention.head_count": 8,
           "gemma2.attention.head_count_kv": 4, "gemma2.attention.key_length": 256,
           "gemma2.attention.value_length": 256, "gemma2.attention.sliding_window": 4096})",
       {{"token_embd.weight", {256000, 2304}}}},
      {"mixtral-8x7b",
       R"({"general.architecture": "llama", "llama.context_length": 32768,
           "llama.embedding_length": 4096, "llama.block_count": 32,
           "llama.feed_forward_length": 14336, "llama.attention.head_count": 32,
           "llama.attention.head_count_kv": 8, "llama.expert_count": 8,
           "llama.expert_used_count": 2, "llama.rope.dimension_count": 128})",
       {{"token_embd.weight", {32000, 4096}}, {"output.weight", {32000, 4096}}}},
      {"deepseek-v3",
       R"({"general.architecture": "deepseek2", "deepseek2.block_count": 61,
           "deepseek2.context_length": 163840, "deepseek2.embedding_length": 7168,
           "deepseek2.feed_forward_length": 18432, "deepseek2.attention.head_count": 128,
           "deepseek2.attention.head_count_kv": 1, "deepseek2.expert_used_count": 8,
           "deepseek2.leading_dense_block_count": 3, "deepseek2.vocab_size": 129280,
           "deepseek2.attention.q_lora_rank": 1536, "deepseek2.attention.kv_lora_rank": 512,
           "deepseek2.attention.key_length": 576, "deepseek2.attention.value_length": 512,
           "deepseek2.attention.key_length_mla": 192, "deepseek2.attention.value_length_mla": 128,
           "deepseek2.expert_feed_forward_length": 2048, "deepseek2.expert_count": 256,
           "deepseek2.expert_shared_count": 1, "deepseek2.expert_weights_norm": true,
           "deepseek2.expert_gating_func": 2, "deepseek2.rope.dimension_count": 64})",
       {{"output.weight", {129280, 7168}}, {"blk.3.exp_probs_b.bias", {256}}}},
      {"qwen3-30b-a3b",
       R"({"general.architecture": "qwen3moe", "qwen3moe.block_count": 48,
           "qwen3moe.embedding_length": 2048, "qwen3moe.feed_forward_length": 6144,
           "qwen3moe.attention.head_count": 32, "qwen3moe.attention.head_count_kv": 4,
           "qwen3moe.expert_used_count": 8, "qwen3moe.attention.key_length": 128,
           "qwen3moe.expert_count": 128, "qwen3moe.expert_feed_forward_length": 768})",
       {{"token_embd.weight", {151936, 2048}}, {"output.weight", {151936, 2048}}}},
      {"gpt-oss-20b",
       R"({"general.architecture": "gpt-oss", "gpt-oss.block_count": 24,
           "gpt-oss.context_length": 131072, "gpt-oss.embedding_length": 2880,
           "gpt-oss.feed_forward_length": 2880, "gpt-oss.attention.head_count": 64,
           "gpt-oss.attention.head_count_kv": 8, "gpt-oss.expert_count": 32,
           "gpt-oss.expert_used_count": 4, "gpt-oss.attention.key_length": 64,
           "gpt-oss.attention.value_length": 64, "gpt-oss.attention.sliding_window": 128,
           "gpt-oss.expert_feed_forward_length": 2880})",
       {{"token_embd.weight", {201088, 2880}}, {"output.weight", {201088, 2880}}}},
      {"qwen3.5-35b-a3b",
       R"({"general.architecture": "qwen35moe", "qwen35moe.block_count": 41,
           "qwen35moe.nextn_predict_layers": 1, "qwen35moe.embedding_length": 2048,
           "qwen35moe.attention.head_count": 16, "qwen35moe.attention.head_count_kv": 2,
           "qwen35moe.attention.key_length": 256, "qwen35moe.attention.value_length": 256,
           "qwen35moe.expert_count": 256, "qwen35moe.expert_used_count": 8,
           "qwen35moe.expert_feed_forward_length": 512,
           "qwen35moe.expert_shared_feed_forward_length": 512, "qwen35moe.ssm.conv_kernel": 4,
           "qwen35moe.ssm.state_size": 128, "qwen35moe.ssm.group_count": 16,
           "qwen35moe.ssm.time_step_rank": 32, "qwen35moe.ssm.inner_size": 4096,
           "qwen35moe.full_attention_interval": 4})",
       {{"token_embd.weight", {248320, 2048}}, {"output.weight", {248320, 2048}}}},
      {"minimax-m2.5",
       R"({"general.architecture": "minimax-m2", "minimax-m2.block_count": 62,
           "minimax-m2.embedding_length": 3072, "minimax-m2.feed_forward_length": 1536,
           "minimax-m2.attention.head_count": 48, "minimax-m2.attention.head_count_kv": 8,
           "minimax-m2.expert_count": 256, "minimax-m2.expert_used_count": 8,
           "minimax-m2.attention.key_length": 128, "minimax-m2.rope.dimension_count": 64,
           "minimax-m2.expert_feed_forward_length": 1536})",
       {{"token_embd.weight", {200064, 3072}}, {"output.weight", {200064, 3072}}}},
      {"phi-4-mini",
       R"({"general.architecture": "phi3", "phi3.block_count": 32, "phi3.embedding_length": 3072,
           "phi3.feed_forward_length": 8192, "phi3.attention.head_count": 24,
           "phi3.attention.head_count_kv": 8, "phi3.rope.dimension_count": 96,
           "phi3.attention.sliding_window": 262144})",
       {{"token_embd.weight", {200064, 3072}}}},
      {"falcon-7b",
       R"({"general.architecture": "falcon", "falcon.block_count": 32,
           "falcon.embedding_length": 4544, "falcon.feed_forward_length": 18176,
           "falcon.attention.head_count": 71, "falcon.attention.head_count_kv": 1})",
       {{"token_embd.weight", {65024, 4544}}}},
      {"gpt2",
       R"({"general.architecture": "gpt2", "gpt2.block_count": 12, "gpt2.context_length": 1024,
           "gpt2.embedding_length": 768, "gpt2.feed_forward_length": 3072,
           "gpt2.attention.head_count": 12})",
       {{"token_embd.weight", {50257, 768}}, {"position_embd.weight", {1024, 768}}}},
      {"pythia-6.9b",
       R"({"general.architecture": "gptneox", "gptneox.block_count": 32,
           "gptneox.embedding_length": 4096, "gptneox.feed_forward_length": 16384,
           "gptneox.attention.head_count": 32, "gptneox.rope.dimension_count": 32,
           "gptneox.use_parallel_residual": true})",
       {{"token_embd.weight", {50432, 4096}}, {"output.weight", {50432, 4096}}}},
      {"phi-2",
       R"({"general.architecture": "phi2", "phi2.block_count": 32, "phi2.embedding_length": 2560,
           "phi2.feed_forward_length": 10240, "phi2.attention.head_count": 32,
           "phi2.attention.head_count_kv": 32, "phi2.rope.dimension_count": 32})",
       {{"token_embd.weight", {51200, 2560}}, {"output.weight", {51200, 2560}}}},
  };
}

TEST(GgufConfig, GivesTheCountsOfTheCheckpoints) {
  const std::vector<ModelRecord> records = ModelRecords();
  for (const Case& one : Cases()) {
    const auto record = std::ranges::find_if(
        records, [&one](const ModelRecord& candidate) { return candidate.names.id == one.model; });
    ASSERT_NE(record, records.end()) << one.model;
    const Result<Network> network = NetworkOf(one.metadata, Tensors(one.tensors));
    ASSERT_TRUE(network) << one.model << ": " << ErrorLine(network);
    EXPECT_EQ(ParameterCount(*network), record->parameters) << one.model;
    const Result<Network> named = NetworkFromConfig(record->config, one.model);
    ASSERT_TRUE(named) << one.model;
    EXPECT_EQ(network->caches.size(), named->caches.size()) << one.model;
    EXPECT_EQ(network->vocab_size, named->vocab_size) << one.model;
  }
}

TEST(GgufConfig, ReadsWindowsAndHeadsLayerByLayer) {
  // The layout of Gemma 4 26B-A4B: the sixth layer of six sees all, with two heads of 512.
  std::string pattern;
  std::string heads;
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> tensors = {
      {"token_embd.weight", {262144, 2816}}};
  for (int layer = 0; layer < 30; ++layer) {
    const bool windowed = layer % 6 != 5;
    pattern += fmt::format("{}{}", layer == 0 ? "" : ",", windowed);
    heads += fmt::format("{}{}", layer == 0 ? "" : ",", windowed ? 8 : 2);
    tensors.push_back({fmt::format("blk.{}.attn_k.weight", layer), {}});
    if (windowed) {
      tensors.push_back({fmt::format("blk.{}.attn_v.weight", layer), {}});
    }
  }
  const std::string metadata = fmt::format(
      R"({{"general.architecture": "gemma4", "gemma4.block_count": 30,
           "gemma4.context_length": 262144, "gemma4.embedding_length": 2816,
           "gemma4.feed_forward_length": 2112, "gemma4.attention.head_count": 16,
           "gemma4.attention.head_count_kv": [{}], "gemma4.attention.key_length": 512,
           "gemma4.attention.key_length_swa": 256, "gemma4.attention.sliding_window": 1024,
           "gemma4.attention.sliding_window_pattern": [{}],
           "gemma4.attention.shared_kv_layers": 0, "gemma4.embedding_length_per_layer_input": 0,
           "gemma4.expert_count": 128, "gemma4.expert_used_count": 8,
           "gemma4.expert_feed_forward_length": 704}})",
      heads, pattern);
  const Result<Network> network = NetworkOf(metadata, Tensors(tensors));
  ASSERT_TRUE(network) << ErrorLine(network);
  const Result<Model> named = FindModel("gemma-4-26b-a4b");
  ASSERT_TRUE(named);
  EXPECT_EQ(ParameterCount(*network), ParameterCount(named->network));
  EXPECT_EQ(network->caches[5].key_elements_per_token, 2 * 512);
  EXPECT_EQ(network->caches[4].window, 1024);
}

TEST(GgufConfig, ReadsTheKindOfALayerOffItsTensors) {
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> tensors = {
      {"token_embd.weight", {131072, 2688}},
      {"output.weight", {131072, 2688}},
      {"blk.0.ssm_conv1d.bias", {6144}}};
  const std::string pattern = "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME";
  std::string heads;
  for (std::size_t layer = 0; layer < pattern.size(); ++layer) {
    const char letter = pattern[layer];
    tensors.push_back({fmt::format("blk.{}.{}.weight", layer,
                                   letter == 'M'   ? "ssm_in"
                                   : letter == '*' ? "attn_q"
                                                   : "ffn_gate_inp"),
                       {}});
    heads += fmt::format("{}{}", layer == 0 ? "" : ",", letter == '*' ? 2 : 0);
  }
  const std::string metadata = fmt::format(
      R"({{"general.architecture": "nemotron_h_moe", "nemotron_h_moe.block_count": 52,
           "nemotron_h_moe.embedding_length": 2688, "nemotron_h_moe.attention.head_count": 32,
           "nemotron_h_moe.attention.head_count_kv": [{}],
           "nemotron_h_moe.attention.key_length": 128, "nemotron_h_moe.ssm.conv_kernel": 4,
           "nemotron_h_moe.ssm.state_size": 128, "nemotron_h_moe.ssm.group_count": 8,
           "nemotron_h_moe.ssm.time_step_rank": 64, "nemotron_h_moe.ssm.inner_size": 4096,
           "nemotron_h_moe.expert_count": 128, "nemotron_h_moe.expert_used_count": 6,
           "nemotron_h_moe.expert_shared_count": 1,
           "nemotron_h_moe.expert_feed_forward_length": 1856,
           "nemotron_h_moe.expert_shared_feed_forward_length": 3712}})",
      heads);
  const Result<Network> network = NetworkOf(metadata, Tensors(tensors));
  ASSERT_TRUE(network) << ErrorLine(network);
  const Result<Model> named = FindModel("nemotron-3-nano-30b-a3b");
  ASSERT_TRUE(named);
  EXPECT_EQ(ParameterCount(*network), ParameterCount(named->network));
}

TEST(GgufConfig, KeysAreReadWhole) {
  // What shares an ending belongs to a picture's encoder or a draft.
  std::string metadata = kLlama31;
  metadata.insert(1,
                  R"("clip.vision.attention.head_count": 16, "llama.attention.head_count_kv_x": 3,
                         "draft.llama.block_count": 2, )");
  const Result<Network> network = NetworkOf(metadata, Tensors({{"output.weight", {128256, 4096}}}));
  ASSERT_TRUE(network) << ErrorLine(network);
  EXPECT_EQ(ParameterCount(*network), 8'030'261'248);
}

TEST(GgufConfig, TakesTheVocabularyFromTheTokenizerAtLast) {
  std::vector<MetadataEntry> metadata = Metadata(kLlama31);
  std::erase_if(metadata, [](const auto& entry) { return entry.key == "llama.vocab_size"; });
  metadata.push_back({.key = "tokenizer.ggml.tokens", .array_length = 128'000});
  const Result<Json> config = ConfigFromGguf(metadata, {}, "a.gguf");
  ASSERT_TRUE(config) << ErrorLine(config);
  EXPECT_EQ(*config->Find("vocab_size")->AsInteger(), 128'000);
  EXPECT_TRUE(*config->Find("tie_word_embeddings")->AsBool());
}

TEST(GgufConfig, RefusesWhatItDoesNotKnow) {
  const auto refusal = [](std::string_view metadata) {
    return ErrorLine(ConfigFromGguf(Metadata(metadata), {}, "a.gguf"));
  };
  EXPECT_TRUE(refusal(R"({"general.architecture": "rwkv7"})")
                  .starts_with("a.gguf: general.architecture | unknown architecture \"rwkv7\" | "
                               "expected one of those known here | give the folder with the "
                               "model's config.json; known: bert, bloom, "));
  EXPECT_EQ(refusal("{}"),
            "a.gguf: general.architecture | missing | expected the name of an architecture | "
            "give the folder with the model's config.json");
  EXPECT_EQ(refusal(R"({"general.type": "adapter", "general.architecture": "llama"})"),
            "a.gguf | general.type is the string \"adapter\" | expected a model | give the model "
            "that it belongs to");
}

TEST(GgufConfig, RefusesAKeyThatMisfits) {
  const auto with = [](std::string_view key, Json value) {
    std::vector<MetadataEntry> metadata = Metadata(kLlama31);
    std::ranges::find(metadata, key, &MetadataEntry::key)->value = std::move(value);
    return ErrorLine(ConfigFromGguf(metadata, {}, "a.gguf"));
  };
  EXPECT_EQ(with("llama.embedding_length", Json()),
            "a.gguf: llama.embedding_length | null | expected a whole number from 1 to "
            "1073741824 | ");
  EXPECT_EQ(with("llama.block_count", "32"),
            "a.gguf: llama.block_count | the string \"32\" | expected a whole number from 1 to "
            "4096 | write the number without quotes");
  EXPECT_EQ(with("llama.attention.head_count", 0),
            "a.gguf: llama.attention.head_count | 0 | expected a whole number from 1 to "
            "1073741824 | ");
  EXPECT_EQ(with("llama.attention.head_count_kv", Json::Array{8, 4}),
            "a.gguf: llama.attention.head_count_kv | 2 layers | expected block_count, 32 | ");
  Json::Array uneven(32, 8);
  uneven[3] = 4;
  EXPECT_EQ(with("llama.attention.head_count_kv", uneven),
            "a.gguf: llama.attention.head_count_kv | 8 in some layers and 4 in others | expected "
            "the same in all layers of this architecture | give the folder with the model's "
            "config.json");
  EXPECT_EQ(with("llama.attention.head_count_kv", Json::Array(32, 8)), "no error");
}

TEST(GgufConfig, EveryArchitectureHasANetwork) {
  const std::vector<std::string_view> known = KnownGgufArchitectures();
  EXPECT_TRUE(std::ranges::is_sorted(known));
  for (const std::string_view architecture : known) {
    Json::Object keys;
    const std::pair<std::string_view, int> values[] = {{"block_count", 4},
                                                       {"embedding_length", 64},
                                                       {"feed_forward_length", 128},
                                                       {"attention.head_count", 4},
                                                       {"attention.head_count_kv", 2},
                                                       {"attention.key_length", 16},
                                                       {"attention.value_length", 16},
                                                       {"attention.key_length_swa", 8},
                                                       {"attention.sliding_window", 32},
                                                       {"attention.sliding_window_pattern", 1},
                                                       {"expert_count", 4},
                                                       {"expert_used_count", 2},
                                                       {"expert_feed_forward_length", 16},
                                                       {"context_length", 128},
                                                       {"vocab_size", 100},
                                                       {"rope.dimension_count", 8},
                                                       {"attention.kv_lora_rank", 16},
                                                       {"attention.q_lora_rank", 16},
                                                       {"attention.indexer.head_count", 2},
                                                       {"attention.indexer.key_length", 8},
                                                       {"ssm.conv_kernel", 4},
                                                       {"ssm.inner_size", 64},
                                                       {"ssm.state_size", 8},
                                                       {"ssm.time_step_rank", 8},
                                                       {"ssm.group_count", 2},
                                                       {"attention.key_length_mla", 16},
                                                       {"attention.value_length_mla", 16},
                                                       {"kda.head_dim", 16},
                                                       {"shortconv.l_cache", 3}};
    std::vector<MetadataEntry> metadata = {{.key = "general.architecture", .value = architecture}};
    for (const auto& [key, value] : values) {
      metadata.push_back({.key = fmt::format("{}.{}", architecture, key), .value = value});
    }
    const Result<Json> config = ConfigFromGguf(metadata, {}, "a.gguf");
    ASSERT_TRUE(config) << architecture << ": " << ErrorLine(config);
    const Result<Network> network = NetworkFromConfig(*config, "a.gguf");
    EXPECT_TRUE(network) << architecture << ": " << ErrorLine(network);
  }
}

TEST(GgufConfig, RefusesKeyValueHeadsThatAreNone) {
  const auto network = NetworkOf(R"({"general.architecture": "llama", "llama.block_count": 2,
      "llama.embedding_length": 64, "llama.feed_forward_length": 128,
      "llama.attention.head_count": 4, "llama.attention.head_count_kv": 0,
      "llama.vocab_size": 100})",
                                 {});
  EXPECT_EQ(ErrorLine(network),
            "a.gguf: llama.attention.head_count_kv | 0 | expected a whole number from 1 to "
            "1073741824 | ");
}

}  // namespace
}  // namespace fourpiles
