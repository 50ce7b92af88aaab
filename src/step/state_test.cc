#include "step/state.h"

#include <set>

#include <gtest/gtest.h>

#include "model/catalogue.h"

namespace fourpiles {
namespace {

Network Count(std::int64_t parameters) {
  return NetworkFromCount({.parameters = parameters}).value();
}

// Bytes of one rank's state when ZeRO divides so many ranks' piles.
std::int64_t StateBytes(const Network& network, const char* recipe_name, const Shares& shares) {
  const Recipe recipe = FindRecipe(recipe_name).value();
  const Optimizer optimizer = FindOptimizer("adam").value();
  std::int64_t bytes = 0;
  for (const Resident& resident :
       {WeightStorages(network, recipe.weights, shares.weights).value(),
        GradientStorage(network, recipe, shares.gradients).value(),
        OptimizerStorages(network, recipe, optimizer, shares.optimizer_state).value()}) {
    for (const Storage& storage : resident.storages) {
      bytes += storage.place == Place::kDevice ? storage.bytes.expected.value() : 0;
    }
  }
  return bytes;
}

// Rajbhandari et al. 2020, figure 1: 7.5 billion parameters, K = 12, 64 devices.
TEST(State, IsTheZeroPapersTable) {
  const Network network = Count(7'500'000'000);
  EXPECT_EQ(StateBytes(network, "mixed-fp16", {}), 120'000'000'000);
  EXPECT_EQ(StateBytes(network, "mixed-fp16", {.optimizer_state = {64, 64}}), 31'406'250'000);
  EXPECT_EQ(StateBytes(network, "mixed-fp16", {.gradients = {64, 64}, .optimizer_state = {64, 64}}),
            16'640'625'000);
  EXPECT_EQ(StateBytes(network, "mixed-fp16",
                       {.weights = {64, 64}, .gradients = {64, 64}, .optimizer_state = {64, 64}}),
            1'875'000'000);
}

// Bytes a parameter with Adam: PyTorch's 16 in float32 and 8 in pure bfloat16, the ZeRO paper's 16,
// Megatron-LM's 18.
TEST(State, BytesAParameterFollowFromTheRecipe) {
  struct Case {
    const char* recipe;
    std::int64_t bytes;
  };
  for (const Case& c :
       {Case{"fp32", 16}, Case{"mixed-fp16", 16}, Case{"mixed-bf16", 16}, Case{"amp-fp16", 16},
        Case{"amp-bf16", 16}, Case{"bf16", 8}, Case{"fp16", 8}, Case{"megatron-bf16", 18}}) {
    EXPECT_EQ(StateBytes(Count(1000), c.recipe, {}), 1000 * c.bytes) << c.recipe;
  }
}

// Llama-3.1-8B has 32 layers of 4096 × (4096 + 1024 + 1024 + 4096) and 3 × 4096 × 14336:
// 218,103,808 in seven matrices. Transformer Engine keeps each and its transpose in float8, and for
// its five tensors (linear.py: three forward, two backward) 1024 largest values, a scale and its
// inverse.
TEST(State, TransformerEngineKeepsCopiesHistoriesAndScales) {
  const Network network = FindModel("llama-3.1-8b")->network;
  const Resident kept = ScalingStorages(network, FindRecipe("fp8-te").value()).value();
  ASSERT_EQ(kept.storages.size(), 2u);
  EXPECT_EQ(kept.storages[0].bytes.expected, Bytes(2 * 32LL * 218'103'808));
  EXPECT_EQ(kept.storages[1].bytes.expected, Bytes(4 * 32 * 7 * 5 * 1026));
}

// torch/amp/grad_scaler.py: the scale, its growth tracker and found_inf, four bytes each. torchao's
// float8 and plain bfloat16 keep nothing.
TEST(State, AScalerOfTheLossIsThreeNumbers) {
  const Network network = FindModel("gpt2")->network;
  const auto kept = [&](const char* recipe) {
    return ScalingStorages(network, FindRecipe(recipe).value()).value();
  };
  ASSERT_EQ(kept("amp-fp16").storages.size(), 1u);
  EXPECT_EQ(kept("amp-fp16").storages[0].bytes.expected, Bytes(12));
  EXPECT_TRUE(kept("torchao-float8").storages.empty());
  EXPECT_TRUE(kept("bf16").storages.empty());
}

TEST(State, EqualSharesCoverTheWholeWithLessThanOneElementARankToSpare) {
  const Recipe recipe = FindRecipe("bf16").value();
  for (const std::int64_t parameters : {1, 7, 64, 1000, 999'983}) {
    for (const std::int64_t ranks : {1, 2, 3, 64, 1000}) {
      const Resident resident = GradientStorage(Count(parameters), recipe, {ranks, ranks}).value();
      const Storage& share = resident.storages.front();
      const std::int64_t spare = share.elements.value() * ranks - parameters;
      EXPECT_GE(spare, 0);
      EXPECT_LT(spare, ranks);
    }
  }
}

TEST(State, WeightsAreTheParametersTensorByTensor) {
  const Network network = FindModel("llama-3.1-8b")->network;
  std::int64_t elements = 0;
  std::set<std::string> names;
  const Resident weights = WeightStorages(network, FindFormat("bf16").value()).value();
  for (const Storage& storage : weights.storages) {
    elements += storage.elements.value();
    const std::string& what = weights.texts[static_cast<std::size_t>(storage.text)].what;
    EXPECT_TRUE(names.insert(what).second) << what;
  }
  EXPECT_EQ(elements, 8'030'261'248);  // the checkpoint's total
  EXPECT_TRUE(names.contains("model.layers.{0..31}.self_attn.q_proj.weight"));
}

}  // namespace
}  // namespace fourpiles
