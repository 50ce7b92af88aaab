// Losses alone, against the benchmarks of Liger-Kernel (benchmark/data/all_benchmark_data.csv,
// A100, torch.cuda.max_memory_allocated in MiB, forward and backward, inputs resident).

#include <utility>

#include <gtest/gtest.h>

#include "step/tiny_plays.h"

namespace fourpiles {
namespace {

constexpr std::int64_t kMebibyte = 1 << 20;

// With gradients of the run before; weights and these are not counted.
Part LossPart(Network network, const Batch& batch) {
  Part part = TinyPart(std::move(network), batch);
  part.numbers = {};
  return part;
}

constexpr Batch kBatch = {.micro_batch_size = 8, .sequence_length = 2048};

std::int64_t PeakBytes(const Part& part, std::string_view implementation,
                       const ProfileChoices& choices = {}) {
  const Profile profile = FindProfile(implementation, choices).value();
  return PeakOf(Play(part, profile).value(), Place::kDevice).bytes.value();
}

// "cross_entropy, huggingface, full": 1280.126, 10240.126 and 40960.125 MiB for 4096, 32,768 and
// 131,072 words. 5 × 4 bytes a logit: input, .grad of the run before, log-probabilities, and the
// two gradients of the backward pass; the rest are the targets.
TEST(Loss, CrossEntropyCostsTwentyBytesALogit) {
  struct Case {
    std::int64_t vocabulary;
    double measured;
  };
  for (const Case& c :
       {Case{4096, 1280.1259765625}, Case{32'768, 10240.1259765625}, Case{131'072, 40960.125}}) {
    const std::int64_t input_and_grad = 2 * 4 * 16'384 * c.vocabulary;
    const std::int64_t targets = 8 * 16'384;
    const std::int64_t peak =
        input_and_grad + targets +
        PeakBytes(LossPart(LossOfLogits({8, 2048, c.vocabulary}), kBatch), "pytorch");
    EXPECT_NEAR(static_cast<double>(peak) / kMebibyte, c.measured, 0.002) << c.vocabulary;
  }
}

// "cross_entropy, liger, full": 256.329 and 8192.328 MiB: the input, in whose place its gradient is
// written, and 0.33 MiB of targets and losses.
TEST(Loss, LigersCrossEntropyCostsFourBytesALogit) {
  for (const std::int64_t vocabulary : {4096, 131'072}) {
    const std::int64_t input = 4 * 16'384 * vocabulary;
    const std::int64_t peak =
        input + PeakBytes(LossPart(LossOfLogits({8, 2048, vocabulary}), kBatch), "liger",
                          {.loss = LossKind::kFused});
    const double measured = vocabulary == 4096 ? 256.32861328125 : 8192.328125;
    EXPECT_NEAR(static_cast<double>(peak) / kMebibyte, measured, 0.35) << vocabulary;
  }
}

// ops/fused_linear_cross_entropy.py: 4096 tokens, h 4096, 128,256 words, bfloat16. The gradient of
// the input, 32 MiB, that of the weight, 1002, and the logits of a chunk of 128 tokens, for
// ⌈128,256 / 4096⌉ = 32 and 4096 / 32 = 128, in bfloat16, cast to float32, and back as their
// gradient: (2 + 4 + 2) × 128 × 128,256, 125.3 MiB. "fused_linear_cross_entropy, liger, full":
// 4245.548 MiB for 4096 tokens and 5794.626 for 32,768, whose chunks have 1024 tokens: a difference
// of 3 × 224 MiB of the input, its gradient and its .grad of the run before, and 8 × 896 × 128,256
// bytes, 876.8 MiB: 1548.8, measured 1549.1.
TEST(Loss, LigersFusedLinearLossHoldsTwoGradientsAndAChunk) {
  const Part part = TinyPart(LossOfHiddenStates({1, 4096, 4096}, 128'256),
                             {.micro_batch_size = 1, .sequence_length = 4096});
  EXPECT_EQ(PeakBytes(part, "liger"), 2 * 4096 * (4096 + 128'256) + 8 * 128 * 128'256);
}

}  // namespace
}  // namespace fourpiles
