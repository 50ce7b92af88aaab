#include "tensors/piles.h"

#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace fourpiles {
namespace {

FileTensor Tensor(std::string name, std::vector<std::int64_t> shape = {1}) {
  const std::int64_t elements = ElementsOf(shape).value();
  return {.name = std::move(name), .shape = std::move(shape), .elements = elements};
}

// Names as torch.save() of trainers, DeepSpeed and FSDP have them.
TEST(Piles, AreToldByNames) {
  const std::pair<const char*, TensorPile> kCases[] = {
      {"0.weight", TensorPile::kWeights},
      {"model.0.weight", TensorPile::kWeights},
      {"state_dict.encoder.bias", TensorPile::kWeights},
      {"model.state.0.weight", TensorPile::kWeights},
      {"optimizer.state.0.exp_avg", TensorPile::kOptimizer},
      {"state.3.momentum_buffer", TensorPile::kOptimizer},
      {"state.27.step", TensorPile::kOptimizer},
      {"opt.state.0.exp_avg_sq", TensorPile::kOptimizer},
      {"optimizer_state_dict.base_optimizer_state.state.0.exp_avg", TensorPile::kOptimizer},
      {"optimizer_state_dict.single_partition_of_fp32_groups.0", TensorPile::kOptimizer},
      {"optim.state.blocks.0.weight.exp_avg", TensorPile::kOptimizer},
      {"grads.0.weight", TensorPile::kGradients},
      {"0.weight.grad", TensorPile::kGradients},
      {"rng", TensorPile::kOther},
      {"cuda_rng_state", TensorPile::kOther},
      {"rng_states.torch", TensorPile::kOther},
      {"step", TensorPile::kWeights},  // alone it may be a buffer
  };
  for (const auto& [name, pile] : kCases) {
    EXPECT_EQ(TensorPilesOf({Tensor(name)})[0].pile, pile) << name;
  }
}

// As torchvision, timm, latent diffusion, DiT, NeMo's optimizer and callbacks of Lightning name
// them.
TEST(Piles, TellAveragesFromTheWeightsBesideThem) {
  const std::pair<const char*, TensorPile> kCases[] = {
      {"ema.0.weight", TensorPile::kAverages},
      {"ema_state_dict.0.weight", TensorPile::kAverages},
      {"module_ema.0.weight", TensorPile::kAverages},
      {"model_ema.module.0.weight", TensorPile::kAverages},
      {"state_dict_ema.0.weight", TensorPile::kAverages},
      {"state_dict.model_ema.0weight", TensorPile::kAverages},
      {"callbacks.EMA.ema_state_dict.0.weight", TensorPile::kAverages},
      {"optimizer_states.0.ema.3", TensorPile::kAverages},
      {"callbacks.ModelCheckpoint.best_model_score", TensorPile::kOther},
      {"encoder.0.ema.weight", TensorPile::kWeights},  // a layer
      {"schema.weight", TensorPile::kWeights},
  };
  for (const auto& [name, pile] : kCases) {
    EXPECT_EQ(TensorPilesOf({Tensor("model.0.weight", {4}), Tensor(name)})[1].pile, pile) << name;
  }
  const std::vector<PiledTensor> piles =
      TensorPilesOf({Tensor("model_ema.module.0.weight"), Tensor("callbacks.EMA.ema_state_dict.b"),
                     Tensor("model.0.weight"), Tensor("model.b")});
  EXPECT_EQ(piles[0].weight, 2);
  EXPECT_EQ(piles[1].weight, 3);
}

// What is no copy of anything is the model; YOLO leaves a count beside it.
TEST(Piles, TakeAveragesAloneForWeights) {
  const std::vector<PiledTensor> piles =
      TensorPilesOf({Tensor("ema.0.weight", {2, 3}), Tensor("updates", {}),
                     Tensor("optimizer.state.0.exp_avg", {2, 3})});
  EXPECT_EQ(piles[0].pile, TensorPile::kWeights);
  EXPECT_EQ(piles[2].weight, 0);
}

// Lightning's WeightAveraging: the averages take the place of the weights.
TEST(Piles, KnowTheWeightsThatWeightAveragingPutsAside) {
  const std::vector<PiledTensor> piles =
      TensorPilesOf({Tensor("state_dict.0.weight"), Tensor("current_model_state.0.weight"),
                     Tensor("averaging_state.n_averaged", {})});
  EXPECT_EQ(piles[0].pile, TensorPile::kAverages);
  EXPECT_EQ(piles[0].weight, 1);
  EXPECT_EQ(piles[1].pile, TensorPile::kWeights);
  EXPECT_EQ(piles[2].pile, TensorPile::kOther);
}

// Of AdamW with one group for matrices and one for vectors, which get the numbers behind them.
TEST(Piles, NameTheWeightOfEachMoment) {
  const std::vector<FileTensor> tensors = {
      Tensor("model.mask", {9}),
      Tensor("model.0.weight", {2, 3}),
      Tensor("model.0.bias", {2}),
      Tensor("model.1.weight", {2, 3}),
      Tensor("model.1.bias", {2}),
      Tensor("optimizer.state.0.step", {}),
      Tensor("optimizer.state.0.exp_avg", {2, 3}),
      Tensor("optimizer.state.1.exp_avg", {2, 3}),
      Tensor("optimizer.state.2.exp_avg", {2}),
      Tensor("optimizer.state.3.exp_avg_sq", {2}),
      Tensor("grads.1.weight", {2, 3}),
  };
  const std::vector<PiledTensor> piles = TensorPilesOf(tensors);
  EXPECT_EQ(piles[5].moment, "step");
  EXPECT_EQ(piles[6].moment, "exp_avg");
  EXPECT_EQ(piles[5].weight, 1);
  EXPECT_EQ(piles[6].weight, 1);
  EXPECT_EQ(piles[7].weight, 3);
  EXPECT_EQ(piles[8].weight, 2);
  EXPECT_EQ(piles[9].weight, 4);
  EXPECT_EQ(piles[9].moment, "exp_avg_sq");
  EXPECT_EQ(piles[10].weight, 3);
}

TEST(Piles, NameNoWeightWhereShapesDoNotFit) {
  const std::vector<PiledTensor> piles =
      TensorPilesOf({Tensor("model.a", {2}), Tensor("optimizer.state.0.exp_avg", {2}),
                     Tensor("optimizer.state.1.exp_avg", {2})});
  EXPECT_EQ(piles[1].weight, -1);
  EXPECT_EQ(piles[2].weight, -1);
}

// Tied weights have one set of moments, buffers none.
TEST(Piles, PassOverBuffersAndTiedWeights) {
  std::vector<FileTensor> tensors = {Tensor("wte.weight", {4}),
                                     Tensor("lm_head.weight", {4}),
                                     Tensor("bn.running_mean", {4}),
                                     Tensor("b.weight", {4}),
                                     Tensor("optimizer.state.0.exp_avg", {4}),
                                     Tensor("optimizer.state.1.exp_avg", {4})};
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    tensors[i].storage = i == 1 ? 0 : static_cast<std::int32_t>(i);
  }
  const std::vector<PiledTensor> piles = TensorPilesOf(tensors);
  EXPECT_EQ(piles[4].weight, 0);
  EXPECT_EQ(piles[5].weight, 3);

