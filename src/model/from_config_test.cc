#include "model/from_config.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "model/catalogue.h"
#include "model/test_configs.h"

namespace fourpiles {
namespace {

// --- Totals and names that others state ---

struct KnownModel {
  const char* name;
  const char* config;
  std::int64_t parameters;
};

// The totals are those that the Hugging Face pages of the models print for their checkpoints.
constexpr KnownModel kKnownModels[] = {
    {"facebook/opt-125m",
     R"({"model_type": "opt", "hidden_size": 768, "num_hidden_layers": 12,
         "num_attention_heads": 12, "ffn_dim": 3072, "vocab_size": 50272,
         "max_position_embeddings": 2048, "word_embed_proj_dim": 768,
         "do_layer_norm_before": true})",
     125'239'296},
    {"facebook/opt-350m",
     R"({"model_type": "opt", "hidden_size": 1024, "num_hidden_layers": 24,
         "num_attention_heads": 16, "ffn_dim": 4096, "vocab_size": 50272,
         "max_position_embeddings": 2048, "word_embed_proj_dim": 512,
         "do_layer_norm_before": false})",
     331'196'416},
    {"bigscience/bloom-560m",
     R"({"model_type": "bloom", "n_embed": 1024, "n_layer": 24, "num_attention_heads": 16,
         "vocab_size": 250880})",
     559'214'592},
    {"EleutherAI/gpt-j-6b",
     R"({"model_type": "gptj", "n_embd": 4096, "n_layer": 28, "n_head": 16, "n_inner": null,
         "n_positions": 2048, "vocab_size": 50400, "tie_word_embeddings": false})",
     6'050'882'784},
    {"EleutherAI/pythia-2.8b",
     R"({"model_type": "gpt_neox", "hidden_size": 2560, "num_hidden_layers": 32,
         "num_attention_heads": 32, "intermediate_size": 10240, "vocab_size": 50304})",
     2'775'208'960},
    {"tiiuae/falcon-40b",
     R"({"model_type": "falcon", "hidden_size": 8192, "num_hidden_layers": 60,
         "num_attention_heads": 128, "num_kv_heads": 8, "new_decoder_architecture": true,
         "parallel_attn": true, "bias": false, "vocab_size": 65024})",
     41'303'293'952},
    {"microsoft/phi-1_5",
     R"({"model_type": "phi", "hidden_size": 2048, "num_hidden_layers": 24,
         "num_attention_heads": 32, "intermediate_size": 8192, "vocab_size": 51200})",
     1'418'270'720},
    {"google/gemma-2b",
     R"({"model_type": "gemma", "hidden_size": 2048, "num_hidden_layers": 18,
         "num_attention_heads": 8, "num_key_value_heads": 1, "head_dim": 256,
         "intermediate_size": 16384, "vocab_size": 256000})",
     2'506'172'416},
    {"CohereForAI/c4ai-command-r-v01",
     R"({"model_type": "cohere", "hidden_size": 8192, "num_hidden_layers": 40,
         "num_attention_heads": 64, "num_key_value_heads": 64, "intermediate_size": 22528,
         "vocab_size": 256000})",
     34'980'831'232},
    {"CohereForAI/c4ai-command-r-plus",
     R"({"model_type": "cohere", "hidden_size": 12288, "num_hidden_layers": 64,
         "num_attention_heads": 96, "num_key_value_heads": 8, "intermediate_size": 33792,
         "use_qk_norm": true, "vocab_size": 256000})",
     103'810'674'688},
    {"zai-org/GLM-4-32B-0414",
     R"({"model_type": "glm4", "hidden_size": 6144, "num_hidden_layers": 61,
         "num_attention_heads": 48, "num_key_value_heads": 2, "head_dim": 128,
         "intermediate_size": 23040, "vocab_size": 151552, "attention_bias": false,
         "tie_word_embeddings": false})",
     32'566'081'536},
    {"Qwen/Qwen-7B",
     R"({"model_type": "qwen", "hidden_size": 4096, "num_hidden_layers": 32,
         "num_attention_heads": 32, "kv_channels": 128, "intermediate_size": 22016,
         "vocab_size": 151936, "tie_word_embeddings": false})",
     7'721'324'544},
    {"Qwen/Qwen1.5-MoE-A2.7B",
     R"({"model_type": "qwen2_moe", "hidden_size": 2048, "num_hidden_layers": 24,
         "num_attention_heads": 16, "num_key_value_heads": 16, "intermediate_size": 5632,
         "moe_intermediate_size": 1408, "shared_expert_intermediate_size": 5632,
         "num_experts": 60, "decoder_sparse_step": 1, "vocab_size": 151936})",
     14'315'784'192},
    {"Qwen/Qwen3-Next-80B-A3B-Instruct",
     R"({"model_type": "qwen3_next", "hidden_size": 2048, "num_hidden_layers": 48,
         "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 256,
         "full_attention_interval": 4, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128,
         "linear_num_key_heads": 16, "linear_num_value_heads": 32, "linear_value_head_dim": 128,
         "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512,
         "num_experts": 512, "decoder_sparse_step": 1, "mlp_only_layers": [],
         "vocab_size": 151936})",
     79'674'391'296},
    {"deepseek-ai/DeepSeek-V2-Lite",
     R"({"model_type": "deepseek_v2", "hidden_size": 2048, "num_hidden_layers": 27,
         "num_attention_heads": 16, "q_lora_rank": null, "kv_lora_rank": 512,
         "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
         "intermediate_size": 10944, "moe_intermediate_size": 1408, "n_routed_experts": 64,
         "n_shared_experts": 2, "first_k_dense_replace": 1, "moe_layer_freq": 1,
         "topk_method": "greedy", "vocab_size": 102400})",
     15'706'484'224},
    {"deepseek-ai/DeepSeek-V2",
     R"({"model_type": "deepseek_v2", "hidden_size": 5120, "num_hidden_layers": 60,
         "num_attention_heads": 128, "q_lora_rank": 1536, "kv_lora_rank": 512,
         "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
         "intermediate_size": 12288, "moe_intermediate_size": 1536, "n_routed_experts": 160,
         "n_shared_experts": 2, "first_k_dense_replace": 1, "moe_layer_freq": 1,
         "topk_method": "group_limited_greedy", "vocab_size": 102400})",
     235'741'434'880},
    {"CohereForAI/c4ai-command-r7b-12-2024",
     R"({"model_type": "cohere2", "hidden_size": 4096, "num_hidden_layers": 32,
         "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
         "sliding_window": 4096, "sliding_window_pattern": 4, "vocab_size": 256000})",
     8'028'033'024},
    {"ibm-granite/granite-3.1-8b-instruct",
     R"({"model_type": "granite", "hidden_size": 4096, "num_hidden_layers": 40,
         "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 12800,
         "vocab_size": 49155, "tie_word_embeddings": true})",
     8'170'848'256},
    {"ibm-granite/granite-guardian-3.2-3b-a800m",
     R"({"model_type": "granitemoe", "hidden_size": 1536, "num_hidden_layers": 32,
         "num_attention_heads": 24, "num_key_value_heads": 8, "intermediate_size": 512,
         "num_local_experts": 40, "num_experts_per_tok": 8, "vocab_size": 49155,
         "tie_word_embeddings": true})",
     3'298'793'472},
    {"HuggingFaceTB/SmolLM3-3B",
     R"({"model_type": "smollm3", "hidden_size": 2048, "num_hidden_layers": 36,
         "num_attention_heads": 16, "num_key_value_heads": 4, "intermediate_size": 11008,
         "vocab_size": 128256})",
     3'075'098'624},
    {"LGAI-EXAONE/EXAONE-4.0-32B",
     R"({"model_type": "exaone4", "hidden_size": 5120, "num_hidden_layers": 64,
         "num_attention_heads": 40, "num_key_value_heads": 8, "head_dim": 128,
         "intermediate_size": 27392, "sliding_window": 4096, "vocab_size": 102400})",
     32'003'216'384},
    {"ByteDance-Seed/Seed-OSS-36B-Instruct",
     R"({"model_type": "seed_oss", "hidden_size": 5120, "num_hidden_layers": 64,
         "num_attention_heads": 80, "num_key_value_heads": 8, "head_dim": 128,
         "intermediate_size": 27648, "attention_bias": true, "attention_out_bias": false,
         "vocab_size": 155136})",
     36'151'104'512},
    {"baidu/ERNIE-4.5-0.3B-PT",
     R"({"model_type": "ernie4_5", "hidden_size": 1024, "num_hidden_layers": 18,
         "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 128,
         "intermediate_size": 3072, "vocab_size": 103424})",
     360'748'032},
    {"bigcode/starcoderbase-1b",
     R"({"model_type": "gpt_bigcode", "n_embd": 2048, "n_layer": 24, "n_head": 16,
         "n_inner": 8192, "n_positions": 8192, "multi_query": true, "vocab_size": 49152})",
     1'137'207'296},
    {"bigcode/starcoder2-3b",
     R"({"model_type": "starcoder2", "hidden_size": 3072, "num_hidden_layers": 30,
         "num_attention_heads": 24, "num_key_value_heads": 2, "intermediate_size": 12288,
         "use_bias": true, "sliding_window": 4096, "vocab_size": 49152})",
     3'030'371'328},
    {"stabilityai/stablelm-2-1_6b",
     R"({"model_type": "stablelm", "hidden_size": 2048, "num_hidden_layers": 24,
         "num_attention_heads": 32, "num_key_value_heads": 32, "intermediate_size": 5632,
         "use_qkv_bias": true, "vocab_size": 100352})",
     1'644'515'328},
    {"stabilityai/stablelm-2-12b",
     R"({"model_type": "stablelm", "hidden_size": 5120, "num_hidden_layers": 40,
         "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 13824,
         "qk_layernorm": true, "use_parallel_residual": true, "vocab_size": 100352})",
     12'143'185'920},
    {"google-bert/bert-large-uncased without a head",
     R"({"architectures": ["BertModel"], "model_type": "bert", "hidden_size": 1024,
         "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096,
         "vocab_size": 30522, "max_position_embeddings": 512, "type_vocab_size": 2})",
     335'141'888},
    {"google/vit-base-patch16-224-in21k",
     R"({"architectures": ["ViTModel"], "model_type": "vit", "hidden_size": 768,
         "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072,
         "image_size": 224, "patch_size": 16, "num_channels": 3})",
     86'389'248},
};

