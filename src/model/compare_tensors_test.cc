#include "model/compare_tensors.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "model/catalogue.h"
#include "model/tensor_groups.h"
#include "model/test_configs.h"

namespace fourpiles {
namespace {

using Lines = std::vector<std::string>;

std::vector<LogicalTensor> TensorsOf(const Network& network) {
  std::vector<LogicalTensor> tensors;
  ForEachTensor(network, [&tensors](const NamedTensor& tensor) {
    tensors.push_back({.name = tensor.name, .shape = tensor.parameter->shape});
  });
  return tensors;
}

Network NetworkOf(const std::string& text) {
  return FromText(text).value();
}

void Remove(std::vector<LogicalTensor>& tensors, std::string_view part) {
  std::erase_if(tensors, [part](const LogicalTensor& tensor) {
    return tensor.name.find(part) != std::string::npos;
  });
}

LogicalTensor& Find(std::vector<LogicalTensor>& tensors, std::string_view name) {
  return *std::ranges::find(tensors, name, &LogicalTensor::name);
}

void Replace(std::vector<LogicalTensor>& tensors, std::string_view from, std::string_view to) {
  for (LogicalTensor& tensor : tensors) {
    if (tensor.name.starts_with(from)) {
      tensor.name = std::string(to) + tensor.name.substr(from.size());
    }
  }
}

TEST(CompareTensors, FindsNothingWhereAllIsThere) {
  for (const ModelRecord& record : ModelRecords()) {
    const Result<Model> model = FindModel(record.names.id);
    if (model) {  // some architectures cannot be built
      EXPECT_EQ(DifferencesFrom(model->network, TensorsOf(model->network)), Lines{})
          << record.names.id;
    }
  }
}

TEST(CompareTensors, TellsMissingTensorsLayersTogether) {
  const Network network = NetworkOf(Llama("num_hidden_layers", "5"));
  std::vector<LogicalTensor> tensors = TensorsOf(network);
  Remove(tensors, "layers.0.mlp.up");
  Remove(tensors, "layers.1.mlp.up");
  Remove(tensors, "layers.2.mlp.up");
  EXPECT_EQ(DifferencesFrom(network, tensors),
            Lines{"3 tensors are missing: model.layers.{0..2}.mlp.up_proj.weight"});
  Remove(tensors, "model.norm");
  Remove(tensors, "layers.4.mlp.up");
  EXPECT_EQ(DifferencesFrom(network, tensors),
            Lines{"5 tensors are missing: model.layers.{0..2,4}.mlp.up_proj.weight, "
                  "model.norm.weight"});
  Remove(tensors, "layers.3");
  EXPECT_EQ(DifferencesFrom(network, tensors),
            Lines{"14 tensors are missing: model.layers.{0..4}.mlp.up_proj.weight, "
                  "model.layers.3.self_attn.q_proj.weight, "
                  "model.layers.3.self_attn.k_proj.weight and 7 other names"});
}

TEST(CompareTensors, TellsWhatIsNotOfTheNetwork) {
  const Network network = NetworkOf(Llama());
  std::vector<LogicalTensor> tensors = TensorsOf(network);
  tensors.push_back({.name = "model.layers.2.mlp.up_proj.weight", .shape = {128, 64}});
  tensors.push_back({.name = "model.layers.3.mlp.up_proj.weight", .shape = {128, 64}});
  tensors.push_back({.name = "model.x\n.weight", .shape = {1}});
  tensors.push_back({.name = "model.norm.weight", .shape = {64}});  // a second time
  EXPECT_EQ(DifferencesFrom(network, tensors),
            Lines{"4 tensors are not part of the network: model.layers.{2..3}.mlp.up_proj.weight, "
                  "model.x\\n.weight, model.norm.weight"});
}

TEST(CompareTensors, TellsOtherShapes) {
  const Network network = NetworkOf(Llama());
  std::vector<LogicalTensor> tensors = TensorsOf(network);
  Find(tensors, "model.layers.0.mlp.up_proj.weight").shape = {64, 128};
  Find(tensors, "model.layers.1.mlp.up_proj.weight").shape = {64, 128};
  EXPECT_EQ(
      DifferencesFrom(network, tensors),
      Lines{"model.layers.{0..1}.mlp.up_proj.weight has shape [64, 128], expected [128, 64]"});
  // A packed weight may not tell its shape; in a GGUF a matrix may lie on its side.
  EXPECT_EQ(DifferencesFrom(network, tensors, ShapeRule::kElements), Lines{});
  Find(tensors, "model.layers.0.mlp.up_proj.weight").shape = {32, 256};
  EXPECT_EQ(DifferencesFrom(network, tensors, ShapeRule::kElements),
            Lines{"model.layers.0.mlp.up_proj.weight has shape [32, 256], expected [128, 64]"});
  Find(tensors, "model.layers.0.mlp.up_proj.weight").packed = true;
  Find(tensors, "model.layers.0.mlp.up_proj.weight").shape = {64, 128};
  Find(tensors, "model.layers.1.mlp.up_proj.weight").shape = {128, 64};
  EXPECT_EQ(DifferencesFrom(network, tensors), Lines{});
  Find(tensors, "model.layers.0.mlp.up_proj.weight").shape_known = false;
  Find(tensors, "model.layers.0.mlp.up_proj.weight").shape = {};
  Find(tensors, "model.layers.1.mlp.up_proj.weight").shape = {128, 64};
  EXPECT_EQ(DifferencesFrom(network, tensors), Lines{});
}

TEST(CompareTensors, StaysShortHoweverMuchIsWrong) {
  const Network network = NetworkOf(Llama());
  std::vector<LogicalTensor> tensors = TensorsOf(network);
  for (LogicalTensor& tensor : tensors) {
    tensor.shape.push_back(static_cast<std::int64_t>(tensor.name.size()));
  }
  Remove(tensors, "up_proj");
  tensors.push_back({.name = std::string(10'000, 'x')});
  const Lines lines = DifferencesFrom(network, tensors);
  EXPECT_EQ(lines.size(), 6U);
  for (const std::string& line : lines) {
    EXPECT_LT(line.size(), 500U) << line;
  }
}

TEST(CompareTensors, CountsExpertsOneByOne) {
  const Result<Model> model = FindModel("mixtral-8x7b");
  ASSERT_TRUE(model);
  std::vector<LogicalTensor> tensors = TensorsOf(model->network);
  Remove(tensors, "layers.3.block_sparse_moe.experts.7.w1");
  Remove(tensors, "layers.4.block_sparse_moe.experts.");
  tensors.push_back({.name = "model.layers.0.block_sparse_moe.experts.8.w1.weight"});
  EXPECT_EQ(DifferencesFrom(model->network, tensors),
            (Lines{"25 tensors are missing: "
                   "model.layers.{3..4}.block_sparse_moe.experts.{0..7}.w1.weight, "
                   "model.layers.4.block_sparse_moe.experts.{0..7}.w3.weight, "
                   "model.layers.4.block_sparse_moe.experts.{0..7}.w2.weight",
                   "1 tensor is not part of the network: "
                   "model.layers.0.block_sparse_moe.experts.8.w1.weight"}));
}

TEST(CompareTensors, TakesExpertsThatAreStacked) {
  // transformers 5 writes "mlp.experts.gate_up_proj" of all experts.
  const Result<Model> model = FindModel("qwen3-30b-a3b");
  ASSERT_TRUE(model);
  std::vector<LogicalTensor> tensors = TensorsOf(model->network);
  Remove(tensors, ".experts.");
  for (int layer = 0; layer < 48; ++layer) {
    const std::string experts = "model.layers." + std::to_string(layer) + ".mlp.experts.";
    tensors.push_back({.name = experts + "gate_up_proj", .shape = {128, 1536, 2048}});
    tensors.push_back({.name = experts + "down_proj", .shape = {128, 2048, 768}});
  }
  EXPECT_EQ(DifferencesFrom(model->network, tensors), Lines{});
  tensors.back().shape = {127, 2048, 768};
  EXPECT_EQ(DifferencesFrom(model->network, tensors),
            Lines{"model.layers.47.mlp.experts.down_proj has 199753728 elements, expected "
                  "201326592"});
}

TEST(CompareTensors, TakesAnotherPrefix) {
  const Network network = NetworkOf(Llama());
  for (const auto& [from, to] : {std::pair("model.", ""), std::pair("", "language_model."),
                                 std::pair("model.", "model.language_model.")}) {
    std::vector<LogicalTensor> tensors = TensorsOf(network);
    Replace(tensors, from, to);
    EXPECT_EQ(DifferencesFrom(network, tensors), Lines{}) << to;
  }
  const Result<Model> gpt2 = FindModel("gpt2");
  ASSERT_TRUE(gpt2);
  std::vector<LogicalTensor> tensors = TensorsOf(gpt2->network);
  Replace(tensors, "transformer.", "");  // openai-community/gpt2 has none
  tensors.push_back({.name = "h.0.attn.bias", .shape = {1, 1, 1024, 1024}});
  tensors.push_back({.name = "lm_head.weight", .shape = {50257, 768}});
  EXPECT_EQ(DifferencesFrom(gpt2->network, tensors), Lines{});
}

TEST(CompareTensors, LeavesOutWhatTheNetworkLeavesOut) {
  const Result<Model> model = FindModel("qwen3.5-35b-a3b");
  ASSERT_TRUE(model);
  std::vector<LogicalTensor> tensors = TensorsOf(model->network);
  tensors.push_back({.name = "model.visual.blocks.0.attn.qkv.weight", .shape = {3, 1}});
  tensors.push_back({.name = "mtp.layers.0.mlp.up_proj.weight", .shape = {3, 1}});
  EXPECT_EQ(DifferencesFrom(model->network, tensors), Lines{});

  const Result<Model> deepseek = FindModel("deepseek-v3");
  ASSERT_TRUE(deepseek);
  tensors = TensorsOf(deepseek->network);
  tensors.push_back({.name = "model.layers.61.eh_proj.weight", .shape = {7168, 14336}});
  EXPECT_EQ(DifferencesFrom(deepseek->network, tensors), Lines{});
  const Network llama = NetworkOf(Llama());
  tensors = TensorsOf(llama);
  tensors.push_back({.name = "model.layers.2.eh_proj.weight", .shape = {1}});
  EXPECT_EQ(DifferencesFrom(llama, tensors).size(), 1U);
}

TEST(TensorGroups, TellsNumbersTogether) {
  TensorGroups groups;
  for (const int number : {4, 0, 2, 1, 4}) {
    groups.Add("a." + std::to_string(number) + ".b");
  }
  groups.Add("c.{}", {{{3, 5}, {0, 2}}}, 6);
  EXPECT_EQ(groups.Listed(), "a.{0..2,4}.b, c.{0..5}");
  EXPECT_EQ(groups.Count(), 11);
}

}  // namespace
}  // namespace fourpiles
