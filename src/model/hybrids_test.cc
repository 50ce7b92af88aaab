// Networks with state-space layers, and those whose layers are of many sizes: totals that others
// print, and what llama.cpp allocates for their states.

#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "model/test_configs.h"

namespace fourpiles {
namespace {

struct Known {
  const char* name;
  std::string config;
  std::int64_t parameters;
};

std::string FalconH1(const std::string& sizes) {
  return R"({"model_type": "falcon_h1", "mamba_n_groups": 1, "mamba_d_conv": 4,
             "mamba_expand": 2, "tie_word_embeddings": false, "num_key_value_heads": 2, )" +
         sizes + "}";
}

const std::string& FalconH1Of1Point5B() {
  static const std::string config =
      FalconH1(R"("hidden_size": 2048, "num_hidden_layers": 24, "num_attention_heads": 8,
                  "intermediate_size": 4608, "vocab_size": 65537, "mamba_d_ssm": 3072,
                  "mamba_n_heads": 48, "mamba_d_head": 64, "mamba_d_state": 256,
                  "head_dim": 128, "mamba_rms_norm": true)");
  return config;
}

constexpr const char* kMamba14B = R"(
  {"model_type": "mamba", "hidden_size": 2048, "num_hidden_layers": 48, "vocab_size": 50280,
   "intermediate_size": 4096, "state_size": 16, "conv_kernel": 4, "time_step_rank": 128,
   "use_bias": false, "use_conv_bias": true})";

// Every tenth layer from the sixth on attends.
std::string GraniteTypes() {
  std::string types;
  for (int layer = 0; layer < 40; ++layer) {
    types +=
        std::string(layer == 0 ? "[" : ", ") + (layer % 10 == 5 ? R"("attention")" : R"("mamba")");
  }
  return types + "]";
}

const std::string& Granite4HTiny() {
  static const std::string config =
      R"({"model_type": "granitemoehybrid", "hidden_size": 1536, "num_hidden_layers": 40,
          "num_attention_heads": 12, "num_key_value_heads": 4, "intermediate_size": 512,
          "shared_intermediate_size": 1024, "num_local_experts": 64, "num_experts_per_tok": 6,
          "vocab_size": 100352, "tie_word_embeddings": true, "mamba_d_state": 128,
          "mamba_n_groups": 1, "mamba_n_heads": 48, "mamba_d_head": "auto", "mamba_expand": 2,
          "mamba_d_conv": 4, "layer_types": )" +
      GraniteTypes() + "}";
  return config;
}

constexpr const char* kJambaV01 = R"(
  {"model_type": "jamba", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
   "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 65536,
   "attn_layer_period": 8, "attn_layer_offset": 4, "expert_layer_period": 2,
   "expert_layer_offset": 1, "num_experts": 16, "num_experts_per_tok": 2, "mamba_d_state": 16,
   "mamba_d_conv": 4, "mamba_expand": 2, "mamba_dt_rank": "auto"})";

constexpr const char* kLfm2 = R"(
  {"model_type": "lfm2", "hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 32,
   "num_key_value_heads": 8, "block_ff_dim": 12288, "conv_L_cache": 3, "vocab_size": 65536,
   "full_attn_idxs": [2, 5, 8, 10, 12, 14]})";

std::string KimiLinear(const std::string& more) {
  return R"({"model_type": "kimi_linear", "hidden_size": 2304, "num_hidden_layers": 27,
             "num_attention_heads": 32, "q_lora_rank": null, "kv_lora_rank": 512,
             "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
             "linear_attn_config": {"full_attn_layers": [4, 8, 12, 16, 20, 24, 27],
                                    "head_dim": 128, "num_heads": 32,
                                    "short_conv_kernel_size": 4},
             "intermediate_size": 9216, "moe_intermediate_size": 1024, "num_experts": 256,
             "num_shared_experts": 1, "first_k_dense_replace": 1, "vocab_size": 163840)" +
         more + "}";
}