// Hunyuan-7B by hand: words of 128167 x 4096, 32 layers of (2 x 4096 + 2 x 1024) x 4096 attention,
// 3 x 14336 x 4096 feed-forward, two norms of 4096 and two of 128; a norm. Its page says 7.50 B.
TEST(NetworkFromConfig, NormsQueriesAndKeysOfHunyuan) {
  const Result<Network> network = FromText(
      R"({"model_type": "hunyuan_v1_dense", "hidden_size": 4096, "num_hidden_layers": 32,
          "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
          "intermediate_size": 14336, "vocab_size": 128167, "tie_word_embeddings": true})");
  ASSERT_TRUE(network) << Message(network.error());
  EXPECT_EQ(
      ParameterCount(*network),
      128'167LL * 4096 + 32 * (10'240LL * 4096 + 3LL * 14'336 * 4096 + 2 * 4096 + 256) + 4096);
}

TEST(NetworkFromConfig, GivesTheTotalsOfKnownModels) {
  for (const KnownModel& known : kKnownModels) {
    const Result<Network> network = FromText(known.config);
    ASSERT_TRUE(network) << known.name << ": " << Message(network.error());
    EXPECT_EQ(ParameterCount(*network), known.parameters) << known.name;
  }
}

// torchvision's vit_b_16 and timm's vit_base_patch16_224: 86,567,656 with 1000 classes.
TEST(NetworkFromConfig, CountsTheClassesOfAVisionTransformer) {
  std::string labels;
  for (int label = 0; label < 1000; ++label) {
    labels += (label == 0 ? "\"" : ", \"") + std::to_string(label) + "\": \"a\"";
  }
  const Result<Network> network = FromText(
      R"({"architectures": ["ViTForImageClassification"], "model_type": "vit",
          "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
          "intermediate_size": 3072, "image_size": 224, "patch_size": 16, "id2label": {)" +
      labels + "}}");
  ASSERT_TRUE(network) << Message(network.error());
  EXPECT_EQ(ParameterCount(*network), 86'567'656);
  EXPECT_EQ(network->max_position_embeddings, 197);
}

