#include "plan/validate.h"

#include <gtest/gtest.h>

namespace fourpiles {
namespace {

Validation Of(std::string_view text, const ValidationChoice& choice = {}) {
  return Validate(text, "runs.jsonl", PoolRunKinds(), choice);
}

// vllm#10517: a log of Llama-3.1-8B on an RTX 3090.
constexpr std::string_view kBlocks =
    R"({"id": "a", "kind": "vllm_kv_tokens", "arch": {"n_layer": 32, "n_kv_heads": 8, "head_dim": 128},)"
    R"( "unit": "blocks", "value": 1952, "confidence": "high", "available_kv_gib": 3.81})";

TEST(Validate, BlocksMayLieWithinWhatTheLogPrints) {
  const Validation validation = Of(kBlocks);
  ASSERT_EQ(validation.rows.size(), 1u);
  EXPECT_EQ(validation.rows[0].predicted, 1950);
  EXPECT_TRUE(validation.rows[0].close);
  EXPECT_FALSE(validation.rows[0].exact);
  EXPECT_EQ(validation.all.off, 0);
}

TEST(Validate, BlocksOutsideWhatTheLogPrintsAreOff) {
  std::string text(kBlocks);
  text.replace(text.find("1952"), 4, "1960");
  EXPECT_EQ(Of(text).all.off, 1);
  EXPECT_EQ(Of(text, {.tolerance = 0.01}).all.off, 0);
}

TEST(Validate, SizesMustBeEqualAtThePrintedDigits) {
  // A log of SGLang, Qwen3-30B-A3B: 1,669,816 tokens, keys 76.44 "GB" of 2^30 bytes.
  constexpr std::string_view kKeys =
      R"({"id": "k", "kind": "sglang_kv", "unit": "GB", "unit_is": "GiB", "value": 76.44,)"
      R"( "confidence": "high", "tokens": 1669816, "bytes_per_token": 49152})";
  EXPECT_TRUE(Of(kKeys).rows[0].exact);
  std::string text(kKeys);
  text.replace(text.find("76.44"), 5, "76.45");
  EXPECT_EQ(Of(text).all.off, 1);
  text.replace(text.find("high"), 4, "low");
  EXPECT_EQ(Of(text).all.off, 0);
}

TEST(Validate, KeysAloneAreHalfOfWhatTheShapesGive) {
  constexpr std::string_view kKeys =
      R"({"id": "k", "kind": "sglang_kv", "figure_name": "k_size", "unit": "GiB", "value": 76.44,)"
      R"( "tokens": 1669816, "arch": {"n_layer": 48, "n_kv_heads": 4, "head_dim": 128}})";
  EXPECT_TRUE(Of(kKeys).rows[0].exact);
}

TEST(Validate, BrokenLinesAreReportedAndTheRestRuns) {
  const Validation validation = Of("{\n\n" + std::string(kBlocks) + "\n[]\n{\"id\": 1}\n");
  ASSERT_EQ(validation.faults.size(), 3u);
  EXPECT_EQ(validation.faults[0].where.substr(0, 18), "runs.jsonl: line 1");
  EXPECT_EQ(validation.faults[1].where, "runs.jsonl: line 4");
  EXPECT_EQ(validation.faults[2].where, "runs.jsonl: line 5: value");
  EXPECT_EQ(validation.all.compared, 1);
}

TEST(Validate, RowsThatLackAFieldSayWhich) {
  struct Case {
    const char* row;
    const char* reason;
  };
  constexpr Case kCases[] = {
      {R"({"kind": "vllm_kv_tokens", "value": 1, "unit": "tokens"})", "no field available_kv_gib"},
      {R"({"kind": "vllm_available", "value": 1, "unit": "GiB"})", "no field total_gib"},
      {R"({"kind": "sglang_kv", "value": 1, "unit": "GiB", "tokens": 1.5})",
       "tokens is 1.5, not a whole number from 1"},
      {R"({"kind": "sglang_kv", "value": 1, "unit": "blocks", "tokens": 2, "bytes_per_token": 1})",
       "the figure is in \"blocks\", the prediction in bytes"},
      {R"({"kind": "vllm_kv_tokens", "value": 1, "unit": "tokens", "available_kv_gib": 1,)"
       R"( "bytes_per_token": 0})",
       "the prediction passes 2^53, or divides by zero"},
      {R"({"kind": "sglang_vk", "value": 1})",
       "unknown kind \"sglang_vk\", did you mean \"sglang_kv\"?"},
      {R"({"kind": "llm", "value": 1, "mode": "lora"})", "unknown kind \"llm\""},
      {R"({"kind": "vllm_weights", "value": 1, "unit": "GiB", "model": "x", "dtype_quant": "bf16"})",
       "no model \"x\" in the catalogue"},
  };
  for (const Case& one : kCases) {
    const Validation validation = Of(one.row);
    ASSERT_EQ(validation.rows.size(), 1u) << one.row;
    EXPECT_FALSE(validation.rows[0].predicted) << one.row;
    EXPECT_EQ(validation.rows[0].reason, one.reason) << one.row;
  }
}

TEST(Validate, ModelsAreFoundByNamesThatSayMore) {
  // total_size of the public model.safetensors.index.json.
  for (const char* name :
       {"Llama-3(.1)-8B", "Llama-3-8B", "meta-llama/Meta-Llama-3-8B", "Meta-Llama-3-8B-Instruct",
        "Llama-3.1-Instruct-8B-AWQ", "Llama-3.1-8B fine-tune"}) {
    const std::string row = std::string(R"({"kind": "safetensors_total", "unit": "bytes", )") +
                            R"("value": 16060522496, "dtype_quant": "bf16", "model": ")" + name +
                            "\"}";
    EXPECT_TRUE(Of(row).rows[0].exact) << name;
  }
}

TEST(Validate, KindsThatAreShownAreNotJudged) {
  const Validation validation =
      Of(R"({"kind": "overhead", "figure_name": "vllm_non_torch", "unit": "GiB", "value": 3.58})");
  EXPECT_EQ(validation.all.compared, 1);
  EXPECT_EQ(validation.judged.rows, 0);
  EXPECT_EQ(validation.all.off, 0);
}

}  // namespace
}  // namespace fourpiles
