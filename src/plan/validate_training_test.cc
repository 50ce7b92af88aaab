// Rows of measured training runs against their published values (tests/data/runs/training.jsonl
// has the sources), and everything that a row can have wrong.

#include "plan/validate_training.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <span>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/json.h"

namespace fourpiles {
namespace {

std::string Rows() {
  std::ifstream file(FOURPILES_TEST_DATA "/runs/training.jsonl");
  return {std::istreambuf_iterator<char>(file), {}};
}

Validation Of(std::string_view text, const ValidationChoice& choice = {}) {
  return Validate(text, "runs.jsonl", TrainingRunKinds(), choice);
}

const ValidatedRun& Find(const Validation& validation, std::string_view id) {
  const auto run = std::ranges::find(validation.rows, id, &ValidatedRun::id);
  EXPECT_NE(run, validation.rows.end()) << id;
  return *run;
}

// The line of this row, as it stands in the file.
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
  EXPECT_EQ(validation.rows.size(), 1u) << line;
  return validation.rows.empty() ? ValidatedRun() : validation.rows[0];
}

constexpr std::string_view kLitGpt = "litgpt-rt-lora-phi-1.5-bf16-mb1";
constexpr std::string_view kTorchtune = "torchtune-flags-1";
constexpr std::string_view kLiger = "liger-cross_entropy-huggingface-full-4096";

TEST(ValidateTraining, EachFamilyOfProgramsComesNearWhatWasPublished) {
  struct Case {
    std::string_view id;
    double measured;
    double within;
  };
  constexpr Case kCases[] = {
      {kLitGpt, 4.82, 0.005},
      {"litgpt-rt-lora-stablelm-alpha-3b-bnb.nf4-mb1", 6.35, 0.025},
      {"litgpt-hub-Llama-3-8B-lora-mb1", 19.73, 0.005},
      {kTorchtune, 60.0, 0.01},
      {"torchtune-flags-4", 24.9, 0.01},
      {"torchtune-flags-7", 17.6, 0.025},
      {"torchtune-flags-lora", 8.5, 0.03},
      {"llmc-124m-b56-activations", 18564, 0.0005},
      {"llmc-124m-b56-params", 237, 0.0025},
      {"llmc-124m-b56-master", 474, 0.0025},
      {kLiger, 1280.1259765625, 0.0005},
      {"liger-fused_linear_cross_entropy-liger-full-32768", 5794.6259765625, 0.005},
      {"peft-mm-full-steady", 26064700000, 0.02}};
  const Validation validation = Of(Rows());
  for (const Case& wanted : kCases) {
    const ValidatedRun& run = Find(validation, wanted.id);
    EXPECT_EQ(run.measured, wanted.measured);
    ASSERT_TRUE(run.predicted) << wanted.id << ": " << run.reason;
    EXPECT_NEAR(*run.predicted / wanted.measured, 1, wanted.within) << wanted.id;
    EXPECT_TRUE(run.judged && run.close) << wanted.id;
  }
}

TEST(ValidateTraining, LowConfidenceIsShownAndJudgesNothing) {
  const ValidatedRun run = Find(Of(Rows()), "torchtune-flags-0");
  ASSERT_TRUE(run.predicted);
  EXPECT_GT(run.error, 1);  // the row's length is not the run's
  EXPECT_FALSE(run.judged);
}

TEST(ValidateTraining, AnUnknownMetricIsShownAndJudgesNothing) {
  const ValidatedRun run =
      Changed(kTorchtune, R"("metric": "allocated")", R"("metric": "unknown")");
  ASSERT_TRUE(run.predicted);
  EXPECT_FALSE(run.judged);
}

TEST(ValidateTraining, ReservedIsJudgedByItsBand) {
  constexpr std::string_view kMetric = R"("metric": "allocated", "value": 60.0)";
  const auto reserved = [&](double value) {
    return Changed(kTorchtune, kMetric, fmt::format(R"("metric": "reserved", "value": {})", value));
  };
  const ValidatedRun run = reserved(60);
  ASSERT_TRUE(run.band);
  EXPECT_TRUE(reserved(run.band->high).close);
  EXPECT_TRUE(reserved(run.band->low).close);
  EXPECT_FALSE(reserved(run.band->high * 1.01).close);
  EXPECT_FALSE(reserved(run.band->low * 0.99).close);
}

TEST(ValidateTraining, NoRowIsReadByItsNameOrItsModels) {
  const double predicted = *Find(Of(Rows()), kTorchtune).predicted;
  for (const std::string_view from :
       {R"("id": "torchtune-flags-1")", R"("model": "Llama-3.2-3B")"}) {
    const std::string key(from.substr(0, from.find(':')));
    EXPECT_EQ(Changed(kTorchtune, from, key + R"(: "llama-3.1-405b")").predicted, predicted);
  }
}

TEST(ValidateTraining, OtherPlannersAnswerBesideUs) {
  // accelerate: 8 bytes a parameter of 3,212,749,824 in bfloat16.
  const ValidatedRun run = Find(Of(Rows()), kTorchtune);
  ASSERT_FALSE(run.published.empty());
  EXPECT_EQ(run.published[0].name, "accelerate estimate-memory");
  EXPECT_NEAR(run.published[0].value, 8 * 3212749824.0 / (1 << 30), 1e-9);
  EXPECT_TRUE(Find(Of(Rows()), kLitGpt).published.empty());  // adapters
}

TEST(ValidateTraining, ATolerancePutsItsLimitInPlaceOfTheBand) {
  const Validation strict = Of(LineOf("torchtune-flags-7"), {.tolerance = 0.001});
  EXPECT_EQ(strict.all.off, 1);
  EXPECT_EQ(Of(LineOf("torchtune-flags-7"), {.tolerance = 0.05}).all.off, 0);
  EXPECT_EQ(Of(LineOf("torchtune-flags-0"), {.tolerance = 0.001}).all.off, 0);  // low confidence
}

struct Broken {
  std::string_view from;
  std::string_view to;
  std::string_view reason;
  std::string_view id = kTorchtune;
};

void ExpectReasons(std::span<const Broken> cases) {
  for (const Broken& broken : cases) {
    const ValidatedRun run = Changed(broken.id, broken.from, broken.to);
    EXPECT_FALSE(run.predicted) << broken.to;
    EXPECT_NE(run.reason.find(broken.reason), std::string::npos)
        << broken.to << "\n  gives: " << run.reason;
  }
}

TEST(ValidateTraining, WhatCannotBeExpressedSaysWhy) {
  constexpr Broken kCases[] = {
      {R"("devices": 1)", R"("devices": 2)", "no field parallel"},
      {R"("devices": 1)", R"("devices": null)", "no device count is given"},
      {R"("seq": 4096)", R"("seq": null)", "no seq is given"},
      {R"("micro_batch": 2)", R"("micro_batch": null)", "no micro_batch is given"},
      {R"("usable": true)", R"("usable": false)", "contradicting itself"},
      {"repo pytorch/torchtune", "repo somebody/else", "source: "},
      {R"("mode": "full-ft")", R"("mode": "by magic")", R"(mode: "by magic" is not in the vo)"},
      {R"("mode": "full-ft")", R"("mode": "adapter")", "LLaMA-Adapter"},
      {R"("precision": "pure bf16")", R"("precision": "fp3")", R"(precision: "fp3" is not in)"},
      {R"("precision": "pure bf16")", R"("precision": null)", "no field precision"},
      {"AdamW bf16 states", "lion", R"(optimizer: "lion" is not in)"},
      {R"("recompute": "none")", R"("recompute": "unknown")", "layers run again"},
      {R"("attention": "sdpa flash")", R"("attention": "sage")", R"(attention: "sage" is not)"},
      {R"("special": ["packed 4096"])", R"("special": ["quickly"])", R"(special: "quickly" is)"},
      {R"("metric": "allocated")", R"("metric": "felt")", R"(metric: "felt" is not in)"},
      {R"("measures": "peak")", R"("measures": "valley")", R"(measures: "valley" is not in)"},
      {R"("measures": "peak")", R"("measures": "pile:sand")", R"("pile:sand" is not in)"},
      {R"("unit": "GB")", R"("unit": "tokens")", "the prediction in bytes", kLitGpt},
      {R"("layers": 28)", R"("layers": 28, "experts": 8)", "arch.experts is not in"},
      {R"("layers": 28, )", "", "no field arch.layers"},
      {R"("params": 3212749824)", R"("params": 3606752256)", "arch.params: 3606752256, its sha"},
      {R"("norm": "rms")", R"("norm": "batch")", "are not described"},
      {R"("model": "cross_entropy kernel")", R"("model": "softmax")", "no kernel that", kLiger},
      {R"("vocab size=4096")", R"("vocab size=many")", "special: ", kLiger}};
  ExpectReasons(kCases);
}

TEST(ValidateTraining, KernelsWhoseSizesOrFigureAreNotGivenSayWhy) {
  constexpr std::string_view kFused = "liger-fused_linear_cross_entropy-liger-full-32768";
  const Broken cases[] = {
      {R"("vocab size=4096")", R"("liger")", "no field arch.V", kLiger},
      {R"("B": 8)", R"("B": "8")", "no fields arch.B", kLiger},
      {R"("B": 8)", R"("B": 9007199254740993)", "", kLiger},
      {R"("B": 8, "T": 2048)", R"("B": 4503599627370496, "T": 4503599627370496)", "", kLiger},
      {R"("H": 4096, )", "", "no field arch.H", kFused},
      {"B x T=32768", "B x T=-1", "special: ", kFused},
      {R"("metric": "allocated")", R"("metric": "reserved")", "metric: ", kLiger},
      {"kernel fwd+bwd peak", "kernel fwd peak", "mode: ", kLiger},
      {R"("measures": "kernel")", R"("measures": "speed")", "measures: ", kLiger},
      {R"("usable": true)", R"("usable": false)", "contradicting", kLiger},
      {R"("precision": "fp32")", R"("precision": "fp3")", "fp3", kLiger},
      {R"("unit": "MB")", R"("unit": "ms")", "the prediction in bytes", kLiger}};
  ExpectReasons(cases);
  EXPECT_FALSE(Changed(kLiger, R"("confidence": "high")", R"("confidence": "low")").judged);
}

TEST(ValidateTraining, ShapesThatTheLayersDoNotHaveSayWhy) {
  constexpr std::string_view kLlmc = "llmc-124m-b56-activations";
  constexpr Broken kCases[] = {
      {R"("tied": true)", R"("tied": true, "rotary_pct": 0.5)", "arch.rotary_pct with"},
      {R"("tied": true)", R"("tied": true, "maxT": 4096)", "arch.maxT with"},
      {R"("tied": true)", R"("tied": true, "parallel_residual": true)", "arch.parallel_res"},
      {R"("tied": true)", R"("tied": true, "kv_heads": 4)", "arch.kv_heads with", kLlmc},
      {R"("tied": true)", R"("tied": true, "head_dim": 65)", "arch.head_dim with", kLlmc},
      {R"("bias": true)", R"("bias": true, "qk_norm": true)", "arch.qk_norm with", kLitGpt},
      {R"("mlp": "gelu")", R"("mlp": "relu")", "are not described", kLitGpt},
      {R"("norm": "ln")", R"("norm": "scale")", "are not described", kLitGpt}};
  ExpectReasons(kCases);
  EXPECT_TRUE(Changed(kLlmc, R"("heads": 12)", R"("heads": 12, "kv_heads": 12)").close);
}

TEST(ValidateTraining, ShapesThatAreNoneSayWhy) {
  constexpr Broken kCases[] = {
      {R"("layers": 28)", R"("layers": 0)", "layers: 0"},
      {R"("layers": 28)", R"("layers": -28)", "layers: -28"},
      {R"("layers": 28)", R"("layers": 28.5)", "layers: 28.5"},
      {R"("layers": 28)", R"("layers": "28")", "layers: the string"},
      {R"("layers": 28)", R"("layers": 1000000000)", ""},
      {R"("layers": 28)", R"("layers": 99999999999999999999)", "layers: "},
      {R"("hidden": 3072)", R"("hidden": 3071)", "does not divide"},
      {R"("hidden": 3072)", R"("hidden": 1000000000)", ""},
      {R"("kv_heads": 8)", R"("kv_heads": 7)", ""},
      {R"("kv_heads": 8)", R"("kv_heads": [8])", "kv_heads: "},
      {R"("tied": true)", R"("tied": 1)", "tied: "},
      {R"("mlp": "swiglu")", R"("mlp": 3)", "mlp: "},
      {R"("params": 3212749824)", R"("params": "3B")", "params: "},
      {R"("seq": 4096)", R"("seq": 1073741825)", "no seq"},
      {R"("seq": 4096)", R"("seq": -1)", "no seq"},
      {R"("seq": 4096)", R"("seq": 1073741824)", ""},
      {R"("devices": 1)", R"("devices": "one")", "no device count"},
      {R"("special": ["packed 4096"])", R"("special": "packed 4096")", "special: "},
      {R"("special": ["packed 4096"])", R"("special": [1])", "special"},
      {R"("measures": "peak")", R"("measures": false)", "measures: "},
      {R"("usable": true)", R"("usable": "no")", "usable: "},
      // LitGPT's layers have one norm for both parts only where these stand side by side.
      {R"("parallel_residual": true)", R"("parallel_residual": false)", "shared_", kLitGpt}};
  ExpectReasons(kCases);
}

TEST(ValidateTraining, AnArchThatIsNoneSaysSo) {
  const std::string line = LineOf(kTorchtune);
  const std::size_t at = line.find(R"("arch": )");
  const std::string arch = line.substr(at, line.find('}', at) + 1 - at);
  const Broken cases[] = {{arch, R"("arch": null)", "no field arch"},
                          {arch, R"("arch": {})", "no field arch.layers"},
                          {arch, R"("arch": [28])", "arch: "},
                          {arch, R"("arch": "llama")", "arch: "}};
  ExpectReasons(cases);
}

TEST(ValidateTraining, ValuesThatAreNoNumbersAreFaultsOfTheirLine) {
  std::string text = LineOf(kTorchtune) + "\n";
  for (const std::string_view value : {"NaN", "\"60\"", "null", "[60]", "1e400"}) {
    std::string line = LineOf(kTorchtune);
    constexpr std::string_view kValue = R"("value": 60.0)";
    line.replace(line.find(kValue), kValue.size(), fmt::format("\"value\": {}", value));
    text += line + "\n";
  }
  text += std::string(1000, '[') + "\n" + LineOf(kLitGpt) + "\n";
  const Validation validation = Of(text);
  ASSERT_EQ(validation.faults.size(), 6u);
  EXPECT_TRUE(validation.faults[0].where.starts_with("runs.jsonl: line 2"));
  EXPECT_TRUE(validation.faults[5].where.starts_with("runs.jsonl: line 7"));
  EXPECT_EQ(validation.all.compared, 2);
}

}  // namespace
}  // namespace fourpiles
