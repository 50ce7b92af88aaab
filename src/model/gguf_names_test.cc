#include "model/gguf_names.h"

#include <string>

#include <gtest/gtest.h>

#include "model/catalogue.h"
#include "model/compare_tensors.h"

namespace fourpiles {
namespace {

// The pairs of gguf-py's tensor_mapping.py.
TEST(GgufNames, AreThoseOfTheCheckpoint) {
  struct Case {
    const char* model_type;
    const char* gguf;
    const char* checkpoint;
  };
  const Case cases[] = {
      {"llama", "token_embd.weight", "model.embed_tokens.weight"},
      {"llama", "output_norm.weight", "model.norm.weight"},
      {"llama", "output.weight", "lm_head.weight"},
      {"llama", "blk.3.attn_q.weight", "model.layers.3.self_attn.q_proj.weight"},
      {"qwen2", "blk.10.attn_k.bias", "model.layers.10.self_attn.k_proj.bias"},
      {"llama", "blk.0.ffn_norm.weight", "model.layers.0.post_attention_layernorm.weight"},
      {"gemma2", "blk.0.ffn_norm.weight", "model.layers.0.pre_feedforward_layernorm.weight"},
      {"gemma2", "blk.0.post_ffw_norm.weight", "model.layers.0.post_feedforward_layernorm.weight"},
      {"mixtral", "blk.0.ffn_gate_exps.weight",
       "model.layers.0.block_sparse_moe.experts.{}.w1.weight"},
      {"mixtral", "blk.0.ffn_down.7.weight", "model.layers.0.block_sparse_moe.experts.7.w2.weight"},
      {"qwen3_moe", "blk.0.ffn_up_exps.weight", "model.layers.0.mlp.experts.{}.up_proj.weight"},
      {"deepseek_v3", "blk.60.attn_kv_a_mqa.weight",
       "model.layers.60.self_attn.kv_a_proj_with_mqa.weight"},
      {"deepseek_v3", "blk.3.exp_probs_b.bias", "model.layers.3.mlp.gate.e_score_correction_bias"},
      {"phi3", "blk.0.ffn_up.weight", "model.layers.0.mlp.gate_up_proj.weight"},
      {"phi", "blk.0.attn_output.bias", "model.layers.0.self_attn.dense.bias"},
      {"gpt2", "blk.0.attn_qkv.weight", "transformer.h.0.attn.c_attn.weight"},
      {"gpt2", "position_embd.weight", "transformer.wpe.weight"},
      {"gpt_neox", "output.weight", "embed_out.weight"},
      {"gpt_neox", "blk.1.ffn_up.bias", "gpt_neox.layers.1.mlp.dense_h_to_4h.bias"},
      {"bloom", "token_embd_norm.bias", "transformer.word_embeddings_layernorm.bias"},
      {"gpt_oss", "blk.0.attn_sinks.weight", "model.layers.0.self_attn.sinks"},
      {"gpt_oss", "blk.0.ffn_up_exps.bias", "model.layers.0.mlp.experts.gate_up_proj_bias"},
      {"qwen3_next", "blk.0.ssm_a", "model.layers.0.linear_attn.A_log"},
      {"qwen3_5_text", "blk.0.ssm_alpha.weight", "model.layers.0.linear_attn.in_proj_a.weight"},
      {"nemotron_h", "blk.5.ssm_d", "backbone.layers.5.mixer.D"},
      {"bert", "blk.0.layer_output_norm.weight", "encoder.layer.0.output.LayerNorm.weight"},
  };
  for (const auto& [model_type, gguf, checkpoint] : cases) {
    EXPECT_EQ(CheckpointName(gguf, model_type), checkpoint) << model_type;
  }
}

TEST(GgufNames, OthersHaveNone) {
  for (const char* name : {"", "blk", "blk.", "blk.x.attn_q.weight", "blk.0", "blk.0.attn_x.weight",
                           "v.blk.0.attn_q.weight", "blk.0.ffn_up.x.weight"}) {
    EXPECT_EQ(CheckpointName(name, "llama"), std::nullopt) << name;
  }
  EXPECT_TRUE(IsMadeByConversion("rope_freqs.weight"));
  EXPECT_TRUE(IsMadeByConversion("rope_factors_long.weight"));
  EXPECT_FALSE(IsMadeByConversion("output.weight"));
}

struct Row {
  const char* name;  // without "blk.N." in a layer
  std::vector<std::int64_t> shape;
  int from = 0;  // the first layer that has it, and the step to the next
  int step = 1;
  int phase = -1;  // not the layers of this remainder
};

struct File {
  const char* model;
  int layers;
  std::vector<Row> once;
  std::vector<Row> layer;
};

// Tensors and shapes as load_arch_tensors asks for them (llama.cpp, src/models/NAME.cpp), with the
// sizes of the model, slowest dimension first.
std::vector<File> Files() {
  return {
      {"llama-3.1-8b",
       32,
       {{"token_embd.weight", {128256, 4096}},
        {"output.weight", {128256, 4096}},
        {"output_norm.weight", {4096}}},
       {{"attn_norm.weight", {4096}},
        {"attn_q.weight", {4096, 4096}},
        {"attn_k.weight", {1024, 4096}},
        {"attn_v.weight", {1024, 4096}},
        {"attn_output.weight", {4096, 4096}},
        {"ffn_norm.weight", {4096}},
        {"ffn_gate.weight", {14336, 4096}},
        {"ffn_up.weight", {14336, 4096}},
        {"ffn_down.weight", {4096, 14336}}}},
      {"mixtral-8x7b",
       32,
       {{"token_embd.weight", {32000, 4096}},
        {"output.weight", {32000, 4096}},
        {"output_norm.weight", {4096}}},
       {{"attn_norm.weight", {4096}},
        {"attn_q.weight", {4096, 4096}},
        {"attn_k.weight", {1024, 4096}},
        {"attn_v.weight", {1024, 4096}},
        {"attn_output.weight", {4096, 4096}},
        {"ffn_norm.weight", {4096}},
        {"ffn_gate_inp.weight", {8, 4096}},
        {"ffn_gate_exps.weight", {8, 14336, 4096}},
        {"ffn_up_exps.weight", {8, 14336, 4096}},
        {"ffn_down_exps.weight", {8, 4096, 14336}}}},
      {"deepseek-v3",
       61,
       {{"token_embd.weight", {129280, 7168}},
        {"output.weight", {129280, 7168}},
        {"output_norm.weight", {7168}},
        {"blk.0.ffn_gate.weight", {18432, 7168}},
        {"blk.1.ffn_gate.weight", {18432, 7168}},
        {"blk.2.ffn_gate.weight", {18432, 7168}},
        {"blk.0.ffn_up.weight", {18432, 7168}},
        {"blk.1.ffn_up.weight", {18432, 7168}},
        {"blk.2.ffn_up.weight", {18432, 7168}},
        {"blk.0.ffn_down.weight", {7168, 18432}},
        {"blk.1.ffn_down.weight", {7168, 18432}},
        {"blk.2.ffn_down.weight", {7168, 18432}}},
       {{"attn_norm.weight", {7168}},
        {"attn_q_a.weight", {1536, 7168}},
        {"attn_q_a_norm.weight", {1536}},
        {"attn_q_b.weight", {24576, 1536}},
        {"attn_kv_a_mqa.weight", {576, 7168}},
        {"attn_kv_a_norm.weight", {512}},
        {"attn_k_b.weight", {128, 512, 128}},
        {"attn_v_b.weight", {128, 128, 512}},
        {"attn_output.weight", {7168, 16384}},
        {"ffn_norm.weight", {7168}},
        {"ffn_gate_inp.weight", {256, 7168}, 3},
        {"exp_probs_b.bias", {256}, 3},
        {"ffn_gate_exps.weight", {256, 2048, 7168}, 3},
        {"ffn_up_exps.weight", {256, 2048, 7168}, 3},
        {"ffn_down_exps.weight", {256, 7168, 2048}, 3},
        {"ffn_gate_shexp.weight", {2048, 7168}, 3},
        {"ffn_up_shexp.weight", {2048, 7168}, 3},
        {"ffn_down_shexp.weight", {7168, 2048}, 3}}},
      {"gpt-oss-20b",
       24,
       {{"token_embd.weight", {201088, 2880}},
        {"output.weight", {201088, 2880}},
        {"output_norm.weight", {2880}}},
       {{"attn_norm.weight", {2880}},
        {"attn_q.weight", {4096, 2880}},
        {"attn_q.bias", {4096}},
        {"attn_k.weight", {512, 2880}},
        {"attn_k.bias", {512}},
        {"attn_v.weight", {512, 2880}},
        {"attn_v.bias", {512}},
        {"attn_output.weight", {2880, 4096}},
        {"attn_output.bias", {2880}},
        {"attn_sinks.weight", {64}},
        {"post_attention_norm.weight", {2880}},
        {"ffn_gate_inp.weight", {32, 2880}},
        {"ffn_gate_inp.bias", {32}},
        {"ffn_gate_exps.weight", {32, 2880, 2880}},
        {"ffn_gate_exps.bias", {32, 2880}},
        {"ffn_up_exps.weight", {32, 2880, 2880}},
        {"ffn_up_exps.bias", {32, 2880}},
        {"ffn_down_exps.weight", {32, 2880, 2880}},
        {"ffn_down_exps.bias", {32, 2880}}}},
      {"qwen3.5-35b-a3b",
       40,
       {{"token_embd.weight", {248320, 2048}},
        {"output.weight", {248320, 2048}},
        {"output_norm.weight", {2048}},
        {"blk.40.nextn.eh_proj.weight", {2048, 4096}},
        {"blk.40.attn_norm.weight", {2048}}},
       {{"attn_norm.weight", {2048}},
        {"post_attention_norm.weight", {2048}},
        {"attn_q.weight", {8192, 2048}, 3, 4},
        {"attn_k.weight", {512, 2048}, 3, 4},
        {"attn_v.weight", {512, 2048}, 3, 4},
        {"attn_output.weight", {2048, 4096}, 3, 4},
        {"attn_q_norm.weight", {256}, 3, 4},
        {"attn_k_norm.weight", {256}, 3, 4},
        {"attn_qkv.weight", {8192, 2048}, 0, 1, 3},
        {"attn_gate.weight", {4096, 2048}, 0, 1, 3},
        {"ssm_conv1d.weight", {8192, 4}, 0, 1, 3},
        {"ssm_dt.bias", {32}, 0, 1, 3},
        {"ssm_a", {32}, 0, 1, 3},
        {"ssm_beta.weight", {32, 2048}, 0, 1, 3},
        {"ssm_alpha.weight", {32, 2048}, 0, 1, 3},
        {"ssm_norm.weight", {128}, 0, 1, 3},
        {"ssm_out.weight", {2048, 4096}, 0, 1, 3},
        {"ffn_gate_inp.weight", {256, 2048}},
        {"ffn_gate_exps.weight", {256, 512, 2048}},
        {"ffn_up_exps.weight", {256, 512, 2048}},
        {"ffn_down_exps.weight", {256, 2048, 512}},
        {"ffn_gate_inp_shexp.weight", {2048}},
        {"ffn_gate_shexp.weight", {512, 2048}},
        {"ffn_up_shexp.weight", {512, 2048}},
        {"ffn_down_shexp.weight", {2048, 512}}}},
      {"phi-2",  // with one tensor for queries, keys and values, as the first files have it
       32,
       {{"token_embd.weight", {51200, 2560}},
        {"output.weight", {51200, 2560}},
        {"output.bias", {51200}},
        {"output_norm.weight", {2560}},
        {"output_norm.bias", {2560}}},
       {{"attn_norm.weight", {2560}},
        {"attn_norm.bias", {2560}},
        {"attn_qkv.weight", {7680, 2560}},
        {"attn_qkv.bias", {7680}},
        {"attn_output.weight", {2560, 2560}},
        {"attn_output.bias", {2560}},
        {"ffn_up.weight", {10240, 2560}},
        {"ffn_up.bias", {10240}},
        {"ffn_down.weight", {2560, 10240}},
        {"ffn_down.bias", {2560}}}},
      {"gpt2",  // whose checkpoint has its matrices lying on their sides
       12,
       {{"token_embd.weight", {50257, 768}},
        {"position_embd.weight", {1024, 768}},
        {"output_norm.weight", {768}},
        {"output_norm.bias", {768}},
        {"output.weight", {50257, 768}}},
       {{"attn_norm.weight", {768}},
        {"attn_norm.bias", {768}},
        {"attn_qkv.weight", {2304, 768}},
        {"attn_qkv.bias", {2304}},
        {"attn_output.weight", {768, 768}},
        {"attn_output.bias", {768}},
        {"ffn_norm.weight", {768}},
        {"ffn_norm.bias", {768}},
        {"ffn_up.weight", {3072, 768}},
        {"ffn_up.bias", {3072}},
        {"ffn_down.weight", {768, 3072}},
        {"ffn_down.bias", {768}}}},
  };
}

std::vector<LogicalTensor> TensorsOf(const File& file, const std::string& model_type) {
  std::vector<LogicalTensor> tensors;
  const auto add = [&](const std::string& name, const std::vector<std::int64_t>& shape) {
    tensors.push_back({.name = CheckpointName(name, model_type).value_or(name), .shape = shape});
  };
  for (const Row& row : file.once) {
    add(row.name, row.shape);
  }
  for (int layer = 0; layer < file.layers; ++layer) {
    for (const Row& row : file.layer) {
      const bool has = layer >= row.from && (layer - row.from) % row.step == 0;
      if (has && (row.phase < 0 || layer % 4 != row.phase)) {
        add("blk." + std::to_string(layer) + "." + row.name, row.shape);
      }
    }
  }
  return tensors;
}

TEST(GgufNames, TheTensorsOfAFileAreThoseOfTheNetwork) {
  for (const File& file : Files()) {
    const Result<Model> model = FindModel(file.model);
    ASSERT_TRUE(model) << file.model;
    const std::vector<LogicalTensor> tensors = TensorsOf(file, model->network.model_type);
    const auto lines = DifferencesFrom(model->network, tensors, ShapeRule::kElements);
    EXPECT_TRUE(lines.empty()) << file.model << ": " << lines.front();
  }
}

}  // namespace
}  // namespace fourpiles