  std::vector<std::string> names;
  Checkpoint checkpoint = {.tensors = tensors};
  checkpoint.files.push_back({.format = "torch-zip"});
  KeepWeightsAlone(checkpoint);
  for (const FileTensor& tensor : checkpoint.tensors) {
    names.push_back(tensor.name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"wte.weight", "bn.running_mean", "b.weight"}));
  checkpoint.tensors = {Tensor("a.grad"), Tensor("b")};  // which look at no storage
  KeepWeightsAlone(checkpoint);
  EXPECT_EQ(checkpoint.tensors.size(), 1U);
  checkpoint.tensors = {Tensor("a.grad"), Tensor("b")};
  checkpoint.files.front().format = "safetensors";
  KeepWeightsAlone(checkpoint);
  EXPECT_EQ(checkpoint.tensors.size(), 2U);
}

TEST(Piles, FindAWeightByTheNameInItsState) {
  const std::vector<PiledTensor> piles = TensorPilesOf(
      {Tensor("model.layer.0.weight", {2}), Tensor("optim.state.layer.0.weight.exp_avg")});
  EXPECT_EQ(piles[1].weight, 0);
}

// PyTorch numbers parameters through; one that never had a gradient has no state.
TEST(Piles, NumbersOfOneGroupCountWhatHasNoState) {
  std::vector<FileTensor> tensors = {
      Tensor("model.0.weight", {3}),
      Tensor("model.1.weight", {3}),
      Tensor("model.2.weight", {4}),
      Tensor("optimizer.state.1.exp_avg", {3}),
      Tensor("optimizer.state.2.exp_avg", {4}),
  };
  EXPECT_EQ(TensorPilesOf(tensors)[3].weight, 1);
  EXPECT_EQ(TensorPilesOf(tensors)[4].weight, 2);
  // Of several groups nobody knows which one is missing.
  tensors[3].name = "optimizer.state.2.exp_avg";
  tensors[4].name = "optimizer.state.0.exp_avg";
  EXPECT_EQ(TensorPilesOf(tensors)[3].weight, -1);
  EXPECT_EQ(TensorPilesOf(tensors)[4].weight, -1);
}

}  // namespace
}  // namespace fourpiles