// PyTorch 1.13.1 counted 955,752 in a BERT of these sizes whose head has the words' weights, with
// 128 positions and two kinds of token.
TEST(NetworkFromConfig, CountsTheMaskedWordHeadOfBert) {
  const Result<Network> network = FromText(
      R"({"architectures": ["BertForMaskedLM"], "model_type": "bert", "hidden_size": 128,
          "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 512,
          "vocab_size": 1000, "max_position_embeddings": 128, "type_vocab_size": 2})");
  ASSERT_TRUE(network) << Message(network.error());
  EXPECT_EQ(ParameterCount(*network), 955'752);
}

std::vector<std::string> Names(const Network& network) {
  std::vector<std::string> names;
  ForEachTensor(network, [&names](const NamedTensor& tensor) { names.push_back(tensor.name); });
  return names;
}

// model.safetensors.index.json of alpindale/WizardLM-2-8x22B, a Mixtral-8x22B: 1739 tensors.
TEST(NetworkFromConfig, NamesTheTensorsAsTheCheckpointDoes) {
  const Result<Model> model = FindModel("mixtral-8x22b");
  ASSERT_TRUE(model);
  const std::vector<std::string> names = Names(model->network);
  EXPECT_EQ(names.size(), 1739u);
  const std::set<std::string> set(names.begin(), names.end());
  for (const char* name :
       {"model.embed_tokens.weight", "model.layers.0.self_attn.q_proj.weight",
        "model.layers.55.block_sparse_moe.gate.weight",
        "model.layers.55.block_sparse_moe.experts.7.w2.weight",
        "model.layers.7.input_layernorm.weight", "model.norm.weight", "lm_head.weight"}) {
    EXPECT_TRUE(set.contains(name)) << name;
  }
}

