#include "model/fused_attention.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "model/adapter.h"
#include "model/test_configs.h"

namespace fourpiles {
namespace {

// 4 heads of 16, 2 of keys and values: h 64, k 32.
Network LitGpt(const std::string& more = "") {
  return FromText(R"({"model_type": "litgpt", "n_layer": 2, "n_embd": 64, "n_head": 4,
      "n_query_groups": 2, "intermediate_size": 128, "padded_vocab_size": 100, "bias": true,
      "norm_class_name": "RMSNorm", "mlp_class_name": "LLaMAMLP")" +
                  more + "}")
      .value();
}

const Block& LayerOf(const Network& network) {
  return *std::ranges::find_if(network.blocks, IsNumbered);
}

const Parameter* Find(const Network& network, std::string_view name) {
  const auto& parameters = LayerOf(network).parameters;
  const auto found = std::ranges::find(parameters, name, &Parameter::name);
  return found == parameters.end() ? nullptr : &*found;
}

using Lengths = std::vector<std::int64_t>;

TEST(FusedAttention, PutsOneLinearLayerInPlaceOfThree) {
  const Network apart = LitGpt();
  const Network fused = WithFusedAttention(apart);
  ASSERT_NE(Find(fused, "attn.qkv.weight"), nullptr);
  EXPECT_EQ(Find(fused, "attn.qkv.weight")->shape, (Lengths{64 + 2 * 32, 64}));
  EXPECT_EQ(Find(fused, "attn.qkv.bias")->shape, Lengths{64 + 2 * 32});
  for (const char* name : {"attn.q_proj.weight", "attn.k_proj.bias", "attn.v_proj.weight"}) {
    EXPECT_EQ(Find(fused, name), nullptr) << name;
  }
  EXPECT_EQ(ParameterCount(fused), ParameterCount(apart));
  EXPECT_TRUE(CheckNetwork(fused, "").has_value());
}

// The three values come out of a split of one.
TEST(FusedAttention, SplitsWhatTheLayerPutsOut) {
  const Network apart = LitGpt();
  const auto& before = LayerOf(apart).operators;
  const Network fused = WithFusedAttention(apart);
  const auto& after = LayerOf(fused).operators;
  EXPECT_EQ(after.size(), before.size() - 1);
  const auto split = std::ranges::find(after, OperatorKind::kSplit, &Operator::kind);
  ASSERT_NE(split, after.end());
  EXPECT_EQ(split->widths, (Lengths{64, 32, 32}));
  EXPECT_EQ(split->inputs, (split - 1)->outputs);
  EXPECT_EQ((split - 1)->widths, Lengths{128});
}

// litgpt/lora.py, LoRAQKVLinear: lora_A has r × sum(enable_lora) rows; lora_B the outputs of those
// that have one, with r columns.
TEST(FusedAttention, JoinsAdaptersOfSomeOfTheThree) {
  const Network adapted =
      WithAdapter(LitGpt(), {.rank = 8, .targets = {"q_proj", "v_proj"}}, "").value();
  const Network fused = WithFusedAttention(adapted);
  ASSERT_NE(Find(fused, "attn.qkv.lora_A.weight"), nullptr);
  EXPECT_EQ(Find(fused, "attn.qkv.lora_A.weight")->shape, (Lengths{2 * 8, 64}));
  EXPECT_EQ(Find(fused, "attn.qkv.lora_B.weight")->shape, (Lengths{64 + 32, 8}));
  EXPECT_EQ(TrainableParameterCount(fused), TrainableParameterCount(adapted));
  EXPECT_EQ(TrainableParameterCount(fused), 2 * (16 * 64 + 96 * 8));
  EXPECT_FALSE(Find(fused, "attn.qkv.weight")->trainable);
}

// What operators read is found under its new number.
TEST(FusedAttention, LeavesTheOtherParametersWithTheirOperators) {
  const auto names = [](const Network& network) {
    std::vector<std::string> read;
    const Block& layer = LayerOf(network);
    for (const Operator& op : layer.operators) {
      for (const ParameterUse& use : op.parameters) {
        const std::string& name = layer.parameters[static_cast<std::size_t>(use.parameter)].name;
        if (name.find("attn.q") == std::string::npos && name.find("attn.k") == std::string::npos &&
            name.find("attn.v") == std::string::npos) {
          read.push_back(op.name + " reads " + name);
        }
      }
    }
    return read;
  };
  const Network apart = LitGpt();
  EXPECT_EQ(names(WithFusedAttention(apart)), names(apart));
}

// GPT-2's layer is one already; of a bare count nothing is known.
TEST(FusedAttention, LeavesOtherNetworksAlone) {
  const Network gpt2 = FromText(R"({"model_type": "gpt2", "n_layer": 2, "n_embd": 64,
      "n_head": 4, "n_positions": 32, "vocab_size": 100})")
                           .value();
  const Network same = WithFusedAttention(gpt2);
  EXPECT_EQ(LayerOf(same).operators.size(), LayerOf(gpt2).operators.size());
  EXPECT_EQ(LayerOf(same).parameters.size(), LayerOf(gpt2).parameters.size());
}

