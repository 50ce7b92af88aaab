// Logs of models of the catalogue: every figure beside its prediction.

#include "plan/check_log.h"

#include <gtest/gtest.h>

#include "plan/log_job.h"
#include "plan/log_testing.h"

namespace fourpiles {
namespace {

// Of each figure "line id device: agreement"; an error's place and what was found.
std::string Agreements(std::string_view text, std::string_view model,
                       const std::map<std::string, std::string>& typed = {}) {
  const EngineLog log = LogOf(text);
  const auto job = JobOfLog(log, "run.log", model, TypedSettings(typed));
  if (!job) {
    return job.error().text.where + " | " + job.error().text.found;
  }
  const auto check = CheckLog(log, *job);
  if (!check) {
    return check.error().text.where + " | " + check.error().text.found;
  }
  std::string lines;
  for (const std::string& warning : check->warnings) {
    lines += "warning: " + warning + "\n";
  }
  for (const LogRow& row : check->rows) {
    lines += fmt::format("{} {} {}: {}\n", row.logged.line, row.logged.id, row.logged.device,
                         Name(row.agreement));
  }
  return lines;
}

// A public log of OpenHermes-2.5-Mistral-7B on a processor: Mistral's windows are not llama.cpp's.
constexpr std::string_view kMistral =
    "llm_load_print_meta: arch             = llama\n"
    "llm_load_print_meta: n_layer          = 32\n"
    "llm_load_print_meta: n_embd           = 4096\n"
    "llm_load_print_meta: model ftype      = Q4_K - Medium\n"
    "llm_load_tensors:        CPU buffer size =  4165.37 MiB\n"
    "llama_new_context_with_model: n_ctx      = 8192\n"
    "llama_new_context_with_model: n_batch    = 256\n"
    "llama_new_context_with_model: n_ubatch   = 256\n"
    "llama_new_context_with_model: flash_attn = 0\n"
    "llama_kv_cache_init:        CPU KV buffer size =  1024.00 MiB\n"
    "llama_new_context_with_model: KV self size  = 1024.00 MiB, K (f16):  512.00 MiB, V (f16):  "
    "512.00 MiB\n"
    "llama_new_context_with_model:        CPU  output buffer size =     0.12 MiB\n"
    "llama_new_context_with_model:        CPU compute buffer size =   280.00 MiB\n";

TEST(CheckLog, LlamacppOnTheProcessor) {
  EXPECT_EQ(Agreements(kMistral, "mistral-7b-v0.1"),
            "5 weights_host_bytes CPU: equal\n"
            "10 kv_device_bytes CPU: equal\n"
            "11 kv_bytes : equal\n"
            "11 kv_key_bytes : equal\n"
            "11 kv_value_bytes : equal\n"
            "12 output_bytes CPU: equal\n"
            "13 compute_host_bytes CPU: equal\n");
}

TEST(CheckLog, WhatWasTypedGoesBeforeTheLog) {
  EXPECT_EQ(Agreements(kMistral, "mistral-7b-v0.1", {{"kv-format-k", "q8_0"}}),
            "5 weights_host_bytes CPU: equal\n"
            "10 kv_device_bytes CPU: off\n"
            "11 kv_bytes : off\n"
            "11 kv_key_bytes : off\n"
            "11 kv_value_bytes : equal\n"
            "12 output_bytes CPU: equal\n"
            "13 compute_host_bytes CPU: equal\n");
  EXPECT_EQ(Agreements(kMistral, "mistral-7b-v0.1", {{"engine", "vllm"}}),
            "--engine | \"vllm\", and a log of llama.cpp");
}

TEST(CheckLog, AnotherModelIsNamedBeforeItsFigures) {
  const std::string lines = Agreements(kMistral, "llama-2-13b");
  EXPECT_TRUE(
      lines.starts_with("warning: the log's model has 32 layers, this one 40: is it the "
                        "same?\nwarning: the log's model has 4096 values a token, this one "
                        "5120: is it the same?\n5 weights_host_bytes"))
      << lines;
}

// vllm-project/vllm #10517, an RTX 3090: 3.81 GiB are 1,948 to 1,953 blocks of 2 MiB.
constexpr std::string_view kVllm =
    "INFO 11-21 15:43:44 llm_engine.py:249] Initializing an LLM engine (v0.6.4) with config: "
    "model='meta-llama/Llama-3.1-8B-Instruct', dtype=torch.bfloat16, max_seq_len=20000, "
    "tensor_parallel_size=1, pipeline_parallel_size=1, quantization=None, kv_cache_dtype=auto\n"
    "INFO 11-21 15:43:56 model_runner.py:1077] Loading model weights took 14.9888 GB\n"
    "INFO 11-21 15:43:57 worker.py:232] Memory profiling results: total_gpu_memory=23.48GiB "
    "initial_memory_usage=15.39GiB non_torch_memory=0.35GiB kv_cache_size=3.81GiB "
    "gpu_memory_utilization=0.90\n"
    "INFO 11-21 15:43:57 gpu_executor.py:113] # GPU blocks: 1952, # CPU blocks: 2048\n"
    "INFO 11-21 15:43:57 gpu_executor.py:117] Maximum concurrency for 20000 tokens per request: "
    "1.56x\n";

TEST(CheckLog, VllmBlocksFromTheBytesOfTheLog) {
  const std::string blocks =
      "2 weights_bytes : shown\n"
      "3 total_bytes : not_predicted\n"
      "3 non_torch_bytes : not_predicted\n"
      "3 available_bytes : shown\n"
      "4 blocks : equal\n"
      "4 cpu_blocks : equal\n"
      "5 max_concurrency : equal\n";
  EXPECT_EQ(Agreements(kVllm, "llama-3.1-8b"), blocks);
  EXPECT_EQ(Agreements(kVllm, "llama-3.1-8b", {{"device", "rtx-3090-24gb"}}), blocks);
  const std::string lines = Agreements(kVllm, "llama-3.1-8b", {{"kv-format", "fp8"}});
  EXPECT_NE(lines.find("4 blocks : off"), std::string::npos) << lines;
}

// sgl-project/sglang #18263: 1,669,816 tokens × 48 layers × 4 heads × 128 × 2 bytes.
TEST(CheckLog, SglangBytesFromTheTokensOfTheLog) {
  const std::string_view log =
      "[2025-10-02 21:34:32] server_args=ServerArgs(model_path='Qwen/Qwen3-30B-A3B', "
      "context_length=40960, dtype='auto', quantization=None, kv_cache_dtype='auto', "
      "mem_fraction_static=0.88, page_size=1, tp_size=1, pp_size=1)\n"
      "[2025-10-02 21:34:50] Load weight end. type=Qwen3MoeForCausalLM, dtype=torch.bfloat16, "
      "avail mem=229.02 GB, mem usage=56.98 GB.\n"
      "[2025-10-02 21:35:00] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 1669816, K "
      "size: 76.44 GB, V size: 76.44 GB\n";
  EXPECT_EQ(Agreements(log, "qwen3-30b-a3b"),
            "2 free_after_weights_bytes : not_predicted\n"
            "2 weights_bytes : shown\n"
            "3 cache_tokens : not_predicted\n"
            "3 kv_key_bytes : equal\n"
            "3 kv_value_bytes : equal\n");
  const std::string lines = Agreements(log, "qwen3-30b-a3b", {{"kv-format", "fp8"}});
  EXPECT_NE(lines.find("kv_key_bytes : off"), std::string::npos) << lines;
}

TEST(CheckLog, SettingsOfTheLogByTheNamesOfOptions) {
  std::map<std::string, std::string> found;
  for (const auto& [name, value] : SettingsOfLog(LogOf(kMistral), "run.log")) {
    found[name] = value.text;
    EXPECT_EQ(value.where, "run.log: " + name);
  }
  const std::map<std::string, std::string> expected = {
      {"concurrency", "1"},   {"context-length", "8192"}, {"engine", "llama.cpp"},
      {"gpu-layers", "0"},    {"flash-attention", "off"}, {"kv-format-k", "f16"},
      {"kv-format-v", "f16"}, {"ubatch", "256"},          {"weights-format", "Q4_K_M"}};
  EXPECT_EQ(found, expected);
}

TEST(CheckLog, SlotsDivideTheContextAndDevicesAreCounted) {
  const Settings settings =
      SettingsOfLog(LogOf("llama_context: n_seq_max     = 4\n"
                          "llama_context: n_ctx         = 32768\n"
                          "llama_context: kv_unified    = true\n"
                          "load_tensors: offloaded 81/81 layers to GPU\n"
                          "load_tensors:        CUDA0 model buffer size = 20000.00 MiB\n"
                          "load_tensors:        CUDA1 model buffer size = 20000.00 MiB\n"
                          "load_tensors:   CPU_Mapped model buffer size =   563.62 MiB\n"),
                    "run.log");
  EXPECT_EQ(settings.at("context-length").text, "8192");
  EXPECT_EQ(settings.at("concurrency").text, "4");
  EXPECT_EQ(settings.at("kv-unified").text, "true");
  EXPECT_EQ(settings.at("devices").text, "2");
  EXPECT_EQ(settings.at("gpu-layers").text, "81");
}

}  // namespace
}  // namespace fourpiles