TEST(NetworkFromConfig, NestsTheNamesOfAMultimodalModel) {
  const Result<Model> inside = FindModel("qwen3.5-27b");
  ASSERT_TRUE(inside);
  EXPECT_EQ(Names(inside->network).front(), "model.language_model.embed_tokens.weight");
  EXPECT_EQ(Names(inside->network).back(), "lm_head.weight");
  EXPECT_EQ(inside->network.left_out, (std::vector<std::string>{"all but the language model",
                                                                "1 multi-token-prediction layer"}));
  const Result<Model> beside = FindModel("llama-4-scout");
  ASSERT_TRUE(beside);
  EXPECT_EQ(Names(beside->network).front(), "language_model.model.embed_tokens.weight");
}

TEST(NetworkFromConfig, CutsEachLinearLayerAsMegatronDoes) {
  const Result<Network> network = FromText(Llama());
  ASSERT_TRUE(network) << Message(network.error());
  for (const Parameter& parameter : network->blocks[1].parameters) {
    const bool by_inputs =
        parameter.name == "self_attn.o_proj.weight" || parameter.name == "mlp.down_proj.weight";
    const bool whole = parameter.name.ends_with("layernorm.weight");
    EXPECT_EQ(parameter.cut, whole ? std::nullopt : std::optional(by_inputs ? 1 : 0))
        << parameter.name;
  }
}

// Every dimension that tensor parallelism cuts exists.
TEST(NetworkFromConfig, CutsOnlyDimensionsThatAreThere) {
  for (const ModelRecord& record : ModelRecords()) {
    const Result<Network> network = NetworkFromConfig(record.config, record.names.id);
    if (!network) {
      continue;  // catalogue_test.cc says which
    }
    for (const Block& block : network->blocks) {
      for (const Parameter& parameter : block.parameters) {
        EXPECT_LT(parameter.cut.value_or(-1), std::ssize(parameter.shape)) << parameter.name;
      }
    }
  }
}

TEST(NetworkFromConfig, ReadsTheFormatOfTheStoredWeights) {
  const Result<Network> network = FromText(Llama("torch_dtype", "\"bfloat16\""));
  ASSERT_TRUE(network) << Message(network.error());
  ASSERT_TRUE(network->stored_format);
  EXPECT_EQ(network->stored_format->name, "bfloat16");
}

TEST(NetworkFromConfig, SharesTheEmbeddingWithATiedHead) {
  const Result<Network> untied = FromText(Llama());
  const Result<Network> tied = FromText(Llama("tie_word_embeddings", "true"));
  ASSERT_TRUE(untied && tied);
  EXPECT_EQ(ParameterCount(*untied) - ParameterCount(*tied), 100 * 64);
}

struct Refusal {
  const char* key;
  const char* value;  // "" leaves the member out
  const char* message;
};

