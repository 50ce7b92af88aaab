// Products with frozen weights that are kept as codes: what they hold for a moment, and what
// bitsandbytes' keep, counted by hand.

#include <algorithm>
#include <utility>

#include <gtest/gtest.h>

#include "step/one_layer_networks.h"
#include "step/play.h"
#include "step/tiny_plays.h"

namespace fourpiles {
namespace {

// All frozen matrices of the numbered layers.
Part WithCodes(Part part) {
  for (const Block& block : part.network->blocks) {
    std::vector<bool>& coded = part.coded.emplace_back();
    for (const Parameter& parameter : block.parameters) {
      coded.push_back(IsNumbered(block) && !parameter.trainable && parameter.shape.size() == 2);
    }
  }
  return part;
}

// The weight of one linear layer, 24 inputs and 40 outputs, frozen.
Part OneFrozenLinear(bool needs_gradient) {
  Network network = one_layer::OneLinear(false, needs_gradient);
  network.blocks.front().parameters.front().trainable = false;
  return WithCodes(TinyPart(std::move(network), {.micro_batch_size = 2, .sequence_length = 8}));
}

std::int64_t Peak(const Part& part, const Profile& profile) {
  return PeakOf(Play(part, profile).value(), Place::kDevice).bytes.value();
}

constexpr std::int64_t kCells = 24 * 40;
constexpr std::int64_t kIn = 2 * 16 * 24;   // bytes of 16 tokens in bfloat16
constexpr std::int64_t kOut = 2 * 16 * 40;  // which live on as what the network puts out

// Codes of bitsandbytes become numbers of the format of the input (bitsandbytes,
// autograd/_functions.py, MatMul4Bit: dequantize_4bit(B).to(A.dtype)). The backward pass has them
// again, beside the output's gradient and the input's; nothing is kept.
TEST(CodedBase, NumbersAreThereWhileAProductRunsForwardAndBackward) {
  const Profile profile = FindProfile("pytorch").value();
  const Tape tape = Play(OneFrozenLinear(true), profile).value();
  EXPECT_EQ(SavedActivations(tape), Bytes(0));
  EXPECT_EQ(PeakOf(tape, Place::kDevice, ActionKind::kForward).bytes, Bytes(2 * kCells + kOut));
  EXPECT_EQ(PeakOf(tape, Place::kDevice, ActionKind::kBackward).bytes,
            Bytes(2 * kCells + 2 * kOut + kIn));
}

// Where nothing before it is trained there is no gradient to pass on.
TEST(CodedBase, NoBackwardPassHasNoNumbers) {
  const Tape tape = Play(OneFrozenLinear(false), FindProfile("pytorch").value()).value();
  EXPECT_EQ(PeakOf(tape, Place::kDevice).bytes, Bytes(2 * kCells + kOut));
}

// Lightning Fabric's layers are quantised in float16: the numbers are float16, then cast.
TEST(CodedBase, NumbersOfAnotherFormatAreThereTwice) {
  Profile profile = FindProfile("pytorch").value();
  profile.framework.codes_are_of_float16 = true;
  EXPECT_EQ(Peak(OneFrozenLinear(true), profile), 2 * 2 * kCells + 2 * kOut + kIn);
}

// What comes in may be the batch itself, which nobody has to hold.
TEST(CodedBase, AnInputThatIsTheBatchIsHeldByNobody) {
  Profile profile = FindProfile("pytorch").value();
  profile.framework.coded_product_keeps_input = true;
  const Tape tape = Play(OneFrozenLinear(true), profile).value();
  EXPECT_EQ(SavedActivations(tape), Bytes(0));
}

constexpr Batch kBatch = {.micro_batch_size = 2, .sequence_length = 32};
constexpr std::int64_t kTokens = 2 * 32;
constexpr std::int64_t kHidden = 64;
constexpr std::int64_t kFfn = 160;
constexpr TinySizes kSizes = {.ffn = kFfn, .adapter_rank = 8};

std::int64_t KeptWithCodes(std::string_view implementation, TinySizes sizes) {
  const auto kept = [&](std::int64_t layers) {
    sizes.layers = layers;
    return SavedActivations(Played(WithCodes(TinyPart(TinyLlama(sizes), kBatch)), implementation))
        .value();
  };
  return kept(4) - kept(3);
}

// A frozen product of PyTorch keeps its weight alone, codes or not.
TEST(CodedBase, OfPyTorchKeepsNoMoreThanAPlainBase) {
  EXPECT_EQ(KeptWithCodes("pytorch", kSizes), KeptByLayer(TinyLlama, kSizes, kBatch, "pytorch"));
}

// Under LitGPT every coded product holds its input, bytes a token: both normed inputs 2 × 2h, the
// copy of what attention puts out 2h, the product of SwiGLU 2F.
constexpr std::int64_t kInputs = 6 * kHidden + 2 * kFfn;
TEST(CodedBase, OfBitsandbytesHoldsTheInputsOfItsProducts) {
  EXPECT_EQ(KeptWithCodes("litgpt", kSizes),
            KeptByLayer(TinyLlama, kSizes, kBatch, "litgpt") + kTokens * kInputs);
}

// Bytes that the step before left behind.
std::int64_t HeldBefore(const Tape& tape) {
  std::int64_t sum = 0;
  for (const Storage& storage : tape.storages) {
    const bool left = storage.text < 0 && storage.born == 0 && storage.made > 0;
    sum += left ? ExpectedBytes(storage).value() : 0;
  }
  return sum;
}

// The graph that holds them is let go of with its loss, when the next micro-batch has one, and the
// logits when the next ones are there: both stand beside the first forward pass of a step, an input
// once however many products read it. Of two layers, the first product has an input that needs no
// gradient, so it has no place in the graph.
TEST(CodedBase, InputsAndLogitsAreHeldFromOneStepToTheNext) {
  Part part = WithCodes(TinyPart(TinyLlama(kSizes), kBatch));
  const Tape tape = Played(part, "litgpt");
  constexpr std::int64_t kLogits = 4 * 100;
  EXPECT_EQ(HeldBefore(tape), kTokens * (2 * kInputs - 2 * kHidden + kLogits));
  // Inputs until the forward pass has ended, logits until before that.
  for (const Storage& storage : tape.storages) {
    if (storage.text < 0 && storage.born == 0 && storage.made > 0) {
      EXPECT_LE(storage.dies, tape.forward_ends.front());
    }
  }
  part.holds_over_steps = false;
  EXPECT_EQ(HeldBefore(Played(part, "litgpt")), 0);
}

TEST(CodedBase, APlainBaseHoldsLogitsAlone) {
  const Part part = TinyPart(TinyLlama(kSizes), kBatch);
  EXPECT_EQ(HeldBefore(Played(part, "litgpt")), kTokens * 4 * 100);
  EXPECT_EQ(HeldBefore(Played(part, "pytorch")), 0);
}

// A layer that runs again gives its inputs back with its graph: the sum does not grow with layers
// beyond their own inputs, 2h a token, and nothing is held over.
TEST(CodedBase, LayersThatRunAgainHoldNothingOver) {
  Part part = WithCodes(TinyPart(TinyLlama(kSizes), kBatch));
  part.recompute = {.kind = RecomputeKind::kLayers};
  EXPECT_EQ(HeldBefore(Played(part, "litgpt")), kTokens * 4 * 100);
}

}  // namespace
}  // namespace fourpiles
