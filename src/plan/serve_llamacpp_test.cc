// llama.cpp's caches and buffers of GGUF files whose layers are unlike one another.

#include <array>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "plan/solve.h"
#include "tensors/gguf_testing.h"

namespace fourpiles {
namespace {

// One layer of the file; 0: it has no such part.
struct LayerSizes {
  std::uint64_t heads = 0;
  std::uint64_t key_value_heads = 0;
  std::uint64_t width = 0;
};
constexpr std::uint64_t kHidden = 64;
constexpr std::uint64_t kHead = 16;

// Nemotron's searched layers ("deci"): all, no attention, fewer heads and no feed-forward part, and
// linear attention, which is query heads without keys (src/models/deci.cpp).
constexpr std::array<LayerSizes, 4> kLayersOfFile = {
    {{4, 2, 128}, {0, 0, 64}, {4, 1, 0}, {4, 0, 32}}};

struct Tensor {
  std::string name;
  std::vector<std::uint64_t> ne;
};

std::vector<Tensor> TensorsOfFile() {
  std::vector<Tensor> tensors = {{"token_embd.weight", {kHidden, 100}},
                                 {"output_norm.weight", {kHidden}},
                                 {"output.weight", {kHidden, 100}}};
  for (std::size_t layer = 0; layer < kLayersOfFile.size(); ++layer) {
    const LayerSizes& sizes = kLayersOfFile[layer];
    const auto add = [&](const char* stem, std::vector<std::uint64_t> ne) {
      tensors.push_back({fmt::format("blk.{}.{}.weight", layer, stem), std::move(ne)});
    };
    if (sizes.heads > 0) {
      add("attn_norm", {kHidden});
      add("attn_output", {sizes.heads * kHead, kHidden});
    }
    if (sizes.key_value_heads > 0) {
      add("attn_q", {kHidden, sizes.heads * kHead});
      add("attn_k", {kHidden, sizes.key_value_heads * kHead});
      add("attn_v", {kHidden, sizes.key_value_heads * kHead});
    }
    if (sizes.width > 0) {
      add("ffn_norm", {kHidden});
      add("ffn_gate", {kHidden, sizes.width});
      add("ffn_up", {kHidden, sizes.width});
      add("ffn_down", {sizes.width, kHidden});
    }
  }
  return tensors;
}

void PutPerLayer(Builder& file, const char* key, std::uint64_t LayerSizes::*member) {
  file.ArrayKey(key, kGgufInt32, kLayersOfFile.size());
  for (const LayerSizes& sizes : kLayersOfFile) {
    file.Number(sizes.*member, 4);
  }
}

// The keys of an image encoder end as the language model's do, and stand before them.
std::string FileText() {
  const std::vector<Tensor> tensors = TensorsOfFile();
  Builder file(tensors.size(), 9);
  file.Key("general.architecture", "deci");
  file.Key("clip.vision.attention.head_count", kGgufUint32, 16, 4);
  file.Key("clip.vision.block_count", kGgufUint32, 27, 4);
  file.Key("deci.block_count", kGgufUint32, kLayersOfFile.size(), 4);
  file.Key("deci.context_length", kGgufUint32, 4096, 4);
  file.Key("deci.embedding_length", kGgufUint32, kHidden, 4);
  PutPerLayer(file, "deci.attention.head_count", &LayerSizes::heads);
  PutPerLayer(file, "deci.attention.head_count_kv", &LayerSizes::key_value_heads);
  PutPerLayer(file, "deci.feed_forward_length", &LayerSizes::width);
  std::uint64_t offset = 0;
  for (const Tensor& tensor : tensors) {
    std::uint64_t bytes = 4;
    for (const std::uint64_t length : tensor.ne) {
      bytes *= length;
    }
    file.Info(tensor.name, tensor.ne, 0, offset);
    offset += bytes;
  }
  return file.Data(offset);
}

class UnevenGguf : public testing::Test {
 protected:
  void SetUp() override { std::ofstream(path_, std::ios::binary) << FileText(); }
  void TearDown() override { unlink(path_.c_str()); }

  Budget Served(std::map<std::string, std::string> settings) const {
    settings.insert({{"engine", "llama.cpp"}, {"context-length", "1024"}});
    return BudgetOf(MakeJob(JobKind::kServe, path_, TypedSettings(settings)).value()).value();
  }

  std::string path_ = fmt::format("{}uneven-{}.gguf", testing::TempDir(), getpid());
};

// 1,024 cells of float16: keys and values of 2 × 16 in layer 0, of 16 in layer 2.
TEST_F(UnevenGguf, KeepsTheKeysOfEachLayerByItsOwnHeads) {
  const Budget budget = Served({});
  EXPECT_EQ(budget.piles.at(Pile::kKvCache), Bytes(1024 * 2 * 2 * (32 + 16)));
  for (const std::string& warning : budget.warnings) {
    EXPECT_EQ(warning.find("missing"), std::string::npos) << warning;
    EXPECT_EQ(warning.find("expected"), std::string::npos) << warning;
  }
}

// 4 layers and the output are 3 parts and 2, and the last layer has no keys.
TEST_F(UnevenGguf, PutsEachLayersCacheOnItsDevice) {
  const Budget budget = Served({{"devices", "2"}});
  ASSERT_EQ(budget.ranks.size(), 2U);
  EXPECT_EQ(budget.ranks[0].piles.at(Pile::kKvCache), Bytes(1024 * 2 * 2 * (32 + 16)));
  EXPECT_EQ(budget.ranks[1].piles.at(Pile::kKvCache), Bytes(0));
}

// Scores of 4 heads, the mask, and the residual, the norm and queries before and after the
// rotation, of 64 values each: 512 tokens in float32 (plan/llamacpp_compute.h).
TEST_F(UnevenGguf, ReservesScoresForTheHeadsThatAreQueried) {
  const Budget budget = Served({{"flash-attention", "off"}});
  EXPECT_EQ(budget.piles.at(Pile::kWorkspace), Bytes(512 * 4 * (4 * 1024 + 1024 + 4 * 64)));
}

// Tensors of the file, 4 bytes a value: embeddings and output 2 × 6,400, a norm of 64; layers of
// 36,992, 12,352, 10,304 and 10,368.
TEST_F(UnevenGguf, TheProjectorIsCountedByItsTensors) {
  const auto weights = [](const Budget& budget) { return budget.piles.at(Pile::kWeights); };
  EXPECT_EQ(weights(Served({{"mmproj", path_}})) - weights(Served({})), Bytes(4 * 82880));
}

// Llama-3.2-1B in bfloat16, 33 norms of 2,048 in float32: a draft that is no GGUF file.
TEST_F(UnevenGguf, ADraftBesideAFileIsInItsOwnFormat) {
  const auto weights = [](const Budget& budget) { return budget.piles.at(Pile::kWeights).value(); };
  const std::int64_t draft = weights(Served({{"draft", "llama-3.2-1b"}})) - weights(Served({}));
  EXPECT_NEAR(static_cast<double>(draft), 2.0 * (1235814400 + 33 * 2048), 1024);
}

}  // namespace
}  // namespace fourpiles