// LitGPT has neither DoRA nor IA3, and no copies: what they add has no place in one layer, so the
// three stay, and nothing is lost.
TEST(FusedAttention, LosesNoParameterOfAnAdapter) {
  const Adapter adapters[] = {
      {.rank = 8, .targets = {"q_proj", "k_proj", "v_proj"}},
      {.kind = AdapterKind::kDora, .rank = 8, .targets = {"q_proj", "k_proj", "v_proj"}},
      {.kind = AdapterKind::kIa3, .targets = {"q_proj", "k_proj", "v_proj"}},
      {.rank = 8, .targets = {"v_proj"}, .modules = {"q_proj"}}};
  for (const Adapter& adapter : adapters) {
    const Network adapted = WithAdapter(LitGpt(), adapter, "").value();
    const Network fused = WithFusedAttention(adapted);
    EXPECT_EQ(ParameterCount(fused), ParameterCount(adapted)) << RecordOf(adapter.kind).word;
    EXPECT_EQ(TrainableParameterCount(fused), TrainableParameterCount(adapted));
    EXPECT_TRUE(CheckNetwork(fused, "").has_value()) << RecordOf(adapter.kind).word;
  }
}

// --- model_type "litgpt" ---

// Published counts: Llama-2-7B 6,738,415,616; phi-1.5 1,418,270,720 (the totals of their
// safetensors files); a GPT-NeoX layer by hand, 12h² + 13h, with embedding, output layer, last
// norm.
TEST(LitGptConfig, CountsWhatTheCheckpointsHave) {
  EXPECT_EQ(ParameterCount(FromText(kLitGptLlama7B).value()), 6'738'415'616);
  EXPECT_EQ(ParameterCount(FromText(kLitGptPhi15).value()), 1'418'270'720);
  EXPECT_EQ(ParameterCount(FromText(kLitGptStableLm3B).value()),
            16 * (12 * 4096LL * 4096 + 13 * 4096) + 2 * 50'688LL * 4096 + 2 * 4096);
}

// Gemma 2 2B has 2,614,341,888 with a tied embedding of 256,000 × 2304; here they are two.
TEST(LitGptConfig, HasNormsAfterThePartsOfGemma2) {
  constexpr const char* kGemma2 = R"({"model_type": "litgpt", "n_layer": 26, "n_embd": 2304,
      "n_head": 8, "n_query_groups": 4, "head_size": 256, "intermediate_size": 9216,
      "padded_vocab_size": 256000, "bias": false, "rotary_percentage": 1.0,
      "parallel_residual": false, "norm_class_name": "RMSNorm", "mlp_class_name": "GemmaMLP",
      "post_attention_norm": true, "scale_embeddings": true, "attention_logit_softcapping": 50.0,
      "final_logit_softcapping": 30.0})";
  EXPECT_EQ(ParameterCount(FromText(kGemma2).value()), 2'614'341'888 + 256'000LL * 2304);
}

TEST(LitGptConfig, SaysWhatIsWrong) {
  const auto message = [](const std::string& from, const std::string& to) {
    std::string text = R"({"model_type": "litgpt", "n_layer": 2, "n_embd": 64, "n_head": 4,
      "n_query_groups": 2, "intermediate_size": 128, "padded_vocab_size": 100,
      "norm_class_name": "RMSNorm", "mlp_class_name": "LLaMAMLP"})";
    text.replace(text.find(from), from.size(), to);
    const Result<Network> network = FromText(text);
    return network ? "no error" : Message(network.error());
  };
  EXPECT_EQ(message("\"RMSNorm\"", "\"Norm\""),
            "error: config.json: norm_class_name: unknown class \"Norm\", expected a class of "
            "litgpt/model.py");
  EXPECT_EQ(message("LLaMAMLP", "LLaMAMoE"),
            "error: config.json: mlp_class_name: unknown class \"LLaMAMoE\", expected a class of "
            "litgpt/model.py");
  EXPECT_EQ(message("\"n_query_groups\": 2", "\"n_query_groups\": 3"),
            "error: config.json: n_query_groups: 3, expected a divisor of n_head, 4");
  EXPECT_EQ(message("\"n_layer\": 2,", ""),
            "error: config.json: n_layer: nothing, expected a whole number from 1 to 4096");
}

}  // namespace
}  // namespace fourpiles
