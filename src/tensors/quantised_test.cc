#include "tensors/quantised.h"

#include <chrono>

#include "tensors/quantised_testing.h"

namespace fourpiles {
namespace {

TEST(Quantised, KeepsPlainTensorsPlain) {
  MadeCheckpoint made;
  made.With("embed.weight", "BF16", {100, 8})
      .With("position_ids", "I64", {1, 512})
      .With("mask", "U8", {4, 4})
      .With("block.scale", "F32", {8})
      .With("block.scales", "BF16", {8, 2})
      .With("block.weight", "BF16", {8, 8});
  const StoredWeights weights = made.Weights();
  EXPECT_EQ(Parameters(weights), 800 + 512 + 16 + 8 + 16 + 64);
  EXPECT_TRUE(weights.weights.empty());
  EXPECT_TRUE(weights.notes.empty());
  for (const TensorMeaning& meaning : weights.tensors) {
    EXPECT_EQ(meaning.role, TensorRole::kPlain);
  }
}

TEST(Quantised, CountsALearnableScaleBesideIntegers) {
  MadeCheckpoint made;
  made.With("table.weight", "I8", {8, 8}).With("table.scale", "F32", {8});
  EXPECT_EQ(Parameters(made.Weights()), 64 + 8);
}

TEST(Quantised, CountsNoPowersOfTwo) {
  MadeCheckpoint made;
  made.With("a.weight", "BF16", {8, 8}).With("a.block_exponents", "F8_E8M0", {8, 1});
  const StoredWeights weights = made.Weights();
  EXPECT_EQ(Parameters(weights), 64);
  EXPECT_EQ(weights.tensors[1].role, TensorRole::kScales);
}

TEST(Quantised, SaysWhatItCannotCount) {
  MadeCheckpoint made(R"({"quantization_config": {"quant_method": "aqlm"}})");
  made.With("a.codes", "I16", {8, 16, 1})
      .With("a.codebooks", "F16", {1, 65536, 1, 8})
      .With("a.scales", "F16", {8, 1, 1, 1})
      .With("b.codes", "I16", {8, 16, 1})
      .With("b.codebooks", "F16", {1, 65536, 1, 8})
      .With("b.scales", "F16", {8, 1, 1, 1});
  const StoredWeights weights = made.Weights();
  EXPECT_EQ(weights.notes,
            Texts{"aqlm: packed, the logical number of parameters is not known: a.codes and 1 "
                  "more"});
  EXPECT_EQ(Parameters(weights), 2 * (128 + 524288 + 8));
  EXPECT_EQ(weights.tensors[0].role, TensorRole::kCodes);
}

TEST(Quantised, SaysThatADeclaredQuantisationWasNotFound) {
  MadeCheckpoint made(R"({"quantization_config": {"quant_method": "quark"}})");
  made.With("a.weight", "BF16", {8, 8});
  EXPECT_EQ(
      made.Weights().notes,
      Texts{"quark: declared in config.json, but no tensor is packed in a way that is known"});
}

TEST(Quantised, CountsNoScalesWhoseWeightLiesElsewhere) {
  MadeCheckpoint made(R"({"quantization_config": {"quant_method": "fp8"}})");
  made.With("q.weight_scale_inv", "F32", {2, 2})
      .With("attn.k_scale", "F32", {})
      .With("v.weight", "F8_E4M3", {4, 4})
      .With("v.weight_scale_inv", "F32", {1, 1});
  EXPECT_EQ(Parameters(made.Weights()), 16);
}

// A shape that would count more values than the codes have bits.
TEST(Quantised, CountsHostileShapesAsTheyLie) {
  MadeCheckpoint made;
  made.With("q.W_q", "U8", {4, 4})
      .With("q.shape", "I64", {2}, Bytes<std::int64_t>({1 << 20, 1 << 20}));
  const StoredWeights weights = made.Weights();
  EXPECT_EQ(Parameters(weights), 16 + 2);
  EXPECT_EQ(weights.notes, Texts{"hqq: the declared shape does not fit the codes, which count as "
                                 "they lie: q.W_q"});
}

TEST(Quantised, LivesThroughOddShapes) {
  const std::vector<std::vector<std::int64_t>> shapes = {
      {}, {0}, {1}, {0, 0}, {1, 0}, {3, 5}, {1, 1, 1}, {2, 2, 16}, {std::int64_t{1} << 52, 1}};
  for (const char* suffix :
       {".qweight", ".weight", ".weight_packed", "_blocks", ".W_q", ".weight._data"}) {
    for (const char* dtype : {"I32", "U32", "U8", "I8", "F8_E4M3", "I16"}) {
      for (const auto& shape : shapes) {
        for (const auto& scale : shapes) {
          MadeCheckpoint made(R"({"quantization_config": {"bits": 4, "group_size": 32}})");
          made.With("q" + std::string(suffix), dtype, shape);
          for (const char* neighbour : {".scales", ".weight_scale", "_scales", ".weight._scale"}) {
            made.With("q" + std::string(neighbour), "F32", scale);
          }
          const StoredWeights weights = made.Weights();
          EXPECT_GE(Parameters(weights), 0);
        }
      }
    }
  }
}

TEST(Quantised, IsCheapForPlainTensors) {
  MadeCheckpoint made;
  for (int i = 0; i < 91'000; ++i) {
    made.With("model.layers." + std::to_string(i) + ".mlp.down_proj.weight", "BF16", {64, 64});
  }
  const auto begin = std::chrono::steady_clock::now();
  const StoredWeights weights = made.Weights();
  const auto elapsed = std::chrono::steady_clock::now() - begin;
  EXPECT_EQ(Parameters(weights), std::int64_t{91'000} * 64 * 64);
  RecordProperty("milliseconds", static_cast<int>(elapsed / std::chrono::milliseconds(1)));
}

}  // namespace
}  // namespace fourpiles
