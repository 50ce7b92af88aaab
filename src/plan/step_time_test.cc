// Expected values by hand, from the formulas of the papers that docs/PLAN.md names.

#include "plan/step_time.h"

#include <gtest/gtest.h>

#include "model/catalogue.h"

namespace fourpiles {
namespace {

constexpr Machine kH100 = {.peak_flops = 989e12,
                           .matrix_flops = 800e12,
                           .memory_bytes = 3.35e12,
                           .link_bytes = 450e9,
                           .network_bytes = 50e9,
                           .per_node = 8};

TEST(StepTime, GathersWithinANodeOverItsLinks) {
  // 7/8 of 10^9 bytes come from the others.
  EXPECT_NEAR(GatherSeconds(kH100, {.ranks = 8, .stride = 1}, 1e9), 1e9 * 7 / 8 / 450e9, 1e-12);
  EXPECT_EQ(GatherSeconds(kH100, {.ranks = 1, .stride = 8}, 1e9), 0);
}

TEST(StepTime, GathersBetweenNodesOverTheNetworksOfAllItsMembers) {
  // One member a node: 63 of 64 parts come over one network.
  EXPECT_NEAR(GatherSeconds(kH100, {.ranks = 64, .stride = 8}, 1e9), 1e9 * 63 / 64 / 50e9, 1e-12);
  // Two members a node, eight nodes: 7/8 over two networks take longer than half over the links.
  EXPECT_NEAR(GatherSeconds(kH100, {.ranks = 16, .stride = 4}, 1e9), 1e9 * 7 / 8 / 100e9, 1e-12);
}

TEST(StepTime, ExchangesWhatIsForOtherNodesOverTheNetwork) {
  // 16 ranks, 8 a node: 8/16 leave the node, 7/16 stay in it.
  EXPECT_NEAR(ExchangeSeconds(kH100, {.ranks = 16, .stride = 1}, 1e9), 1e9 / 2 / 50e9, 1e-12);
  EXPECT_NEAR(ExchangeSeconds(kH100, {.ranks = 8, .stride = 1}, 1e9), 1e9 * 7 / 8 / 450e9, 1e-12);
  EXPECT_EQ(ExchangeSeconds(kH100, {.ranks = 1, .stride = 1}, 1e9), 0);
}

// A stage of one layer that multiplies each of 1,000 tokens for 800 × 10^9 operations: 1 s forward,
// 3 s with the backward pass.
StageWork OneLayer() {
  return {.layers = {{.work = {.matrix_flops = 800e9}, .layers = 1}}};
}
StepShape Shape(const Layout& layout) {
  return {.layout = layout, .micro_batch_size = 1, .sequence_length = 1000, .micro_batches = 8};
}

TEST(StepTime, ABackwardPassIsTwoForwardPasses) {
  const StepTime time = StepTimeOf(kH100, Shape({}), {OneLayer()});
  EXPECT_NEAR(time.products, 8 * 3, 1e-9);
  EXPECT_NEAR(Total(time), 8 * 3, 1e-9);
}

TEST(StepTime, RecomputationIsAnotherForwardPass) {
  StepShape shape = Shape({});
  shape.recompute.kind = RecomputeKind::kLayers;
  EXPECT_NEAR(StepTimeOf(kH100, shape, {OneLayer()}).products, 8 * 4, 1e-9);
  shape.recompute.every = 2;
  EXPECT_NEAR(StepTimeOf(kH100, shape, {OneLayer()}).products, 8 * 3.5, 1e-9);
  // Of attention alone, whose products with weights do not run again.
  shape.recompute = {.kind = RecomputeKind::kAttention};
  EXPECT_NEAR(StepTimeOf(kH100, shape, {OneLayer()}).products, 8 * 3, 1e-9);
}

// Narayanan et al. 2021, section 2.2: (p − 1) / v micro-batches.
TEST(StepTime, TheBubbleOfAPipelineFallsWithItsChunks) {
  const Layout four = {.devices = 4, .pipeline = 4};
  EXPECT_NEAR(StepTimeOf(kH100, Shape(four), {OneLayer()}).bubble, 3 * 3, 1e-9);
  Layout interleaved = four;
  interleaved.chunks = 2;
  EXPECT_NEAR(StepTimeOf(kH100, Shape(interleaved), {OneLayer()}).bubble, 4.5, 1e-9);
  Layout zero_bubble = four;
  zero_bubble.schedule = PipelineSchedule::kZeroBubble;
  EXPECT_NEAR(StepTimeOf(kH100, Shape(zero_bubble), {OneLayer()}).bubble, 3, 1e-9);
}

TEST(StepTime, TheSlowestStageCounts) {
  StageWork two = OneLayer();
  two.layers.front().layers = 2;
  const Layout layout = {.devices = 2, .pipeline = 2};
  EXPECT_NEAR(StepTimeOf(kH100, Shape(layout), {OneLayer(), two}).products, 8 * 6, 1e-9);
}

// 10^9 parameters over 8 devices of a node: gradients of 2 × 10^9 bytes, added up over all.
TEST(StepTime, GradientsAreHiddenBehindTheLastBackwardPass) {
  StageWork stage = {.dense_elements = 1e9};
  const Layout layout = {.devices = 8};
  const double all_reduce = 2 * 2e9 * 7 / 8 / 450e9;
  EXPECT_NEAR(StepTimeOf(kH100, Shape(layout), {stage}).data, all_reduce, 1e-9);
  stage.layers = OneLayer().layers;
  EXPECT_EQ(StepTimeOf(kH100, Shape(layout), {stage}).data, 0);
}

TEST(StepTime, FullShardingGathersForEveryPass) {
  StageWork stage = {.dense_elements = 1e9};
  Layout layout = {.devices = 8, .fsdp = true, .fsdp_ranks = 8};
  const double gather = 2e9 * 7 / 8 / 450e9;
  // Weights forward and backward, gradients backward; 8 micro-batches.
  EXPECT_NEAR(StepTimeOf(kH100, Shape(layout), {stage}).data, 8 * 3 * gather, 1e-9);
  layout.reshards = false;
  EXPECT_NEAR(StepTimeOf(kH100, Shape(layout), {stage}).data, 8 * 2 * gather, 1e-9);
}

TEST(StepTime, TheOptimizerReadsItsShareOfTheStates) {
  const StageWork stage = {.dense_elements = 1e9};
  StepShape shape = Shape({.devices = 8, .zero = 1});
  shape.step_bytes = 28;
  EXPECT_NEAR(StepTimeOf(kH100, shape, {stage}).optimizer, 28e9 / 8 / 3.35e12, 1e-12);
}

// 126 layers of 2 × 16384² + 2 × 16384 × 1024 + 3 × 16384 × 53248 weights, an output layer of
// 128256 × 16384; 6 operations for each. Attention: 126 × 2 × (16384 + 16384) × 8192 / 2, three
// times.
TEST(StepTime, CountsTheOperationsOfLlama405B) {
  const Network network = FindModel("llama-3.1-405b")->network;
  const double weights = 126.0 * 3'187'671'040 + 2'101'346'304;
  const double attention = 126.0 * 2 * (16384 + 16384) * 4096;
  const double expected = (6 * weights + 3 * attention) * 8192;
  EXPECT_NEAR(ModelFlops(network, 1, 8192) / expected, 1, 1e-9);
}

// Of eight experts a token chooses two.
TEST(StepTime, CountsTheExpertsThatAreChosen) {
  const Network network = FindModel("mixtral-8x7b")->network;
  const double layer = 2.0 * 4096 * 4096 + 2.0 * 4096 * 1024 + 8.0 * 4096 + 2 * 3.0 * 4096 * 14336;
  const double attention = 32.0 * 2 * (4096 + 4096) * 1024;
  const double expected = (6 * (32 * layer + 32000.0 * 4096) + 3 * attention) * 2048;
  EXPECT_NEAR(ModelFlops(network, 1, 2048) / expected, 1, 1e-9);
}

// Korthikanti et al. 2022, section 4.2.2: two gatherings and two scatterings of the hidden state in
// the forward pass of a layer.
TEST(StepTime, TensorParallelRanksSendFourTimesTheHiddenState) {
  const Network network = FindModel("llama-3.1-405b")->network;
  const Network cut = CutByTensors(network, {.tensor = 8, .sequence_parallel = true});
  EXPECT_NEAR(WorkOf(cut, cut.blocks[1], 8).tensor_elements, 4.0 * 16384, 1e-6);
  EXPECT_NEAR(WorkOf(cut, cut.blocks[1], 8).matrix_flops, 2.0 * 3'187'671'040 / 8, 1);
}

TEST(StepTime, ADeviceOfUnknownSpeedStandsInAnother) {
  EXPECT_TRUE(MachineOf(FindDevice("h100-sxm-80gb").value(), *FindFormat("bfloat16"), {}).is_known);
  const MachineReading size = MachineOf(DeviceOfSize("80GB").value(), *FindFormat("bfloat16"), {});
  EXPECT_FALSE(size.is_known);
}

TEST(StepTime, GivenRatesTakeThePlaceOfTheDevices) {
  const MachineReading reading = MachineOf(FindDevice("h100").value(), *FindFormat("bfloat16"),
                                           {.link = Bytes(1000), .network = Bytes(100)});
  EXPECT_EQ(reading.machine.link_bytes, 1000);
  EXPECT_EQ(reading.machine.network_bytes, 100);
}

}  // namespace
}  // namespace fourpiles
