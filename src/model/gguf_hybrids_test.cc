// The keys and tensors of GGUFs whose layers are state-space layers or of many sizes, as
// llama.cpp's converter writes them (conversion/{mamba,falcon_h1,granite,jamba,deci}.py), against
// the catalogue's networks.

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/testing.h"
#include "model/catalogue.h"
#include "model/from_config.h"
#include "model/gguf_config.h"
#include "model/gguf_names.h"

namespace fourpiles {
namespace {

struct File {
  const char* model;  // of the catalogue
  std::string architecture;
  std::string keys;  // without the architecture before each: "block_count": 48
  std::vector<std::string> tensors;
};

std::vector<std::int64_t> ShapeOf(const std::string& text) {
  std::vector<std::int64_t> shape;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t used = 0;
    shape.push_back(std::stoll(text.substr(at), &used));
    at += used + 1;
  }
  return shape;
}

// Each tensor is "NAME SHAPE": "token_embd.weight 100x64".
Result<Network> NetworkOf(const File& file) {
  const Result<Json> keys = ReadJson("{" + file.keys + "}", "keys");
  EXPECT_TRUE(keys) << ErrorLine(keys);
  std::vector<MetadataEntry> metadata = {
      {.key = "general.architecture", .value = file.architecture}};
  for (const auto& [key, value] : *keys->AsObject()) {
    metadata.push_back({.key = file.architecture + "." + key, .value = value});
  }
  std::vector<FileTensor> tensors;
  for (const std::string& text : file.tensors) {
    const std::size_t space = text.find(' ');
    tensors.push_back({.name = text.substr(0, space), .shape = ShapeOf(text.substr(space + 1))});
  }
  const Result<Json> config = ConfigFromGguf(metadata, tensors, "a.gguf");
  return config ? NetworkFromConfig(*config, "a.gguf")
                : Result<Network>(tl::make_unexpected(config.error()));
}

// An array with one number for each layer.
std::string Each(const std::vector<std::int64_t>& numbers) {
  return fmt::format("[{}]", fmt::join(numbers, ", "));
}

std::vector<std::int64_t> Where(std::int64_t layers, std::int64_t value, std::int64_t period,
                                std::int64_t offset) {
  std::vector<std::int64_t> numbers;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    numbers.push_back(layer % period == offset ? value : 0);
  }
  return numbers;
}

std::vector<std::string> JambaTensors() {
  std::vector<std::string> tensors = {"token_embd.weight 65536x4096", "output.weight 65536x4096",
                                      "blk.0.ssm_conv1d.bias 8192"};
  for (int layer = 1; layer < 32; layer += 2) {
    tensors.push_back(fmt::format("blk.{}.ffn_gate_inp.weight 16x4096", layer));
  }
  return tensors;
}

std::vector<File> Files() {
  return {
      {"mamba-1.4b",
       "mamba",
       R"("context_length": 1048576, "embedding_length": 2048, "feed_forward_length": 0,
          "attention.head_count": 0, "block_count": 48, "ssm.conv_kernel": 4,
          "ssm.inner_size": 4096, "ssm.state_size": 16, "ssm.time_step_rank": 128,
          "ssm.dt_b_c_rms": false)",
       {"token_embd.weight 50280x2048", "blk.0.ssm_conv1d.bias 4096"}},
      {"mamba-codestral-7b",
       "mamba2",
       R"("embedding_length": 4096, "feed_forward_length": 0, "attention.head_count": 0,
          "block_count": 64, "ssm.conv_kernel": 4, "ssm.inner_size": 8192, "ssm.state_size": 128,
          "ssm.time_step_rank": 128, "ssm.group_count": 8)",
       {"token_embd.weight 32768x4096", "output.weight 32768x4096", "blk.0.ssm_conv1d.bias 10240"}},
      {"falcon-h1-1.5b",
       "falcon-h1",
       R"("block_count": 24, "embedding_length": 2048, "feed_forward_length": 4608,
          "attention.head_count": 8, "attention.head_count_kv": 2, "attention.key_length": 128,
          "attention.value_length": 128, "ssm.conv_kernel": 4, "ssm.inner_size": 3072,
          "ssm.state_size": 256, "ssm.time_step_rank": 48, "ssm.group_count": 1,
          "vocab_size": 65537)",
       {"token_embd.weight 65537x2048", "output.weight 65537x2048", "blk.0.ssm_conv1d.bias 3584",
        "blk.0.ssm_norm.weight 1x3072"}},
      {"granite-4.0-h-tiny",
       "granitehybrid",
       fmt::format(R"("block_count": 40, "embedding_length": 1536, "feed_forward_length": 512,
          "attention.head_count": 12, "attention.head_count_kv": {}, "expert_count": 64,
          "expert_used_count": 6, "expert_shared_feed_forward_length": 1024,
          "ssm.conv_kernel": 4, "ssm.inner_size": 3072, "ssm.state_size": 128,
          "ssm.time_step_rank": 48, "ssm.group_count": 1, "vocab_size": 100352)",
                   Each(Where(40, 4, 10, 5))),
       {"token_embd.weight 100352x1536", "blk.0.ssm_conv1d.bias 3328"}},
      {"granite-3.1-8b",
       "granite",
       R"("block_count": 40, "embedding_length": 4096, "feed_forward_length": 12800,
          "attention.head_count": 32, "attention.head_count_kv": 8, "rope.dimension_count": 128,
          "vocab_size": 49155)",
       {"token_embd.weight 49155x4096"}},
      {"command-r7b",
       "cohere2",
       R"("block_count": 32, "embedding_length": 4096, "feed_forward_length": 14336,
          "attention.head_count": 32, "attention.head_count_kv": 8,
          "attention.sliding_window": 4096, "vocab_size": 256000)",
       {"token_embd.weight 256000x4096"}},
      {"jamba-v0.1", "jamba",
       fmt::format(R"("block_count": 32, "embedding_length": 4096, "feed_forward_length": 14336,
          "attention.head_count": 32, "attention.head_count_kv": {}, "ssm.conv_kernel": 4,
          "ssm.inner_size": 8192, "ssm.state_size": 16, "ssm.time_step_rank": 256,
          "expert_count": 16, "expert_used_count": 2)",
                   Each(Where(32, 8, 8, 4))),
       JambaTensors()},
  };
}