// The totals are those of Hugging Face's pages; of Mamba-Codestral Mistral's announcement.
std::vector<Known> KnownHybrids() {
  return {
      {"state-spaces/mamba-130m-hf",
       R"({"model_type": "mamba", "hidden_size": 768, "num_hidden_layers": 24,
           "vocab_size": 50280, "state_size": 16})",
       129'135'360},
      {"state-spaces/mamba-1.4b-hf", kMamba14B, 1'372'178'432},
      {"tiiuae/falcon-mamba-7b",
       R"({"model_type": "falcon_mamba", "hidden_size": 4096, "num_hidden_layers": 64,
           "intermediate_size": 8192, "expand": 16, "vocab_size": 65024, "state_size": 16,
           "time_step_rank": 256, "tie_word_embeddings": false})",
       7'272'665'088},
      {"mistralai/Mamba-Codestral-7B-v0.1",
       R"({"model_type": "mamba2", "hidden_size": 4096, "num_hidden_layers": 64, "num_heads": 128,
           "head_dim": 64, "n_groups": 8, "state_size": 128, "conv_kernel": 4,
           "vocab_size": 32768, "tie_word_embeddings": false})",
       7'285'403'648},
      {"tiiuae/Falcon-H1-0.5B-Base",
       FalconH1(R"("hidden_size": 1024, "num_hidden_layers": 36, "num_attention_heads": 8,
                   "head_dim": 64, "intermediate_size": 2048, "vocab_size": 32784,
                   "mamba_d_ssm": 1536, "mamba_n_heads": 24, "mamba_d_head": 64,
                   "mamba_d_state": 128, "mamba_rms_norm": false)"),
       521'411'104},
      {"tiiuae/Falcon-H1-1.5B-Instruct", FalconH1Of1Point5B(), 1'554'863'488},
      {"tiiuae/Falcon-H1-7B-Base",
       FalconH1(R"("hidden_size": 3072, "num_hidden_layers": 44, "num_attention_heads": 12,
                   "intermediate_size": 12288, "vocab_size": 130048, "mamba_d_ssm": 3072,
                   "mamba_n_heads": 24, "mamba_d_head": 128, "mamba_d_state": 256,
                   "head_dim": 128, "mamba_rms_norm": true)"),
       7'585'648'736},
      {"ibm-granite/granite-4.0-h-tiny", Granite4HTiny(), 6'939'037'248},
      {"ai21labs/Jamba-v0.1", kJambaV01, 51'570'323'328},
      {"LiquidAI/LFM2-1.2B", kLfm2, 1'170'340'608},
      {"moonshotai/Kimi-Linear-48B-A3B-Instruct", KimiLinear(""), 49'122'681'728},
  };
}

TEST(Hybrids, HaveTheTotalsOfTheirPages) {
  for (const Known& known : KnownHybrids()) {
    const Result<Network> network = FromText(known.config);
    ASSERT_TRUE(network) << known.name << ": " << Message(network.error());
    EXPECT_EQ(ParameterCount(*network), known.parameters) << known.name;
  }
}

struct Sums {
  std::int64_t per_token = 0;
  std::int64_t layers_with_keys = 0;
  std::int64_t convolution = 0;
  std::int64_t recurrent = 0;
};

Sums SumsOf(const std::string& config) {
  const Result<Network> network = FromText(config);
  EXPECT_TRUE(network) << Message(network.error());
  Sums sums;
  for (const Cache& cache : network->caches) {
    sums.per_token += cache.key_elements_per_token + cache.value_elements_per_token;
    sums.layers_with_keys += cache.key_elements_per_token > 0 ? 1 : 0;
    sums.convolution += cache.convolution_elements_per_request;
    sums.recurrent += cache.recurrent_elements_per_request;
  }
  return sums;
}

// A log of llama.cpp (geniepod/genie-claw issue 410): keys and values 768.00 MiB of 32,768 tokens
// in float16, 24 layers; state R 0.98 + S 72.00 MiB in float32.
TEST(Hybrids, FalconH1KeepsKeysAndAStateInEveryLayer) {
  const Sums sums = SumsOf(FalconH1Of1Point5B());
  EXPECT_EQ(sums.layers_with_keys, 24);
  EXPECT_EQ(sums.per_token * 32'768 * 2, std::int64_t{768} << 20);
  EXPECT_NEAR(static_cast<double>(sums.convolution * 4) / 1048576, 0.98, 0.005);
  EXPECT_EQ(sums.recurrent * 4, std::int64_t{72} << 20);
}

// The same: Mamba-1.4B 14.25 MiB, no keys.
TEST(Hybrids, MambaKeepsAStateAlone) {
  const Sums sums = SumsOf(kMamba14B);
  EXPECT_EQ(sums.per_token, 0);
  EXPECT_EQ((sums.convolution + sums.recurrent) * 4, std::int64_t{57} << 18);
}

// By hand: four layers of 2 x 4 heads of 128; 36 states of (3072 + 2 x 128) x 3 and 3072 x 128.
TEST(Hybrids, GraniteAttendsInFourLayersOfForty) {
  const Sums sums = SumsOf(Granite4HTiny());
  EXPECT_EQ(sums.layers_with_keys, 4);
  EXPECT_EQ(sums.per_token, 4 * 2 * 4 * 128);
  EXPECT_EQ(sums.convolution, 36 * 3328 * 3);
  EXPECT_EQ(sums.recurrent, 36 * 3072 * 128);
}

// By hand: every eighth layer attends; the others have 8192 channels of 16.
TEST(Hybrids, JambaAttendsInEveryEighthLayer) {
  const Sums sums = SumsOf(kJambaV01);
  EXPECT_EQ(sums.layers_with_keys, 4);
  EXPECT_EQ(sums.per_token, 4 * 2 * 8 * 128);
  EXPECT_EQ(sums.convolution, 28 * 8192 * 3);
  EXPECT_EQ(sums.recurrent, 28 * 8192 * 16);
}

// Bamba-9B by hand: 29 mixers of 16768 x 4096 in, 8448 x 5 convolution, 3 x 128, a norm of 8192 and
// 8192 x 4096 out; three attentions of 41,943,040; 32 parts of 3 x 14336 x 4096 and two norms;
// words and head of 128256 x 4096; a norm. The page says 9.78 B.
TEST(Hybrids, BambaAttendsWhereItsListSays) {
  const std::string config = R"(
    {"model_type": "bamba", "hidden_size": 4096, "num_hidden_layers": 32,
     "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
     "vocab_size": 128256, "attn_layer_indices": [9, 18, 27], "mamba_n_heads": 128,
     "mamba_d_head": 64, "mamba_n_groups": 1, "mamba_d_state": 128, "mamba_d_conv": 4})";
  const Result<Network> network = FromText(config);
  ASSERT_TRUE(network) << Message(network.error());
  EXPECT_EQ(ParameterCount(*network), 9'780'235'392);
  EXPECT_EQ(SumsOf(config).layers_with_keys, 3);
}

// Minitron-4B by hand: words and head of 256000 x 3072; 32 layers of (3072 + 2 x 1024 + 3072) x
// 3072 attention, 2 x 9216 x 3072 feed-forward and two norms with biases; a norm. The page
// says 4.19 B.
TEST(Hybrids, NemotronHasAPlainPart) {
  const Result<Network> network = FromText(R"(
    {"model_type": "nemotron", "hidden_size": 3072, "num_hidden_layers": 32,
     "num_attention_heads": 24, "num_key_value_heads": 8, "intermediate_size": 9216,
     "vocab_size": 256000, "tie_word_embeddings": false})");
  ASSERT_TRUE(network) << Message(network.error());
  EXPECT_EQ(ParameterCount(*network),
            2LL * 256'000 * 3072 + 32 * (8192LL * 3072 + 2LL * 9216 * 3072 + 4 * 3072) + 2 * 3072);
  EXPECT_TRUE(OperatorsAreKnown(*network));
}

// By hand: six layers of 2 x 8 heads of 64; ten convolutions that keep two inputs of 2048.
TEST(Hybrids, Lfm2KeepsTwoInputs) {
  const Sums sums = SumsOf(kLfm2);
  EXPECT_EQ(sums.layers_with_keys, 6);
  EXPECT_EQ(sums.per_token, 6 * 2 * 8 * 64);
  EXPECT_EQ(sums.convolution, 10 * 2 * 2048);
  EXPECT_EQ(sums.recurrent, 0);
}

// vLLM's log of a hybrid pool (vllm-project/vllm issue 28228): a page of 1,085,440 bytes on each of
// two ranks for one layer's state, 16-bit convolution and 32-bit memory; 1,152 bytes a token.
TEST(Hybrids, KimiLinearKeepsALatentInEveryFourthLayer) {
  const Sums sums = SumsOf(KimiLinear(""));
  EXPECT_EQ(sums.layers_with_keys, 7);
  EXPECT_EQ(sums.per_token * 2, 7 * 1152);
  EXPECT_EQ(sums.convolution / 20 * 2 + sums.recurrent / 20 * 4, 2 * 1'085'440);
  EXPECT_EQ(RefusalOf(KimiLinear(R"(, "attn_res_block_size": 12)")),
            "error: config.json: attn_res_block_size: a Kimi K3, expected a Kimi Linear");
}

TEST(Hybrids, RefuseWhatDoesNotFit) {
  EXPECT_EQ(RefusalOf(FalconH1(R"("hidden_size": 64, "num_hidden_layers": 1,
                                  "num_attention_heads": 2, "intermediate_size": 8,
                                  "vocab_size": 8, "mamba_d_ssm": 100, "mamba_n_heads": 48,
                                  "mamba_d_state": 8)")),
            "error: config.json: mamba_n_heads: 48, expected a divisor of the width of a mixer, "
            "100");
  EXPECT_EQ(RefusalOf(R"({"model_type": "granitemoehybrid", "hidden_size": 64,
                          "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 8,
                          "layer_types": ["full_attention"]})"),
            "error: config.json: layer_types: \"full_attention\", expected mamba, attention");
}

// --- Layers of many sizes ---

TEST(Hybrids, SearchedLayersHaveSizesOfTheirOwn) {
  const auto refusal = [](const std::string& blocks) {
    return RefusalOf(R"({"model_type": "nemotron-nas", "hidden_size": 768, "num_hidden_layers": 2,
                         "num_attention_heads": 6, "vocab_size": 8, "block_configs": )" +
                     blocks + "}");
  };
  EXPECT_EQ(refusal("[]"),
            "error: config.json: block_configs: 0 layers, expected num_hidden_layers, 2");
  EXPECT_EQ(refusal(R"([{"attention": {"n_heads_in_group": 4}, "ffn": {"ffn_mult": 1}}, {}])"),
            "error: config.json: block_configs[0].attention.n_heads_in_group: 4, expected a "
            "divisor of num_attention_heads, 6");
  const Result<Network> network = FromText(
      R"({"model_type": "nemotron-nas", "hidden_size": 768, "num_hidden_layers": 4,
          "num_attention_heads": 6, "vocab_size": 8, "block_configs": [
            {"attention": {"n_heads_in_group": 3, "no_op": false}, "ffn": {"ffn_mult": 1.3125}},
            {"attention": {"n_heads_in_group": null, "no_op": true}, "ffn": {"ffn_mult": 0.5}},
            {"attention": {"replace_with_linear": true}, "ffn": {"no_op": true}},
            {"attention": {"no_op": true}, "ffn": {"intermediate_size": 100}}]})");
  ASSERT_TRUE(network) << Message(network.error());
  ASSERT_EQ(network->caches.size(), 1u);
  EXPECT_EQ(network->caches[0].key_elements_per_token, 2 * 128);
  // 2/3 x 1.3125 x 768 = 672, in whole 256s 768; 2/3 x 0.5 x 768 = 256.
  const std::int64_t first = 2 * 768 * 768 + 2 * 256 * 768 + 3 * 768 * 768 + 2 * 768;
  const std::int64_t second = 3 * 256 * 768 + 768;
  const std::int64_t third = 768 * 768 + 768;
  const std::int64_t fourth = 3 * 100 * 768 + 768;
  EXPECT_EQ(ParameterCount(*network), first + second + third + fourth + 2 * 8 * 768 + 768);
}

}  // namespace
}  // namespace fourpiles
