// Rows of runs on several devices against their published values (tests/data/runs/layouts.jsonl has
// the sources), and everything that their `parallel` and `rank` can have wrong.

#include <algorithm>
#include <fstream>
#include <iterator>
#include <span>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "plan/validate_training.h"

namespace fourpiles {
namespace {

std::string Rows() {
  std::ifstream file(FOURPILES_TEST_DATA "/runs/layouts.jsonl");
  return {std::istreambuf_iterator<char>(file), {}};
}

Validation Of(std::string_view text) {
  return Validate(text, "runs.jsonl", TrainingRunKinds(), {});
}

std::string LineOf(std::string_view id) {
  const std::string rows = Rows();
  const std::size_t at = rows.find(fmt::format("{{\"id\": \"{}\"", id));
  EXPECT_NE(at, std::string::npos) << id;
  return rows.substr(at, rows.find('\n', at) - at);
}

// The row with this piece of it replaced, compared alone.
ValidatedRun Changed(std::string_view id, std::string_view from, std::string_view to) {
  std::string line = LineOf(id);
  const std::size_t at = line.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  line.replace(at, from.size(), to);
  const Validation validation = Of(line);
  EXPECT_EQ(validation.rows.size(), 1U) << line;
  return validation.rows.empty() ? ValidatedRun() : validation.rows[0];
}

constexpr std::string_view kTensor = "mcore-gpt3_7b_tp4_pp1_memory_speed-h100";
constexpr std::string_view kPipeline = "mcore-gpt3_7b_tp1_pp4_memory_speed-a100";
constexpr std::string_view kExperts = "mcore-gpt3_mcore_te_tp2_pp1_te_8experts_etp1_ep4-h100";
constexpr std::string_view kSharded = "fsdpqlora-7b-lora-2048-alloc";

TEST(ValidateLayouts, EachProgramComesNearWhatWasMeasured) {
  struct Case {
    std::string_view id;
    double within;
  };
  constexpr Case kCases[] = {{"llmc-1558m-activations", 0.0005},
                             {"llmc-1558m-adam-m", 0.0015},
                             {kTensor, 0.015},
                             {"mcore-gpt3_7b_tp4_pp1_memory_speed-h100-steady", 0.015},
                             {"mcore-gpt3_7b_tp4_pp1_memory_speed-a100", 0.015},
                             {kPipeline, 0.015},
                             {kExperts, 0.05},
                             {kSharded, 0.03}};
  const Validation validation = Of(Rows());
  for (const Case& wanted : kCases) {
    const auto run = std::ranges::find(validation.rows, wanted.id, &ValidatedRun::id);
    ASSERT_NE(run, validation.rows.end()) << wanted.id;
    ASSERT_TRUE(run->predicted) << wanted.id << ": " << run->reason;
    EXPECT_NEAR(*run->predicted / run->measured, 1, wanted.within) << wanted.id;
  }
}

// The first stage has no logits and four times as many passes between forward and backward.
TEST(ValidateLayouts, TheLastRankIsThatOfTheLastStage) {
  const ValidatedRun last = Changed(kPipeline, "\"rank\": \"last\"", "\"rank\": \"last\"");
  const ValidatedRun worst = Changed(kPipeline, "\"rank\": \"last\"", "\"rank\": \"worst\"");
  ASSERT_TRUE(last.predicted && worst.predicted);
  EXPECT_GE(*worst.predicted, *last.predicted);
}

// cuDNN's kernel keeps one tensor of the width of the queries less in each of 32 layers (2 × 8192
// tokens × 1024 × 2 bytes = 32 MiB); H100 and A100 differ so in the golden values, but for what
// libraries work in.
TEST(ValidateLayouts, TheKernelOfAttentionIsTheDevices) {
  const ValidatedRun hopper = Changed(kTensor, "H100", "H100");
  const ValidatedRun blackwell = Changed(kTensor, "\"H100\"", "\"GB200\"");
  const ValidatedRun named = Changed(kTensor, "auto (TE fused/flash)", "flash");
  ASSERT_TRUE(hopper.predicted && blackwell.predicted && named.predicted);
  EXPECT_NEAR(*named.predicted - *hopper.predicted, 32.0 * (32 << 20), 1);
  EXPECT_GT(*blackwell.predicted, *hopper.predicted);
  const ValidatedRun unknown = Changed(kTensor, "\"H100\"", "\"abacus\"");
  EXPECT_FALSE(unknown.predicted);
}

struct Broken {
  std::string_view id;
  std::string_view from;
  std::string_view to;
  std::string_view reason;
};

void ExpectReasons(std::span<const Broken> cases) {
  for (const Broken& broken : cases) {
    const ValidatedRun run = Changed(broken.id, broken.from, broken.to);
    EXPECT_FALSE(run.predicted) << broken.to;
    EXPECT_NE(run.reason.find(broken.reason), std::string::npos)
        << broken.to << "\n  gives: " << run.reason;
  }
}

constexpr std::string_view kTensorSize = R"("tensor-model-parallel-size": 4)";

TEST(ValidateLayouts, MembersThatAreNotUnderstoodSayWhy) {
  constexpr Broken kCases[] = {
      {kTensor, kTensorSize, R"("tensor-model-parallel-size": "4")", "size=4\" is not in the voc"},
      {kTensor, kTensorSize, R"("tensor-model-parallel-size": 4.5)", "neither a count nor a word"},
      {kTensor, kTensorSize, R"("tensor-model-parallel-size": -4)", "neither a count nor a word"},
      {kTensor, kTensorSize, R"("tensor-model-parallel-size": [4])", "neither a count nor a word"},
      {kTensor, kTensorSize, R"("tensor-model-parallel-size": {})", "neither a count nor a word"},
      {kTensor, kTensorSize, R"("tensor-model-parallel-size": 1e99)", "neither a count nor a word"},
      {kTensor, kTensorSize, R"("tensor-model-parallel-size": true)", "is not in the vocabulary"},
      {kTensor, kTensorSize, R"("hyper-parallel-size": 4)", "parallel.hyper-parallel-size is not"},
      {kTensor, kTensorSize, R"("sequence-parallel": 4)", "parallel.sequence-parallel is not in"},
      {kTensor, kTensorSize, R"("pipeline-model-parallel-layout": "Et|tL")", "written out"},
      {kTensor, R"("use-distributed-optimizer": true)", R"("use-distributed-optimizer": "yes")",
       "is not in the vocabulary"},
      {kSharded, R"("fsdp1_full_shard": 2)", R"("fsdp1_full_shard": 4)", "spread over 4 of 2"},
      {kSharded, R"("devices": 2)", R"("devices": null)", "no device count"},
      {kSharded, R"("devices": 2)", R"("devices": 0)", "no device count"},
      {kSharded, R"({"fsdp1_full_shard": 2, "cpu_offload": false})", "null", "no field parallel"},
      {kSharded, R"({"fsdp1_full_shard": 2, "cpu_offload": false})", "[2]", "not an object"},
      {kTensor, R"("rank": "last")", R"("rank": "third")", R"(rank: "third" is not in)"},
      {kTensor, R"("rank": "last")", R"("rank": 3)", "rank: "}};
  ExpectReasons(kCases);
}

TEST(ValidateLayouts, LayoutsThatContradictThemselvesSayWhy) {
  constexpr Broken kCases[] = {
      {kTensor, kTensorSize, R"("tensor-model-parallel-size": 3)", "8 devices, tensor 3"},
      {kTensor, kTensorSize, R"("tensor-model-parallel-size": 1048576)", ""},
      {kTensor, R"("devices": 8)", R"("devices": 6)", ""},
      {kTensor, "global-batch 8", "global-batch 7", "7 samples of a step"},
      {kPipeline, R"("num-layers-per-virtual-pipeline-stage": 1)",
       R"("num-layers-per-virtual-pipeline-stage": 3)", "32 layers in chunks of 3 over 4 stages"},
      {kPipeline, R"("pipeline-model-parallel-size": 4)", R"("pipeline-model-parallel-size": 64)",
       ""},
      {kPipeline, R"("metric": "allocated")", R"("metric": "reserved")", "rank \"last\""},
      {kExperts, R"("expert-model-parallel-size": 4)", R"("expert-model-parallel-size": 3)",
       "8 experts over 3"}};
  ExpectReasons(kCases);
}

TEST(ValidateLayouts, ArgumentsOfMegatronThatAreNotDescribedSayWhy) {
  constexpr Broken kCases[] = {
      {kTensor, R"("num-layers": 32)", R"("num-layers": "32")", "num_layers"},
      {kTensor, R"("num-layers": 32)", R"("layers": 32)", "arch.layers is not in"},
      {kTensor, R"("num-query-groups": 8)", R"("num-query-groups": 7)", ""},
      {kTensor, R"("vocab-size": 131073, )", "", "the size of NullTokenizer's is not known"},
      {kTensor, R"("vocab-size": 131073)", R"("vocab-size": 131073, "mtp-num-layers": 1)",
       "predict further tokens"},
      {kTensor, R"("vocab-size": 131073)", R"("vocab-size": 131073, "normalization": "Batch")", ""},
      {kTensor, R"("kind": "llm")", R"("kind": "encoder")", "encoders"},
      {kTensor, R"("precision": "bf16")", R"("precision": "fp3")", "precision"},
      {kTensor, R"("recompute": "none")",
       R"("recompute": {"recompute-granularity": "selective", "recompute-modules": "[moe_act]"})",
       "modules that run again"},
      {kTensor, R"("recompute": "none")", R"("recompute": {"recompute-granularity": "all"})",
       "is not in the vocabulary"},
      {kExperts, R"("num-experts": 8)", R"("num-experts": 8, "moe-layer-freq": "([0]*3")",
       "moe_layer_freq"}};
  ExpectReasons(kCases);
}

// Between the first step's peak and the next, 8 bytes a parameter of moments: recomputed layers
// hold less than layers that are not.
TEST(ValidateLayouts, LayersThatRunAgainAreReadFromTheirMembers) {
  const ValidatedRun none = Changed(kTensor, "\"none\"", "\"none\"");
  const ValidatedRun full = Changed(
      kTensor, R"("recompute": "none")",
      R"("recompute": {"recompute-granularity": "full", "recompute-method": "uniform", "recompute-num-layers": 1})");
  const ValidatedRun core = Changed(kTensor, R"("recompute": "none")",
                                    R"("recompute": {"recompute-granularity": "selective"})");
  ASSERT_TRUE(full.predicted) << full.reason;
  ASSERT_TRUE(core.predicted) << core.reason;
  EXPECT_LT(*full.predicted, *core.predicted);
  EXPECT_LE(*core.predicted, *none.predicted);
}

}  // namespace
}  // namespace fourpiles