void ExpectTheNetworkOf(const char* id, const Result<Network>& network) {
  const Result<Model> named = FindModel(id);
  ASSERT_TRUE(named) << id;
  ASSERT_TRUE(network) << id << ": " << ErrorLine(network);
  EXPECT_EQ(ParameterCount(*network), ParameterCount(named->network)) << id;
  ASSERT_EQ(network->caches.size(), named->network.caches.size()) << id;
  for (std::size_t i = 0; i < network->caches.size(); ++i) {
    const Cache& read = network->caches[i];
    const Cache& expected = named->network.caches[i];
    EXPECT_EQ(read.layer, expected.layer) << id;
    EXPECT_EQ(read.key_elements_per_token, expected.key_elements_per_token) << id;
    EXPECT_EQ(read.window, expected.window) << id;
    EXPECT_EQ(read.convolution_elements_per_request, expected.convolution_elements_per_request)
        << id;
    EXPECT_EQ(read.recurrent_elements_per_request, expected.recurrent_elements_per_request) << id;
  }
}

TEST(GgufHybrids, GiveTheNetworkOfTheCheckpoint) {
  for (const File& file : Files()) {
    ExpectTheNetworkOf(file.model, NetworkOf(file));
  }
}

// Nemotron Ultra 253B, whose arrays of 162 layers a log prints (ikawrakow/ik_llama.cpp pull request
// 377): 64 layers attend, 81 have a feed-forward part; "model params 253.401 B", "repeating layers
// 249.199 B parameters".
TEST(GgufHybrids, TakeTheSizesOfEachLayer) {
  const Result<Model> ultra = FindModel("llama-3.1-nemotron-ultra-253b");
  ASSERT_TRUE(ultra);
  std::vector<std::int64_t> heads(162);
  std::vector<std::int64_t> key_value(162);
  std::vector<std::int64_t> widths(162);
  for (const Cache& cache : ultra->network.caches) {
    heads[static_cast<std::size_t>(cache.layer)] = 128;
    key_value[static_cast<std::size_t>(cache.layer)] = 8;
  }
  std::int64_t repeating = 0;
  for (const Block& block : ultra->network.blocks) {
    repeating += IsNumbered(block) ? ElementsOf(block) : 0;
    for (const Parameter& parameter : block.parameters) {
      if (parameter.name == "mlp.up_proj.weight") {
        for (std::int64_t i = 0; i < block.repeat; ++i) {
          widths[static_cast<std::size_t>(block.first + i)] = parameter.shape[0];
        }
      }
    }
  }
  EXPECT_NEAR(static_cast<double>(repeating) / 1e9, 249.199, 0.0005);
  EXPECT_NEAR(static_cast<double>(ParameterCount(ultra->network)) / 1e9, 253.401, 0.0005);
  EXPECT_EQ(std::ranges::count(heads, 128), 64);
  EXPECT_EQ(162 - std::ranges::count(widths, 0), 81);
  ExpectTheNetworkOf("llama-3.1-nemotron-ultra-253b",
                     NetworkOf({"",
                                "deci",
                                fmt::format(R"("block_count": 162, "embedding_length": 16384,
                    "attention.head_count": {}, "attention.head_count_kv": {},
                    "feed_forward_length": {}, "attention.key_length": 128,
                    "vocab_size": 128256)",
                                            Each(heads), Each(key_value), Each(widths)),
                                {"output.weight 128256x16384"}}));
}

