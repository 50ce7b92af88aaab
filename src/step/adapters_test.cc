// What adapters keep for the backward pass, against PyTorch 1.13.1 (Debian's python3-torch, on a
// processor): for each kind a module was written with the operations of peft's forward, and the
// storages that its graph still held after it, without parameters, buffers and what came in, were
// added up by torch.autograd.graph.saved_tensors_hooks: tests/truth/measure_adapters.py. Sizes: 2
// samples of 8 tokens, 24 inputs, 40 outputs, rank 4, so 16 tokens N; adapters in float32.
// Formulas: rules_adapter.cc.

#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "model/adapter.h"
#include "step/one_layer_networks.h"
#include "step/play.h"
#include "step/tiny_plays.h"

namespace fourpiles {
namespace {

constexpr std::int64_t kSamples = 2;
constexpr std::int64_t kTokens = one_layer::kTokens;
constexpr std::int64_t kIn = one_layer::kIn;
constexpr std::int64_t kOut = one_layer::kOut;

Tape PlayedOnProcessor(Network network, bool bfloat16, const Batch& batch = {kSamples, kTokens},
                       AttentionKind attention = AttentionKind::kEager) {
  Part part = TinyPart(std::move(network), batch);
  if (!bfloat16) {
    part.numbers = {};
  }
  return Played(part, "pytorch-1.13-cpu", {.attention = attention});
}

std::int64_t Kept(const Tape& tape) {
  return SavedActivations(tape).value();
}

struct Case {
  Adapter adapter;
  bool bias;
  std::int64_t float32;           // what the layer and its adapter keep
  std::int64_t float32_at_start;  // where nothing before it needs a gradient
  std::int64_t bfloat16;
  std::int64_t bfloat16_at_start;
};

const Case kCases[] = {
    // N r × 4; in bfloat16 the input's float32 copy as well, N in × 4.
    {{.rank = 4}, false, 256, 256, 1792, 1792},
    {{.rank = 4}, true, 256, 256, 1792, 1792},
    // The dropped input and, where it needs a gradient, the mask, which the processor keeps in
    // float32.
    {{.rank = 4, .dropout = 0.1}, false, 3328, 1792, 3328, 1792},
    // A x, W x and B A x; the length of the rows, m, and m - 1 where the input needs a gradient.
    {{.kind = AdapterKind::kDora, .rank = 4}, false, 5856, 5696, 6112, 5952},
    {{.kind = AdapterKind::kDora, .rank = 4}, true, 5856, 5696, 6112, 5952},
    // W x anew, of the dropped input; in bfloat16 of a float32 copy of W, 24 × 40 × 4, which is
    // kept.
    {{.kind = AdapterKind::kDora, .rank = 4, .dropout = 0.1}, false, 8928, 7232, 12'768, 7232},
    {{.kind = AdapterKind::kDora, .rank = 4, .dropout = 0.1}, true, 8928, 7232, 12'768, 7232},
    // A x and B d A x.
    {{.kind = AdapterKind::kVera, .rank = 4}, false, 2816, 2816, 2816, 2816},
    {{.kind = AdapterKind::kVera, .rank = 4, .dropout = 0.1}, true, 4352, 2816, 4352, 2816},
    // What is scaled; the vector times 1 where that needs a gradient. An input is there already,
    // but in
    // bfloat16 it is cast to float32 first.
    {{.kind = AdapterKind::kIa3, .targets = {"q_proj"}}, false, 2720, 2560, 1440, 1280},
    {{.kind = AdapterKind::kIa3, .targets = {"q_proj"}, .feedforward = {"q_proj"}},
     false,
     96,
     0,
     1632,
     1536},
};

TEST(Adapters, KeepWhatPyTorchWasMeasuredToKeep) {
  for (const Case& c : kCases) {
    for (const bool needs_gradient : {true, false}) {
      const Network network =
          WithAdapter(one_layer::OneLinear(c.bias, needs_gradient), c.adapter, "").value();
      const std::string name =
          AdapterRecords()[static_cast<std::size_t>(c.adapter.kind)].word.data();
      EXPECT_EQ(Kept(PlayedOnProcessor(network, false)),
                needs_gradient ? c.float32 : c.float32_at_start)
          << name << c.adapter.dropout << needs_gradient;
      EXPECT_EQ(Kept(PlayedOnProcessor(network, true)),
                needs_gradient ? c.bfloat16 : c.bfloat16_at_start)
          << name << c.adapter.dropout << needs_gradient;
    }
  }
}

// The weight with B A added is made for the lengths of its rows: at that moment there are, of one
// sample, W x (8 × 40), an identity matrix (24 × 24), A for it (24 × 4), B A, its multiple and the
// sum with W (40 × 24 each); in bfloat16 copies of x and W in float32, and W x has 2 bytes.
// Measured by a shim under PyTorch's allocator (live bytes, 1.13.1): the peak of forward and
// backward.
TEST(Adapters, DoraMakesAWholeWeightForAMoment) {
  struct Peaks {
    double dropout;
    std::int64_t float32;
    std::int64_t bfloat16;
  };
  for (const Peaks& peaks : {Peaks{0, 15'488, 19'456}, Peaks{0.1, 17'024, 20'224}}) {
    const Adapter dora = {.kind = AdapterKind::kDora, .rank = 4, .dropout = peaks.dropout};
    const Network network = WithAdapter(one_layer::OneLinear(false, true), dora, "").value();
    const auto peak = [&](bool bfloat16) {
      return PeakOf(PlayedOnProcessor(network, bfloat16, {1, kTokens}), Place::kDevice).bytes;
    };
    EXPECT_EQ(peak(false), Bytes(peaks.float32));
    EXPECT_EQ(peak(true), Bytes(peaks.bfloat16));
  }
}

// Beside the log-probabilities, 16 × 40 × 4, and the total weight of the loss, 4, the same as in a
// layer: in float32 256, in bfloat16 1792.
TEST(Adapters, OfTheOutputLayerKeepWhatThoseOfALayerKeep) {
  for (const bool needs_gradient : {true, false}) {
    const Adapter lora = {.rank = 4, .targets = {"lm_head"}};
    const Network network =
        WithAdapter(one_layer::OneOutputLayer(needs_gradient), lora, "").value();
    constexpr std::int64_t kLoss = kSamples * kTokens * kOut * 4 + 4;
    EXPECT_EQ(Kept(PlayedOnProcessor(network, false)), kLoss + 256);
    EXPECT_EQ(Kept(PlayedOnProcessor(network, true)), kLoss + 1792);
  }
}

// The kernel reads the weight itself: with an adapter the layer is run, and its logits are there.
TEST(Adapters, OfTheOutputLayerMakeLogitsOfAFusedLoss) {
  const Adapter lora = {.rank = 4, .targets = {"lm_head"}};
  const Network network = WithAdapter(one_layer::OneOutputLayer(true), lora, "").value();
  const Batch batch = {kSamples, kTokens};
  EXPECT_EQ(SavedActivations(Played(TinyPart(network, batch), "liger")),
            SavedActivations(Played(TinyPart(network, batch), "pytorch")));
}

// A row of A for each token, 2 × 8 × 4 × 4 bytes; measured the same way, in both formats. The
// frozen linear layer behind it keeps nothing.
TEST(Adapters, OfAnEmbeddingKeepRowsOfTheirRank) {
  const Network network =
      WithAdapter(one_layer::EmbeddingAndLinear(), {.rank = 4, .targets = {"embed_tokens"}}, "")
          .value();
  EXPECT_EQ(Kept(PlayedOnProcessor(network, false)), 256);
  EXPECT_EQ(Kept(PlayedOnProcessor(network, true)), 256);
}

// Attention of 2 heads of 12, written out, with 5 keys and values before those of the 8 tokens: the
// numbers of the trained tokens, 2 × 5 × 8; queries, probabilities 2 × 2 × 8 × 13, values, and keys
// where the queries need a gradient.
TEST(Adapters, OfPrefixTuningLengthenKeysAndValues) {
  for (const std::int64_t key_value_heads : {2, 1}) {
    for (const bool needs_gradient : {true, false}) {
      const Network network = WithAdapter(one_layer::OneAttention(key_value_heads, needs_gradient),
                                          {.kind = AdapterKind::kPrefix, .tokens = 5}, "")
                                  .value();
      EXPECT_EQ(TrainableParameterCount(network), 5 * 2 * key_value_heads * 12);
      EXPECT_EQ(Kept(PlayedOnProcessor(network, false)), needs_gradient ? 8272 : 5776);
      EXPECT_EQ(Kept(PlayedOnProcessor(network, true)), needs_gradient ? 4176 : 2928);
    }
  }
}

// The numbers of the trained tokens alone, 2 × 5 × 8; every layer behind sees 13 tokens.
TEST(Adapters, OfPromptTuningLengthenTheSequence) {
  const Network network =
      WithAdapter(one_layer::OneEmbedding(), {.kind = AdapterKind::kPrompt, .tokens = 5}, "")
          .value();
  EXPECT_EQ(TrainableParameterCount(network), 5 * kIn);
  const Batch batch = {.micro_batch_size = kSamples, .sequence_length = 13, .prompt_tokens = 5};
  EXPECT_EQ(Kept(PlayedOnProcessor(network, false, batch)), 80);
  EXPECT_EQ(Kept(PlayedOnProcessor(network, true, batch)), 80);
}

}  // namespace
}  // namespace fourpiles
