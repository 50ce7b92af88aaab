#include "step/layer_table.h"

#include <gtest/gtest.h>

#include "step/play.h"
#include "step/test_networks.h"

namespace fourpiles {
namespace {

constexpr std::int64_t kTokens = 8192;

Tape PlayLlama31() {
  const std::shared_ptr<const Network> network = Llama31Layers();
  const ElementType bfloat16 = {"bfloat16", 16};
  return Play({.network = network,
               .schedule = TrainingSchedule(*network, {.every_layer = true}),
               .batch = {.micro_batch_size = 1, .sequence_length = kTokens},
               .numbers = {.weights = bfloat16, .compute = bfloat16}},
              FindProfile("pytorch").value())
      .value();
}

// The closed form of a Llama layer in pure bfloat16, measured (tests/truth): 24 N h + 8 N f + 8 N
// beside the terms of the scores, and with a kernel that never has the scores 4 N heads instead.
TEST(LayerTable, ComesToTheClosedFormOfALlamaLayer) {
  const std::optional<LayerTable> table = MiddleLayer(PlayLlama31());
  ASSERT_TRUE(table);
  EXPECT_EQ(table->name, "layers.1");
  EXPECT_EQ(table->bytes, Bytes(kTokens * (24 * 4096 + 8 * 14'336 + 8 + 4 * 32)));
}

TEST(LayerTable, ItsTensorsComeToItsBytes) {
  const std::optional<LayerTable> table = MiddleLayer(PlayLlama31());
  Bytes sum(0);
  for (const SavedTensor& tensor : table->saved) {
    std::int64_t elements = 1;
    for (const std::int64_t length : tensor.shape) {
      elements *= length;
    }
    EXPECT_EQ(tensor.bytes, Bytes(elements * (tensor.format == "bfloat16" ? 2 : 4)))
        << tensor.operator_name;
    sum += tensor.bytes;
  }
  EXPECT_EQ(sum, table->bytes);
}

// docs/ACTIVATIONS.md has the whole table; here the ends of it.
TEST(LayerTable, SaysWhoKeepsATensorAndWhy) {
  const std::optional<LayerTable> table = MiddleLayer(PlayLlama31());
  const SavedTensor& first = table->saved.front();
  EXPECT_EQ(first.operator_name, "input_layernorm");
  EXPECT_EQ(first.kernel, "cast");
  EXPECT_EQ(first.kept_by, "square");
  EXPECT_EQ(first.source, "derivatives.yaml: pow keeps self");
  EXPECT_EQ(first.shape, (std::vector<std::int64_t>{1, kTokens, 4096}));
  const SavedTensor& last = table->saved.back();
  EXPECT_EQ(last.operator_name, "mlp");
  EXPECT_EQ(last.kept_by, "linear");
}

TEST(LayerTable, SharesOfOperatorsComeToAllSavedActivations) {
  const Tape tape = PlayLlama31();
  const std::vector<OperatorShare> shares = SavedByOperator(tape);
  Bytes sum(0);
  for (std::size_t i = 0; i < shares.size(); ++i) {
    sum += shares[i].bytes;
    EXPECT_TRUE(i == 0 || shares[i - 1].bytes >= shares[i].bytes);
  }
  EXPECT_EQ(sum, SavedActivations(tape));
  // Three layers, silu(gate) and its product with up, two bytes each.
  EXPECT_EQ(shares.front().name, "layers.{}.mlp");
  EXPECT_EQ(shares.front().bytes, Bytes(3 * 2 * 2 * kTokens * 14'336));
}

TEST(LayerTable, ThereIsNoneWithoutLayers) {
  Tape tape;
  tape.network = std::make_shared<const Network>();
  EXPECT_FALSE(MiddleLayer(tape));
  EXPECT_TRUE(SavedByOperator(tape).empty());
}

}  // namespace
}  // namespace fourpiles
