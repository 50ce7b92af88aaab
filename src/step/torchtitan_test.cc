// torchtitan: layers that run again but for what is dear to compute, its loss, FSDP2; against
// counts by hand.

#include <algorithm>
#include <string_view>

#include <gtest/gtest.h>

#include "step/tiny_plays.h"

namespace fourpiles {
namespace {

constexpr Batch kBatch = {.micro_batch_size = 2, .sequence_length = 32};
constexpr std::int64_t kTokens = 2 * 32;
constexpr TinySizes kSizes = {.heads = 8, .key_value_heads = 2, .ffn = 160, .fused_qkv = false};
constexpr Variant kSelective = {.recompute = {.kind = RecomputeKind::kOperators}};

// A layer of Llama has the matrix products q, k, v, o, gate, up, down, in that order; every second
// one is computed again (torchtitan, distributed/activation_checkpoint.py, mm_count % 2). Kept,
// bytes a token: the layer's input 2h, q 2h, v 2k, attention's output 2h and log-sum-exp 4a, gate
// 2F, down 2h.
TEST(Selective, KeepsEverySecondProductAndAttention) {
  constexpr std::int64_t kKeyWidth = 2 * 8;
  for (const char* implementation : {"torchtitan", "torchtitan-2024", "torchtitan-compile"}) {
    EXPECT_EQ(KeptByLayer(TinyLlama, kSizes, kBatch, implementation, kSelective),
              kTokens * (4 * 2 * 64 + 2 * kKeyWidth + 4 * 8 + 2 * 160))
        << implementation;
  }
}

// GPT-2's linear layers add a bias: those are aten::addmm, which is not in the list. Of a layer its
// input and what attention puts out are kept.
TEST(Selective, ProductsWithABiasAreComputedAgain) {
  EXPECT_EQ(KeptByLayer(TinyGpt, {}, kBatch, "torchtitan", kSelective),
            kTokens * (2 * 2 * 64 + 4 * 4));
}

// Outputs of products that are made as layers run again: k, o and up, of each layer.
TEST(Selective, WhatIsKeptIsNotMadeAgain) {
  Part part = TinyPart(TinyLlama(kSizes), kBatch);
  part.recompute = kSelective.recompute;
  const Tape tape = Played(part, "torchtitan");
  std::int64_t products = 0;
  std::int64_t attentions = 0;
  for (const Storage& storage : tape.storages) {
    const Kernel& kernel = tape.moments[static_cast<std::size_t>(storage.made)];
    const Action& action = tape.actions[static_cast<std::size_t>(kernel.action)];
    if (storage.text < 0 && action.kind == ActionKind::kRecompute) {
      const std::string_view name = kernel.kind->name;
      products += name == "linear" && std::string_view(storage.slot) == "output" ? 1 : 0;
      attentions += name == "flash attention" ? 1 : 0;
    }
  }
  EXPECT_EQ(products, kSizes.layers * 3);
  EXPECT_EQ(attentions, 0);
}

// Full recomputation keeps less, none more, at the end of the forward pass.
TEST(Selective, StandsBetweenFullAndNone) {
  const auto kept = [](RecomputeKind kind) {
    return KeptByLayer(TinyLlama, kSizes, kBatch, "torchtitan", {.recompute = {.kind = kind}});
  };
  EXPECT_LT(kept(RecomputeKind::kLayers), kept(RecomputeKind::kOperators));
  EXPECT_LT(kept(RecomputeKind::kOperators), kept(RecomputeKind::kNone));
}

// --- The loss of torchtitan ---

// Logits in bfloat16 are let go of before the backward pass, and so is their float32 copy; what
// stays is the result of log_softmax, 4 bytes a token and word (derivatives.yaml).
TEST(Torchtitan, TheLossKeepsLogProbabilities) {
  for (const char* implementation : {"torchtitan", "torchtitan-2024", "torchtitan-2024-compile"}) {
    const auto kept = [&](std::int64_t vocabulary) {
      TinySizes sizes = kSizes;
      sizes.vocabulary = vocabulary;
      return SavedActivations(Played(TinyPart(TinyLlama(sizes), kBatch), implementation)).value();
    };
    EXPECT_EQ(kept(101) - kept(100), 4 * kTokens) << implementation;
  }
}

// Bytes a logit at the peak, which is in the backward pass: log-probabilities, the gradient that
// nll_loss makes of them and that of log_softmax, 3 × 4. Cut by words: log-probabilities,
// grad_input, exp(x) and their sum, 4 × 4 (PyTorch, distributed/tensor/parallel/loss.py,
// _nll_loss_and_log_softmax_backward).
TEST(Torchtitan, TheBackwardPassOfTheLossIsItsPeak) {
  const auto peak = [](std::int64_t words, std::int64_t ranks) {
    Network network = LossOfLogits({2, 32, words});
    network.blocks.front().operators.back().ranks = ranks;
    const Tape tape = Played(TinyPart(std::move(network), kBatch), "torchtitan");
    return PeakOf(tape, Place::kDevice).bytes.value();
  };
  EXPECT_EQ(peak(101, 1) - peak(100, 1), 12 * kTokens);
  EXPECT_EQ(peak(101, 2) - peak(100, 2), 16 * kTokens);
}

// --- FSDP2 ---

constexpr std::int64_t kRanks = 4;

// Over four ranks: bfloat16 as it is computed with, float32 as it is reduced.
Part ShardedPart(std::int64_t layers) {
  TinySizes sizes = kSizes;
  sizes.layers = layers;
  Part part = TinyPart(TinyLlama(sizes), kBatch);
  part.schedule = TrainingSchedule(
      *part.network,
      {.every_layer = true,
       .gather = {.gathers = true, .reduces = true, .root_apart = false, .copies_out = true}});
  part.gradients = GradientUse::kCollected;
  part.gathered.ranks = kRanks;
  part.gathered.own_streams = true;
  for (const Block& block : part.network->blocks) {
    std::int64_t elements = 0;
    for (const Parameter& parameter : block.parameters) {
      elements += ElementsOf(parameter);
    }
    part.gathered.weights.push_back(Bytes(2 * elements));
    part.gathered.sent.push_back(Bytes(4 * elements));
    part.gathered.gradients.push_back(Bytes(4 * elements / kRanks));
  }
  return part;
}

std::int64_t BytesOfSlot(const Tape& tape, std::string_view slot, Stream stream) {
  std::int64_t sum = 0;
  for (const Storage& storage : tape.storages) {
    const bool counts = storage.text < 0 && storage.slot == slot && storage.stream == stream;
    sum += counts ? ExpectedBytes(storage).value() : 0;
  }
  return sum;
}

// Parameters of a layer: q and o 2 × h × h, k and v 2 × k × h, three of F × h, two norms of h.
// Buffers come in one stream, shares of gradients in another, what is copied out in none of both.
// A layer is gathered twice, but the last, which stays.
TEST(Fsdp2, GathersAndReducesInStreamsOfTheirOwn) {
  constexpr std::int64_t kLayer = 2 * 64 * 64 + 2 * 16 * 64 + 3 * 160 * 64 + 2 * 64;
  constexpr std::int64_t kRoot = 2 * 100 * 64 + 64;  // embedding, last norm and output layer
  const Tape tape = Played(ShardedPart(3), "torchtitan-2024");
  constexpr std::int64_t kGathered = 2 * (5 * kLayer + kRoot);
  EXPECT_EQ(BytesOfSlot(tape, "gathered parameters", Stream::kCompute), kGathered);
  EXPECT_EQ(BytesOfSlot(tape, "shares of all ranks", Stream::kGather), kGathered);
  EXPECT_EQ(BytesOfSlot(tape, "own share", Stream::kGather), kGathered / kRanks);
  EXPECT_EQ(BytesOfSlot(tape, "share of gradients", Stream::kReduce),
            4 * (3 * kLayer + kRoot) / kRanks);
  EXPECT_EQ(BytesOfSlot(tape, "gradients sent", Stream::kCompute), 4 * (3 * kLayer + kRoot));
}

// Of the layers between, one is there at a time.
TEST(Fsdp2, ALayerMoreIsNotGatheredBesideTheOthers) {
  const auto most = [](std::int64_t layers) {
    const Tape tape = Played(ShardedPart(layers), "torchtitan-2024");
    std::int64_t largest = 0;
    for (Moment moment = 0; moment < std::ssize(tape.moments); ++moment) {
      std::int64_t sum = 0;
      for (const Storage& storage : tape.storages) {
        const bool is_gathered = std::string_view(storage.slot) == "gathered parameters" ||
                                 std::string_view(storage.slot) == "shares of all ranks";
        sum += is_gathered && IsAlive(storage, moment) ? ExpectedBytes(storage).value() : 0;
      }
      largest = std::max(largest, sum);
    }
    return largest;
  };
  EXPECT_EQ(most(4), most(6));
}

}  // namespace
}  // namespace fourpiles