TEST(NetworkFromConfig, RefusesAFieldThatDoesNotFit) {
  const Refusal refusals[] = {
      {"hidden_size", "",
       "error: config.json: hidden_size: nothing, expected a whole number from 1 to 1073741824"},
      {"hidden_size", "-64",
       "error: config.json: hidden_size: -64, expected a whole number from 1 to 1073741824"},
      {"hidden_size", "64.5",
       "error: config.json: hidden_size: 64.5, expected a whole number from 1 to 1073741824"},
      {"hidden_size", "99999999999",
       "error: config.json: hidden_size: 99999999999, expected a whole number from 1 to "
       "1073741824"},
      {"hidden_size", "\"64\"",
       "error: config.json: hidden_size: the string \"64\", expected a whole number from 1 to "
       "1073741824\nhint: write the number without quotes"},
      {"num_hidden_layers", "0",
       "error: config.json: num_hidden_layers: 0, expected a whole number from 1 to 4096"},
      {"num_attention_heads", "5",
       "error: config.json: num_key_value_heads: 2, expected a divisor of num_attention_heads, 5"},
      {"num_key_value_heads", "3",
       "error: config.json: num_key_value_heads: 3, expected a divisor of num_attention_heads, 4"},
      {"hidden_size", "66",
       "error: config.json: num_attention_heads: 4, expected a divisor of hidden_size, 66\n"
       "hint: or give head_dim"},
      {"tie_word_embeddings", "1",
       "error: config.json: tie_word_embeddings: 1, expected true or false"},
      {"model_type", "", "error: config.json: model_type: nothing, expected a string"},
      {"vocab_size", "[100]",
       "error: config.json: vocab_size: an array, expected a whole number from 1 to 1073741824"},
  };
  for (const Refusal& refusal : refusals) {
    EXPECT_EQ(RefusalOf(Llama(refusal.key, refusal.value)), refusal.message);
  }
}

TEST(NetworkFromConfig, TakesAHeadSizeThatIsGiven) {
  const Result<Network> network = FromText(
      R"({"model_type": "llama", "hidden_size": 66, "num_hidden_layers": 1,
          "num_attention_heads": 4, "head_dim": 16, "intermediate_size": 8, "vocab_size": 1})");
  ASSERT_TRUE(network) << Message(network.error());
  EXPECT_EQ(network->blocks[1].parameters[0].shape, (std::vector<std::int64_t>{64, 66}));
}

TEST(NetworkFromConfig, RefusesProductsBeyondTwoToThe53) {
  EXPECT_EQ(RefusalOf(
                R"({"model_type": "llama", "hidden_size": 1073741824, "num_hidden_layers": 1,
                    "num_attention_heads": 1, "intermediate_size": 1, "vocab_size": 1})"),
            "error: config.json: the tensors up to model.layers.0 have more than 2^53 elements, "
            "expected at most 2^53\nhint: look for a number with too many digits");
}

TEST(NetworkFromConfig, RefusesWhatIsNoConfig) {
  EXPECT_EQ(RefusalOf("[1]"), "error: config.json: an array, expected an object");
  EXPECT_EQ(RefusalOf(Llama("hidden_size", "64, \"hidden_size\": 64")),
            "error: config.json: byte 43: the string \"hidden_size\" as a key a second time, "
            "expected each key once");
}

TEST(NetworkFromConfig, RefusesAnUnknownArchitectureByName) {
  const std::string message = RefusalOf(Llama("model_type", "\"lama\""));
  EXPECT_TRUE(message.starts_with(
      "error: config.json: model_type: unknown architecture \"lama\", expected one of those known "
      "here\nhint: known: bamba, bert, bloom, "))
      << message;
  for (const std::string_view known : KnownModelTypes()) {
    EXPECT_NE(message.find(known), std::string::npos);
  }
}

TEST(NetworkFromConfig, ListsTheKnownArchitecturesInOrder) {
  const std::vector<std::string_view> known = KnownModelTypes();
  EXPECT_TRUE(std::is_sorted(known.begin(), known.end()));
}

