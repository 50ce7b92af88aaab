#include "model/network.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace fourpiles {
namespace {

Network TwoLayersWithExperts() {
  Network network;
  network.blocks = {{.name = "embed", .parameters = {{.name = "weight", .shape = {10, 4}}}},
                    {.name = "layers.{}",
                     .first = 1,
                     .repeat = 2,
                     .parameters = {{.name = "experts.{}.weight", .shape = {3, 4}, .copies = 2},
                                    {.name = "correction", .shape = {2}, .trainable = false}}}};
  return network;
}

TEST(Network, WritesOutTheNameOfEveryTensor) {
  std::vector<std::string> names;
  ForEachTensor(TwoLayersWithExperts(),
                [&names](const NamedTensor& tensor) { names.push_back(tensor.name); });
  EXPECT_EQ(names, (std::vector<std::string>{"embed.weight", "layers.1.experts.0.weight",
                                             "layers.1.experts.1.weight", "layers.1.correction",
                                             "layers.2.experts.0.weight",
                                             "layers.2.experts.1.weight", "layers.2.correction"}));
}

TEST(Network, CountsEveryLayerAndEveryExpert) {
  const Network network = TwoLayersWithExperts();
  EXPECT_EQ(ElementsOf(network.blocks[1].parameters[0]), 2 * 3 * 4);
  EXPECT_EQ(ElementsOf(network.blocks[1]), 2 * (2 * 3 * 4 + 2));
  EXPECT_EQ(ParameterCount(network), 40 + 52);
  EXPECT_EQ(TrainableParameterCount(network), 40 + 48);
}

TEST(Network, RefusesMoreThanTwoToThe53Elements) {
  Network network = TwoLayersWithExperts();
  network.blocks[1].parameters[0].shape = {std::int64_t{1} << 30, std::int64_t{1} << 30};
  const Result<void> result = CheckNetwork(network, "config.json");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::kInput);
  EXPECT_EQ(result.error().text.where, "config.json");
  EXPECT_EQ(result.error().text.found, "the tensors up to layers.2 have more than 2^53 elements");
  EXPECT_EQ(result.error().text.hint, "look for a number with too many digits");
}

TEST(Network, RefusesCachesOfMoreThanTwoToThe53Elements) {
  Network network;
  network.caches = {
      {.key_elements_per_token = std::int64_t{1} << 53, .value_elements_per_token = 1}};
  const Result<void> result = CheckNetwork(network, "config.json");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().text.found, "the caches of one token have more than 2^53 elements");
}

TEST(Network, MakesOneTensorOfABareCount) {
  const Result<Network> network =
      NetworkFromCount({.parameters = 1'500'000'000, .num_hidden_layers = 32});
  ASSERT_TRUE(network);
  EXPECT_EQ(ParameterCount(*network), 1'500'000'000);
  EXPECT_EQ(network->num_hidden_layers, 32);
  EXPECT_EQ(network->hidden_size, std::nullopt);
  EXPECT_TRUE(network->caches.empty());
}

TEST(Network, RefusesABareCountOfNothing) {
  const Result<Network> network = NetworkFromCount({.parameters = 0});
  ASSERT_FALSE(network);
  EXPECT_EQ(network.error().kind, ErrorKind::kUsage);
  EXPECT_EQ(network.error().text.found, "0 parameters");
  EXPECT_EQ(network.error().text.expected, "expected from 1 to 2^53");
}

}  // namespace
}  // namespace fourpiles
