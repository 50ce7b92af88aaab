#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "model/catalogue.h"
#include "model/from_config.h"
#include "model/test_configs.h"

namespace fourpiles {
namespace {

std::vector<std::string> Names(const Network& network) {
  std::vector<std::string> names;
  ForEachTensor(network, [&names](const NamedTensor& tensor) { names.push_back(tensor.name); });
  return names;
}

// model.safetensors.index.json of alpindale/WizardLM-2-8x22B, a Mixtral-8x22B: 1739 tensors.

// Defaults of Hugging Face's configuration classes: transformers,
// models/NAME/configuration_NAME.py.
struct DefaultCase {
  const char* left_out;
  const char* spelled_out;
};

TEST(NetworkFromConfig, TakesTheFamilysDefaultForAKeyThatIsLeftOut) {
  const std::string sizes =
      R"("hidden_size": 512, "num_hidden_layers": 8, "intermediate_size": 64, )";
  const DefaultCase cases[] = {
      {R"("model_type": "gemma", "num_attention_heads": 8, "vocab_size": 10)",
       R"("head_dim": 256, "tie_word_embeddings": true)"},
      {R"("model_type": "gemma2", "num_attention_heads": 8, "vocab_size": 10)",
       R"("head_dim": 256, "tie_word_embeddings": true, "sliding_window": 4096)"},
      {R"("model_type": "gemma3_text")",
       R"("head_dim": 256, "tie_word_embeddings": true, "sliding_window": 4096,
          "num_attention_heads": 8, "num_key_value_heads": 4, "vocab_size": 262208)"},
      {R"("model_type": "gpt_oss", "num_attention_heads": 4, "vocab_size": 10)",
       R"("head_dim": 64, "tie_word_embeddings": false, "sliding_window": 128,
          "num_local_experts": 128)"},
      {R"("model_type": "mixtral", "num_attention_heads": 4, "vocab_size": 10)",
       R"("num_local_experts": 8, "tie_word_embeddings": false, "sliding_window": null)"},
      {R"("model_type": "olmo3", "num_attention_heads": 4, "vocab_size": 10)",
       R"("tie_word_embeddings": false, "sliding_window": 4096)"},
      {R"("model_type": "qwen3", "num_attention_heads": 8, "vocab_size": 10)",
       R"("head_dim": 128, "tie_word_embeddings": false)"},
  };
  for (const DefaultCase& row : cases) {
    const Result<Network> without = FromText("{" + sizes + row.left_out + "}");
    const Result<Network> with =
        FromText("{" + sizes + row.left_out + ", " + row.spelled_out + "}");
    ASSERT_TRUE(without) << Message(without.error());
    ASSERT_TRUE(with) << Message(with.error());
    ASSERT_EQ(without->blocks.size(), with->blocks.size()) << row.left_out;
    for (std::size_t block = 0; block < with->blocks.size(); ++block) {
      EXPECT_EQ(without->blocks[block].parameters, with->blocks[block].parameters) << row.left_out;
    }
    for (std::size_t layer = 0; layer < with->caches.size(); ++layer) {
      EXPECT_EQ(without->caches[layer].window, with->caches[layer].window) << row.left_out;
    }
  }
}

// The text_config of google/gemma-3-4b-pt as its config.json has it. By hand: 262208 x 2560 words;
// 34 layers of (2048 + 2 x 1024 + 2048) x 2560 attention, 3 x 10240 x 2560 feed-forward, four norms
// of 2560 and two of 256; and a last norm.
TEST(NetworkFromConfig, ReadsATextConfigThatReliesOnDefaults) {
  const Result<Network> network = FromText(
      R"({"model_type": "gemma3",
          "text_config": {"hidden_size": 2560, "intermediate_size": 10240,
                          "model_type": "gemma3_text", "num_hidden_layers": 34,
                          "sliding_window": 1024}})");
  ASSERT_TRUE(network) << Message(network.error());
  EXPECT_EQ(ParameterCount(*network),
            262'208LL * 2560 + 34 * (6144LL * 2560 + 3LL * 10'240 * 2560 + 4 * 2560 + 512) + 2560);
}

TEST(NetworkFromConfig, RequiresAKeyWithoutAFamilyDefault) {
  EXPECT_EQ(RefusalOf(R"({"model_type": "minimax_m2", "hidden_size": 64, "num_hidden_layers": 1,
                          "num_attention_heads": 1, "intermediate_size": 8, "vocab_size": 8})"),
            "error: config.json: num_local_experts: nothing, expected a whole number from 1 to "
            "65536");
}

// Qwen3MoeConfig has no head_dim; its attention then divides hidden_size (modeling_qwen3_moe.py).
TEST(NetworkFromConfig, DividesTheWidthOfAQwen3MixtureByItsHeads) {
  const Result<Network> network = FromText(
      R"({"model_type": "qwen3_moe", "hidden_size": 64, "num_hidden_layers": 1,
          "num_attention_heads": 4, "num_key_value_heads": 4, "num_experts": 2,
          "moe_intermediate_size": 8, "vocab_size": 8})");
  ASSERT_TRUE(network) << Message(network.error());
  EXPECT_EQ(network->blocks[1].parameters[0].shape, (std::vector<std::int64_t>{64, 64}));
}

