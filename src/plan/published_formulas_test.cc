#include "plan/published_formulas.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

namespace fourpiles {
namespace {

constexpr double kGib = 1024.0 * 1024 * 1024;

// meta-llama/Llama-3.1-8B, config.json.
TrainingDescription Llama8b() {
  return {.parameters = 8'030'261'248,
          .trainable_parameters = 8'030'261'248,
          .layers = 32,
          .hidden_size = 4096,
          .heads = 32,
          .key_value_heads = 8,
          .ffn_size = 14336,
          .vocabulary = 128256,
          .sequence_length = 8192};
}

PublishedEstimate Of(std::string_view name, const TrainingDescription& job) {
  const std::vector<PublishedEstimate> all = PublishedEstimates(job);
  return *std::ranges::find_if(
      all, [&](const PublishedEstimate& planner) { return planner.name.starts_with(name); });
}

double Gib(std::string_view name, const TrainingDescription& job) {
  const auto bytes = Of(name, job).bytes;
  return bytes ? static_cast<double>(bytes->value()) / kGib : 0;
}

// Run: accelerate's own function says 59.8 GiB in float16, a whole 16 bytes in float32.
TEST(PublishedFormulas, AccelerateTakesTheLargestPart) {
  TrainingDescription job = Llama8b();
  EXPECT_NEAR(Gib("accelerate", job), 59.8, 0.05);
  job.precision_bytes = 4;
  EXPECT_EQ(Of("accelerate", job).bytes, Bytes(std::int64_t{16} * 8'030'261'248));
}

// Run: estimate_zero2_model_states_mem_needs of one device is 20 bytes a parameter, 149.6 GiB.
TEST(PublishedFormulas, DeepSpeedShardsFromStageTwo) {
  TrainingDescription job = Llama8b();
  job.zero_stage = 2;
  EXPECT_NEAR(Gib("DeepSpeed ZeRO-2", job), 149.6, 0.05);
  job.devices = 8;  // 2 + 18 / 8 bytes a parameter
  EXPECT_EQ(Of("DeepSpeed ZeRO-2", job).bytes, Bytes(8'030'261'248 * 17 / 4));
  EXPECT_EQ(Of("DeepSpeed ZeRO-3", job).bytes, std::nullopt);
  job.zero_stage = 3;  // 18 / 8 bytes a parameter and 4 of 128,256 × 4,096
  EXPECT_EQ(Of("DeepSpeed ZeRO-3", job).bytes, Bytes(8'030'261'248 * 9 / 4 + 4 * 525'336'576LL));
}

// Run, at sequence 8,192: activations of 354 GiB without and 34 GiB with its "checkpoint"; 18 bytes
// of each parameter, of which it finds 8,064,606,208: the learned positions it takes for granted
// are 33,554,432, norms 790,528 too many.
TEST(PublishedFormulas, CookbookKeepsScores) {
  TrainingDescription job = Llama8b();
  const double state = 18.0 * 8'064'606'208 / kGib;
  EXPECT_NEAR(Gib("EleutherAI", job), state + 354, 1e-6);
  for (const DescribedRecompute kind :
       {DescribedRecompute::kSelective, DescribedRecompute::kFull}) {
    job.recompute = kind;
    EXPECT_NEAR(Gib("EleutherAI", job), state + 34, 1e-6);
  }
}

// Muon and SGD keep 8 bytes where Adam keeps 12.
TEST(PublishedFormulas, CookbookKnowsMomentum) {
  TrainingDescription job = Llama8b();
  const Bytes adam = *Of("EleutherAI", job).bytes;
  for (const DescribedOptimizer optimizer :
       {DescribedOptimizer::kMomentum, DescribedOptimizer::kMuon}) {
    job.optimizer = optimizer;
    EXPECT_EQ(adam - *Of("EleutherAI", job).bytes, Bytes(std::int64_t{4} * 8'064'606'208));
  }
}

// Run: Llama-2-7B in 4 × 2 without ZeRO, 199 GiB a device: weights alone are cut.
TEST(PublishedFormulas, CookbookCutsWeightsAlone) {
  const TrainingDescription job = {.parameters = 6'738'415'616,
                                   .trainable_parameters = 6'738'415'616,
                                   .layers = 32,
                                   .hidden_size = 4096,
                                   .heads = 32,
                                   .key_value_heads = 32,
                                   .ffn_size = 11008,
                                   .vocabulary = 32000,
                                   .sequence_length = 4096,
                                   .devices = 8,
                                   .tensor_parallel = 4,
                                   .pipeline_parallel = 2};
  EXPECT_NEAR(Gib("EleutherAI", job), 199, 1);
}

// Run: 134.6 GiB of state, and activations of 36.1 GiB with sequence parallelism and selective
// recomputation, 37.9 otherwise, full recomputation too.
TEST(PublishedFormulas, MegatronAssumesSelectiveRecomputation) {
  TrainingDescription job = Llama8b();
  constexpr double kState = 18.0 * 8'030'261'248 / kGib;
  EXPECT_NEAR(kState, 134.6, 0.05);
  for (const DescribedRecompute kind :
       {DescribedRecompute::kNone, DescribedRecompute::kSelective, DescribedRecompute::kFull}) {
    job.recompute = kind;
    EXPECT_NEAR(Gib("Megatron", job), kState + 37.9, 0.05);
  }
  job.recompute = DescribedRecompute::kSelective;
  job.is_sequence_parallel = true;
  EXPECT_NEAR(Gib("Megatron", job), kState + 36.1, 0.05);
}

// By hand: 6 + 12 / 2 bytes of a quarter of (6,979,588,096 / 2 + 525,336,576) parameters;
// activations of a stage that holds both its micro-batches, without the loss, cut by 4 alike.
TEST(PublishedFormulas, MegatronCutsOverAllDegrees) {
  TrainingDescription job = Llama8b();
  job.devices = 16;
  job.tensor_parallel = 4;
  job.pipeline_parallel = 2;
  job.micro_batches = 8;
  job.has_distributed_optimizer = true;
  job.is_sequence_parallel = true;
  job.recompute = DescribedRecompute::kSelective;
  const double state = (6 + 12.0 / 2) * (6'979'588'096.0 / 2 + 525'336'576) / 4;
  const double tokens = 8192;
  const double activations = tokens * (32 * (18 * 4096.0 + 4 * 14336) + 2 * (8 + 4096)) / 4;
  EXPECT_EQ(Of("Megatron", job).bytes, Bytes(std::llround(state + activations)));
  job.virtual_pipeline = 4;  // × 1 + 1 / 8
  EXPECT_EQ(Of("Megatron", job).bytes, Bytes(std::llround(state + activations * 1.125)));
}

TEST(PublishedFormulas, SaysWhatAPlannerCannotExpress) {
  const auto changed = [](auto change) {
    TrainingDescription job = Llama8b();
    change(job);
    return job;
  };
  const TrainingDescription adapter =
      changed([](TrainingDescription& job) { job.trainable_parameters = 41'943'040; });
  for (const PublishedEstimate& planner : PublishedEstimates(adapter)) {
    EXPECT_EQ(planner.bytes, std::nullopt);
    EXPECT_EQ(planner.reason, "it trains all parameters, with no adapters or frozen parts");
  }
  const TrainingDescription lion =
      changed([](TrainingDescription& job) { job.optimizer = DescribedOptimizer::kOther; });
  EXPECT_EQ(Of("EleutherAI", lion).reason, "it knows Adam, Muon and SGD with momentum");
  EXPECT_EQ(Of("Megatron", lion).reason, "it knows no optimizer but Adam");
  const TrainingDescription sharded = changed([](TrainingDescription& job) { job.zero_stage = 3; });
  EXPECT_EQ(Of("accelerate", sharded).reason, "it shards nothing");
  EXPECT_EQ(Of("Megatron", sharded).reason, "it shards the optimizer alone, as ZeRO 1");
  const TrainingDescription full =
      changed([](TrainingDescription& job) { job.precision_bytes = 4; });
  EXPECT_EQ(Of("Megatron", full).reason, "it knows 16-bit training alone");
  const TrainingDescription huge = changed([](TrainingDescription& job) {
    job.sequence_length = std::int64_t{1} << 40;
    job.micro_batch_size = 1024;
  });
  EXPECT_EQ(Of("Megatron", huge).reason, "more than 2^53 bytes");
}

}  // namespace
}  // namespace fourpiles