// Granite-4.0-H-1B by hand, without experts: 36 mixers as those of the tiny one, 14,642,576; four
// attentions of 6,291,456; 40 parts of 3 x 4096 x 1536 and two norms; words of 100352 x 1536; a
// norm. Its log says "model params 1.46 B" (ggml-org/llama.cpp pull request 20795).
TEST(GgufHybrids, TakeAPlainPartWhereThereAreNoExperts) {
  const Result<Network> network =
      NetworkOf({"",
                 "granitehybrid",
                 fmt::format(R"("block_count": 40, "embedding_length": 1536,
                    "feed_forward_length": 4096, "attention.head_count": 12,
                    "attention.head_count_kv": {}, "ssm.conv_kernel": 4, "ssm.inner_size": 3072,
                    "ssm.state_size": 128, "ssm.time_step_rank": 48, "ssm.group_count": 1)",
                             Each(Where(40, 4, 10, 5))),
                 {"token_embd.weight 100352x1536", "blk.0.ssm_conv1d.bias 3328"}});
  ASSERT_TRUE(network) << ErrorLine(network);
  EXPECT_EQ(ParameterCount(*network), 36 * 14'642'576LL + 4 * 6'291'456LL +
                                          40 * (3LL * 4096 * 1536 + 2 * 1536) + 100'352LL * 1536 +
                                          1536);
}

TEST(GgufHybrids, RefuseLayersOutOfPeriod) {
  const Result<Network> network =
      NetworkOf({"",
                 "jamba",
                 R"("block_count": 4, "embedding_length": 64, "feed_forward_length": 64,
                    "attention.head_count": 4, "attention.head_count_kv": [0, 2, 2, 0],
                    "ssm.conv_kernel": 4, "ssm.inner_size": 128, "ssm.state_size": 16,
                    "ssm.time_step_rank": 4, "vocab_size": 100)",
                 {}});
  EXPECT_EQ(ErrorLine(network),
            "a.gguf: jamba.attention.head_count_kv | layer 2 breaks the period of 2 | expected "
            "layers in a period | give the folder with the model's config.json");
}

TEST(GgufHybrids, NamesAreThoseOfTheCheckpoint) {
  const std::vector<std::vector<const char*>> cases = {
      {"mamba", "blk.1.ssm_dt.bias", "backbone.layers.1.mixer.dt_proj.bias"},
      {"mamba", "blk.1.ssm_x.weight", "backbone.layers.1.mixer.x_proj.weight"},
      {"mamba", "blk.1.ssm_a", "backbone.layers.1.mixer.A_log"},
      {"mamba2", "blk.1.ssm_dt.bias", "backbone.layers.1.mixer.dt_bias"},
      {"falcon_h1", "blk.2.ffn_norm", "model.layers.2.pre_ff_layernorm.weight"},
      {"falcon_h1", "blk.2.ffn_up.weight", "model.layers.2.feed_forward.up_proj.weight"},
      {"falcon_h1", "blk.2.attn_q.weight", "model.layers.2.self_attn.q_proj.weight"},
      {"falcon_h1", "output_norm.weight", "model.final_layernorm.weight"},
      {"granitemoehybrid", "blk.0.ffn_up_exps.weight",
       "model.layers.0.block_sparse_moe.input_linear.weight"},
      {"granitemoehybrid", "blk.0.ssm_dt.bias", "model.layers.0.mamba.dt_bias"},
      {"granitemoehybrid", "blk.0.ffn_norm.weight",
       "model.layers.0.post_attention_layernorm.weight"},
      {"jamba", "blk.0.ssm_b_norm.weight", "model.layers.0.mamba.b_layernorm.weight"},
      {"jamba", "blk.0.ffn_down_exps.weight",
       "model.layers.0.feed_forward.experts.{}.down_proj.weight"},
      {"nemotron", "blk.0.attn_norm.bias", "model.layers.0.input_layernorm.bias"},
  };
  for (const auto& row : cases) {
    EXPECT_EQ(CheckpointName(row[1], row[0]), row[2]) << row[0];
  }
}

}  // namespace
}  // namespace fourpiles