// transformers, models/olmo3/configuration_olmo3.py: sliding where (i + 1) % 4 is not 0.
TEST(NetworkFromConfig, GivesEveryFourthLayerOfOlmo3TheWholeContext) {
  const Result<Network> network = FromText(
      R"({"model_type": "olmo3", "hidden_size": 64, "num_hidden_layers": 8, "sliding_window": 16,
          "num_attention_heads": 4, "intermediate_size": 64, "vocab_size": 10})");
  ASSERT_TRUE(network) << Message(network.error());
  for (const Cache& cache : network->caches) {
    const bool full = cache.layer == 3 || cache.layer == 7;
    EXPECT_EQ(cache.window, full ? std::nullopt : std::optional<std::int64_t>(16)) << cache.layer;
  }
}

// --- Heads of BERT ---

struct BertCase {
  const char* architecture;
  const char* last;  // tensor
  std::int64_t added;
};

// By hand, over the embeddings and layers: a pooler has 64 x 64 + 64 = 4160, the words' head
// 4160 + 2 x 64 + 10 = 4298, and k labels have 65 k.
TEST(NetworkFromConfig, CountsTheHeadOfEachBert) {
  const BertCase cases[] = {
      {"BertModel", "pooler.dense.bias", 4160},
      {"BertForMaskedLM", "cls.predictions.transform.LayerNorm.bias", 4298},
      {"BertForPreTraining", "cls.seq_relationship.bias", 4160 + 4298 + 130},
      {"BertForSequenceClassification", "classifier.bias", 4160 + 195},
      {"BertForTokenClassification", "classifier.bias", 195},
      {"BertForQuestionAnswering", "qa_outputs.bias", 130},
      {"BertForPoetry", "pooler.dense.bias", 4160},
  };
  // (10 + 16 + 2) x 64 + 128 embeddings; 4 x 4160 + 128 x 64 + 128 + 64 x 128 + 64 + 256 a layer.
  constexpr std::int64_t kWithoutHead = 1920 + 33'472;
  for (const BertCase& row : cases) {
    const Result<Network> network =
        FromText(std::string(R"({"architectures": [")") + row.architecture +
                 R"("], "model_type": "bert", "hidden_size": 64, "num_hidden_layers": 1,
            "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 10,
            "max_position_embeddings": 16, "id2label": {"0": "a", "1": "b", "2": "c"}})");
    ASSERT_TRUE(network) << Message(network.error());
    EXPECT_EQ(ParameterCount(*network), kWithoutHead + row.added) << row.architecture;
    EXPECT_EQ(Names(*network).back(), row.last) << row.architecture;
    const bool unknown = std::string_view(row.architecture) == "BertForPoetry";
    EXPECT_EQ(network->left_out, unknown ? std::vector<std::string>{"the head of BertForPoetry"}
                                         : std::vector<std::string>{})
        << row.architecture;
  }
}

// --- Quantization ---

TEST(NetworkFromConfig, NamesTheMethodOfAQuantizedCheckpoint) {
  const std::string text = Llama("quantization_config", R"({"quant_method": "fp8"})");
  const std::string cases[][2] = {
      {Llama(), ""},
      {text, "fp8"},
      {Llama("quantization_config", "{}"), "unknown method"},
      {R"({"model_type": "gemma3", "text_config": )" + text + "}", "fp8"},
      {R"({"model_type": "gemma3", "quantization_config": {"quant_method": "awq"},
           "text_config": )" +
           Llama() + "}",
       "awq"},
  };
  for (const auto& [config, method] : cases) {
    const Result<Network> network = FromText(config);
    ASSERT_TRUE(network) << Message(network.error());
    EXPECT_EQ(network->quantization, method) << config;
  }
}

TEST(NetworkFromConfig, RefusesAQuantizationThatIsNoObject) {
  EXPECT_EQ(RefusalOf(Llama("quantization_config", "\"fp8\"")),
            "error: config.json: quantization_config: the string \"fp8\", expected an object");
}

TEST(NetworkFromConfig, RefusesKeyHeadsOfFalconThatDoNotDivideItsHeads) {
  EXPECT_EQ(RefusalOf(R"({"model_type": "falcon", "hidden_size": 64, "num_hidden_layers": 1,
                          "num_attention_heads": 4, "num_kv_heads": 3, "vocab_size": 8,
                          "new_decoder_architecture": true})"),
            "error: config.json: num_kv_heads: 3, expected a divisor of num_attention_heads, 4");
}

TEST(NetworkFromConfig, TakesPlainLayersInAnyOrder) {
  const Result<Network> network = FromText(
      R"({"model_type": "qwen3_moe", "hidden_size": 64, "num_hidden_layers": 4,
          "num_attention_heads": 4, "num_key_value_heads": 4, "num_experts": 2,
          "moe_intermediate_size": 8, "intermediate_size": 8, "vocab_size": 8,
          "mlp_only_layers": [3, 0]})");
  ASSERT_TRUE(network) << Message(network.error());
  ASSERT_EQ(network->blocks.size(), 6u);  // the words, three runs of layers, a norm, the head
  EXPECT_EQ(network->blocks[2].first, 1);
  EXPECT_EQ(network->blocks[2].repeat, 2);
}

// --- What is refused ---

}  // namespace
}  // namespace fourpiles