TEST(NetworkFromConfig, RefusesLayerTypesThatDoNotFit) {
  EXPECT_EQ(RefusalOf(R"({"model_type": "gemma2", "hidden_size": 8, "num_hidden_layers": 2,
                          "num_attention_heads": 1, "intermediate_size": 8, "vocab_size": 8,
                          "sliding_window": 4, "layer_types": ["full_attention"]})"),
            "error: config.json: layer_types: 1 layers, expected num_hidden_layers, 2");
  EXPECT_EQ(RefusalOf(R"({"model_type": "gemma2", "hidden_size": 8, "num_hidden_layers": 1,
                          "num_attention_heads": 1, "intermediate_size": 8, "vocab_size": 8,
                          "sliding_window": 4, "layer_types": ["half_attention"]})"),
            "error: config.json: layer_types: \"half_attention\", expected full_attention, "
            "sliding_attention, chunked_attention, linear_attention");
}

TEST(NetworkFromConfig, NamesTheTextConfigInErrors) {
  EXPECT_EQ(RefusalOf(R"({"model_type": "gemma3",
                          "text_config": {"model_type": "gemma3_text", "hidden_size": 0}})"),
            "error: config.json: text_config: hidden_size: 0, expected a whole number from 1 to "
            "1073741824");
}

// modeling_mllama.py: the tower beside the language model, whose names are nested; layer 1 sees the
// image. (4 / 2)² + 1 = 5 patches, 2 tiles: 10 tokens; shapes of 2 tiles: 1 × 1, 1 × 2, 2 × 1.
TEST(NetworkFromConfig, ReadsLlamaVisionWithItsTower) {
  const Result<Network> network = FromText(R"({"model_type": "mllama",
      "text_config": {"model_type": "mllama_text_model", "hidden_size": 8, "num_hidden_layers": 2,
          "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 16,
          "vocab_size": 10, "cross_attention_layers": [1]},
      "vision_config": {"hidden_size": 4, "intermediate_size": 6, "num_hidden_layers": 3,
          "num_global_layers": 1, "vision_output_dim": 12, "image_size": 4, "patch_size": 2,
          "max_num_tiles": 2}})");
  ASSERT_TRUE(network) << Message(network.error());
  ASSERT_EQ(network->caches.size(), 2U);
  EXPECT_FALSE(network->caches[0].encoder_tokens);
  EXPECT_EQ(network->caches[1].encoder_tokens, 10);
  std::map<std::string, std::vector<std::int64_t>> shapes;
  ForEachTensor(*network,
                [&](const NamedTensor& tensor) { shapes[tensor.name] = tensor.parameter->shape; });
  using Shape = std::vector<std::int64_t>;
  EXPECT_EQ(shapes["vision_model.patch_embedding.weight"], (Shape{4, 3, 2, 2}));
  EXPECT_EQ(shapes["vision_model.gated_positional_embedding.tile_embedding.weight"],
            (Shape{4, 2 * 5 * 4}));
  EXPECT_EQ(shapes["vision_model.transformer.layers.2.self_attn.o_proj.weight"], (Shape{4, 4}));
  EXPECT_EQ(shapes["vision_model.global_transformer.layers.0.gate_ffn"], (Shape{1}));
  EXPECT_EQ(shapes["multi_modal_projector.weight"], (Shape{8, 12}));
  EXPECT_EQ(shapes["language_model.model.embed_tokens.weight"], (Shape{18, 8}));
  EXPECT_EQ(shapes["language_model.model.layers.1.cross_attn.k_norm.weight"], (Shape{2}));
  EXPECT_EQ(shapes["language_model.lm_head.weight"], (Shape{10, 8}));
  EXPECT_TRUE(network->left_out.empty());
}

TEST(NetworkFromConfig, RefusesACrossAttentionLayerThatThereIsNot) {
  const Result<Network> network = FromText(R"({"model_type": "mllama",
      "text_config": {"hidden_size": 4096, "num_hidden_layers": 40, "intermediate_size": 14336,
          "cross_attention_layers": [3, 40]}})");
  ASSERT_FALSE(network);
  EXPECT_EQ(
      Message(network.error()),
      "error: config.json: text_config: cross_attention_layers[1]: 40, expected a whole number "
      "from 0 to 39");
}

TEST(NetworkFromConfig, RefusesAWindowOfNoTokens) {
  const Result<Network> network = FromText(R"({"model_type": "mistral", "hidden_size": 64,
      "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128,
      "vocab_size": 100, "sliding_window": 0})");
  ASSERT_FALSE(network);
  EXPECT_EQ(Message(network.error()),
            "error: config.json: sliding_window: a window of 0 tokens, expected at least 1\n"
            "hint: null, or the key left out, is for no window");
}

}  // namespace
}  // namespace fourpiles
