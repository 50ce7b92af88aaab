#include "model/from_tensors.h"

#include <gtest/gtest.h>

#include "base/testing.h"
#include "model/catalogue.h"

namespace fourpiles {
namespace {

TEST(FromTensors, CountsWhatTheNetworkHas) {
  for (const char* name : {"llama-3.1-8b", "deepseek-v3", "gpt2", "bert-base-uncased"}) {
    const Result<Model> model = FindModel(name);
    ASSERT_TRUE(model) << name;
    std::vector<LogicalTensor> tensors;
    ForEachTensor(model->network, [&tensors](const NamedTensor& tensor) {
      tensors.push_back({.name = tensor.name, .shape = tensor.parameter->shape});
    });
    const Result<Network> network = NetworkFromTensors(tensors, name);
    ASSERT_TRUE(network) << ErrorLine(network);
    EXPECT_EQ(ParameterCount(*network), ParameterCount(model->network)) << name;
    EXPECT_EQ(TrainableTensorCount(*network), std::ssize(tensors)) << name;
    EXPECT_LE(network->blocks.size(), 5U) << name;
    EXPECT_FALSE(OperatorsAreKnown(*network));
    EXPECT_TRUE(network->caches.empty());
    EXPECT_FALSE(network->num_hidden_layers);
  }
}

TEST(FromTensors, LayersThatDifferStandApart) {
  const Result<Network> network = NetworkFromTensors({{.name = "h.0.w", .shape = {2, 3}},
                                                      {.name = "h.1.w", .shape = {2, 3}},
                                                      {.name = "h.2.w", .shape = {2, 4}},
                                                      {.name = "h.4.w", .shape = {2, 4}},
                                                      {.name = "scale", .shape = {}},
                                                      {.name = "seq.0", .shape = {5}}},
                                                     "a");
  ASSERT_TRUE(network) << ErrorLine(network);
  ASSERT_EQ(network->blocks.size(), 4U);
  EXPECT_EQ(network->blocks[0].parameters.size(), 2U);
  EXPECT_EQ(network->blocks[1].repeat, 2);
  EXPECT_EQ(network->blocks[3].first, 4);
  EXPECT_EQ(ParameterCount(*network), 6 + 6 + 8 + 8 + 1 + 5);
}

TEST(FromTensors, RefusesWhatItCannotCount) {
  EXPECT_EQ(ErrorLine(NetworkFromTensors({}, "a")),
            "a | no tensors whose size is known | expected those of a model | ");
  const std::int64_t large = std::int64_t{1} << 40;
  EXPECT_FALSE(NetworkFromTensors({{.name = "a", .shape = {large, large}}}, "a"));
  const Result<Network> packed =
      NetworkFromTensors({{.name = "a", .shape = {2}}, {.name = "b", .shape_known = false}}, "a");
  ASSERT_TRUE(packed);
  EXPECT_EQ(packed->left_out, std::vector<std::string>{"1 packed tensor of unknown size"});
}

}  // namespace
}  // namespace fourpiles
