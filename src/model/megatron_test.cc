#include "model/megatron.h"

#include <string>

#include <gtest/gtest.h>

#include "base/json.h"
#include "model/from_config.h"

namespace fourpiles {
namespace {

Result<Network> Built(const std::string& arguments) {
  const Json config =
      ReadJson(R"({"model_type": "megatron", )" + arguments + "}", "config.json").value();
  return NetworkFromConfig(config, "config.json");
}

std::int64_t Parameters(const std::string& arguments) {
  return ParameterCount(Built(arguments).value());
}

// The totals that Hugging Face prints for openai-community/gpt2, mistralai/Mixtral-8x7B-v0.1 and
// meta-llama/Meta-Llama-3-8B; that of DeepSeek-V3 without its further prediction layer, and without
// the 58 × 256 corrections of its router, which are no parameters in Megatron-LM.
TEST(Megatron, HasTheParametersThatOthersCount) {
  EXPECT_EQ(Parameters(R"("num_layers": 12, "hidden_size": 768, "num_attention_heads": 12,
      "max_position_embeddings": 1024, "vocab_size": 50257)"),
            124'439'808);
  EXPECT_EQ(Parameters(R"("num_layers": 32, "hidden_size": 4096, "num_attention_heads": 32,
      "group_query_attention": true, "num_query_groups": 8, "ffn_hidden_size": 14336,
      "swiglu": true, "normalization": "RMSNorm", "position_embedding_type": "rope",
      "disable_bias_linear": true, "untie_embeddings_and_output_weights": true,
      "vocab_size": 32000, "num_experts": 8)"),
            46'702'792'704);
  EXPECT_EQ(Parameters(R"("num_layers": 32, "hidden_size": 4096, "num_attention_heads": 32,
      "group_query_attention": true, "num_query_groups": 8, "ffn_hidden_size": 14336,
      "swiglu": true, "normalization": "RMSNorm", "position_embedding_type": "rope",
      "disable_bias_linear": true, "untie_embeddings_and_output_weights": true,
      "vocab_size": 128256)"),
            8'030'261'248);
  EXPECT_EQ(Parameters(R"("num_layers": 61, "hidden_size": 7168, "num_attention_heads": 128,
      "ffn_hidden_size": 18432, "swiglu": true, "normalization": "RMSNorm",
      "position_embedding_type": "rope", "disable_bias_linear": true,
      "untie_embeddings_and_output_weights": true, "vocab_size": 129280,
      "multi_latent_attention": true, "kv_channels": 128, "q_lora_rank": 1536,
      "kv_lora_rank": 512, "qk_head_dim": 128, "qk_pos_emb_head_dim": 64, "v_head_dim": 128,
      "num_experts": 256, "moe_router_topk": 8, "moe_ffn_hidden_size": 2048,
      "moe_shared_expert_intermediate_size": 2048, "moe_layer_freq": "([0]*3+[1]*58)") "),
            671'026'419'200 -
            58 * 256);
}

// "--group-query-attention" tells whether "--num-query-groups" counts (training/arguments.py).
TEST(Megatron, ReadsItsArgumentsAsItDoes) {
  const std::string sizes =
      R"("num_layers": 1, "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 128,
         "max_position_embeddings": 16)";
  EXPECT_EQ(Parameters(sizes), Parameters(sizes + R"(, "num_query_groups": 4)"));
  EXPECT_EQ(Parameters(sizes) - Parameters(sizes + R"(, "group_query_attention": true)"),
            2 * 3 * 16 * 65);
  // Without biases; SwiGLU of 2/3 × 4 × 64 in steps of 64: 128, three matrices for two.
  EXPECT_EQ(Parameters(sizes) - Parameters(sizes + R"(, "disable_bias_linear": true)"),
            3 * 64 + 64 + 256 + 64);
  EXPECT_EQ(Parameters(sizes) - Parameters(sizes + R"(, "swiglu": true)"),
            2 * 64 * 256 + 256 - (3 * 64 * 128 + 256));
  EXPECT_EQ(Parameters(sizes + R"(, "make_vocab_size_divisible_by": 100)") - Parameters(sizes),
            72 * 64);
}

TEST(Megatron, LayersWithExpertsAreListedOrCounted) {
  using Layers = std::vector<bool>;
  EXPECT_EQ(ExpertLayers("1", 3), Layers({true, true, true}));
  EXPECT_EQ(ExpertLayers("2", 4), Layers({true, false, true, false}));
  EXPECT_EQ(ExpertLayers("([0]*1+[1]*2)", 3), Layers({false, true, true}));
  EXPECT_EQ(ExpertLayers("[0,1]*2", 4), Layers({false, true, false, true}));
  EXPECT_EQ(ExpertLayers("[1] + [0]", 2), Layers({true, false}));
  for (const char* const odd : {"", "0", "-1", "x", "[2]*3", "[1]*", "[1]*2", "[1]*4", "[]*3",
                                "[1]*99999999999", "1+2", "[1]*1048576"}) {
    EXPECT_FALSE(ExpertLayers(odd, 3)) << odd;
  }
}

TEST(Megatron, RefusesWhatItDoesNotKnow) {
  const std::string sizes =
      R"("num_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 128)";
  for (const char* const odd :
       {R"("position_embedding_type": "alibi")", R"("normalization": "BatchNorm")",
        R"("group_query_attention": true, "num_query_groups": 3)",
        R"("num_experts": 4, "moe_router_topk": 5)",
        R"("num_experts": 4, "moe_layer_freq": "[1]*3")", R"("swiglu": 1)"}) {
    EXPECT_FALSE(Built(sizes + ", \"max_position_embeddings\": 8, " + odd)) << odd;
  }
  EXPECT_FALSE(Built(sizes));  // learned positions, and how many is not said
  EXPECT_TRUE(Built(sizes + R"(, "position_embedding_type": "none")"));
}

}  // namespace
}  // namespace fourpiles
