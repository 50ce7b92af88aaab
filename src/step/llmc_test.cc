// The profile "llm.c" against what llm.c prints when it starts.

#include <gtest/gtest.h>

#include "step/state.h"
#include "step/tiny_plays.h"

namespace fourpiles {
namespace {

constexpr double kMebibyte = 1 << 20;

// GPT-2 as llm.c builds it; 50,257 words are padded to 50,304.
Network Gpt2(std::int64_t hidden_size, std::int64_t heads, std::int64_t layers) {
  Network network = TinyGpt({.hidden_size = hidden_size,
                             .heads = heads,
                             .key_value_heads = heads,
                             .ffn = 4 * hidden_size,
                             .layers = layers,
                             .vocabulary = 50'257,
                             .context = 1024});
  PadVocabulary(network, FindProfile("llm.c").value().vocabulary_multiple);
  return network;
}

double Mebibytes(const Resident& resident) {
  double sum = 0;
  for (const Storage& storage : resident.storages) {
    sum +=
        storage.place == Place::kDevice ? static_cast<double>(storage.bytes.expected.value()) : 0;
  }
  return sum / kMebibyte;
}

double ActivationMebibytes(const Tape& tape, Moment moment) {
  return static_cast<double>(PilesAt(tape, Place::kDevice, moment).at(Pile::kActivations).value()) /
         kMebibyte;
}

// The start-up log of llm.c of a public run (A800, micro-batch 56, sequence 1024, its default
// recompute): activations 18,564 MiB; with parameters and gradients, 237 each, and m, v and master
// copy, 474 each, 20,460 MiB, each cut to whole ones. By hand: 124,475,904 parameters × 2 + 2 + 12
// bytes; activations, a token, 12 layers × (2 × 12 × 768 + 4 × (4 + 12)) + 2 × (768 + 768 + 50,304
// + 4 × 768 + 5 × 768) + 12 = 339,468 bytes.
TEST(LlmC, AllocatesWhatItsLogSaysFor124M) {
  const Network network = Gpt2(768, 12, 12);
  EXPECT_EQ(ParameterCount(network), 124'475'904);
  const Recipe recipe = FindRecipe("mixed-bf16").value();
  const double state =
      Mebibytes(WeightStorages(network, recipe.weights).value()) +
      Mebibytes(GradientStorage(network, recipe).value()) +
      Mebibytes(OptimizerStorages(network, recipe, FindOptimizer("adamw").value()).value());
  const Tape tape =
      Played(TinyPart(network, {.micro_batch_size = 56, .sequence_length = 1024}), "llm.c");
  const double activations = ActivationMebibytes(tape, 0);
  EXPECT_NEAR(activations, 339'468 * 57'344.0 / kMebibyte, 0.01);
  EXPECT_NEAR(activations, 18'564, 1);
  EXPECT_NEAR(state + activations, 20'460, 6);
}

// karpathy/llm.c, discussion 677, the log of 1558M: micro-batch 16, recompute 0, activations 40,409
// MiB. A token: 48 × (2 × 16 × 1600 + 4 × (4 + 25)) + 2 × (1600 + 1600 + 50,304 + 5 × 1600) + 12 =
// 2,586,188 bytes.
TEST(LlmC, AllocatesWhatItsLogSaysFor1558M) {
  const Tape tape = Played(
      TinyPart(Gpt2(1600, 25, 48), {.micro_batch_size = 16, .sequence_length = 1024}), "llm.c-r0");
  EXPECT_NEAR(ActivationMebibytes(tape, 0), 40'409, 1);
}

constexpr Batch kBatch = {.micro_batch_size = 2, .sequence_length = 32};
constexpr TinySizes kSizes = {};  // h 64, a 4

// train_gpt2.cu, fill_in_activation_sizes: 16 channels of 2 bytes and 4 + a floats a token; level 1
// leaves out the 4 of GELU, level 2 the 2 of the norms.
TEST(LlmC, LevelsOfRecomputationLeaveOutGeluAndNorms) {
  const auto layer = [](const char* name) { return KeptByLayer(TinyGpt, kSizes, kBatch, name); };
  EXPECT_EQ(layer("llm.c-r0"), 64 * (2 * 16 * 64 + 4 * (4 + 4)));
  EXPECT_EQ(layer("llm.c"), 64 * (2 * 12 * 64 + 4 * (4 + 4)));
  EXPECT_EQ(layer("llm.c-r2"), 64 * (2 * 10 * 64 + 4 * (4 + 4)));
}

TEST(LlmC, HoldsTheSameFromTheFirstMomentToTheLast) {
  Part part = TinyPart(TinyGpt(kSizes), kBatch);
  part.schedule = TrainingSchedule(*part.network, {.micro_batches = 3, .every_layer = true});
  const Tape tape = Played(part, "llm.c");
  const auto first = PilesAt(tape, Place::kDevice, 0);
  for (Moment moment = 0; moment < std::ssize(tape.moments); ++moment) {
    EXPECT_EQ(PilesAt(tape, Place::kDevice, moment), first) << MomentName(tape, moment);
  }
}

TEST(LlmC, PadsTheVocabulary) {
  const Network network = Gpt2(768, 12, 12);
  EXPECT_EQ(network.vocab_size, 50'304);
  EXPECT_EQ(network.blocks[0].parameters[0].shape[0], 50'304);
  EXPECT_EQ(network.blocks[2].operators.back().widths.front(), 50'304);
}

}  // namespace
}  // namespace fourpiles
