// The wording of real logs, from the threads named.

#include <gtest/gtest.h>

#include "plan/log_testing.h"

namespace fourpiles {
namespace {

// SystemPanic/vllm-windows #6, with the engine's line of vllm-project/vllm #8031.
TEST(LogVllm, ReadsTheEngineOf2024) {
  const EngineLog log = LogOf(
      "INFO 04-11 12:37:49 [llm_engine.py:242] Initializing a V0 LLM engine (v0.8.3) with config: "
      "model='OPEA/Mistral-Small-3.1-24B', speculative_config=None, tokenizer='x', dtype=torch."
      "float16, max_seq_len=8192, download_dir=None, tensor_parallel_size=1, "
      "pipeline_parallel_size=1, disable_custom_all_reduce=False, quantization=awq, "
      "enforce_eager=False, kv_cache_dtype=auto,  device_config=cuda\n"
      "INFO 04-04 17:57:59 [model_runner.py:1146] Model loading took 0.4678 GB and 114.953146 "
      "seconds\n"
      "INFO 04-04 17:58:00 [worker.py:268] Memory profiling takes 0.91 seconds\n"
      "INFO 04-04 17:58:00 [worker.py:268] the current vLLM instance can use total_gpu_memory "
      "(16.00GiB) x gpu_memory_utilization (0.90) = 14.40GiB\n"
      "INFO 04-04 17:58:00 [worker.py:268] model weights take 0.47GiB; non_torch_memory takes "
      "0.03GiB; PyTorch activation peak memory takes 0.50GiB; the rest of the memory reserved for "
      "KV Cache is 13.40GiB.\n"
      "INFO 04-04 17:58:00 [executor_base.py:111] # cuda blocks: 12200, # CPU blocks: 3640\n"
      "INFO 04-04 17:58:00 [executor_base.py:116] Maximum concurrency for 2048 tokens per request: "
      "95.31x\n"
      "INFO 04-04 17:58:19 [model_runner.py:1570] Graph capturing finished in 17 secs, took 0.13 "
      "GiB\n");
  EXPECT_EQ(log.engine, LogEngine::kVllm);
  EXPECT_EQ(log.version, "0.8.3");
  EXPECT_EQ(Gib(log, "weights_bytes"), "0.4678±5e-05");  // finer than the 0.47 that follows
  EXPECT_EQ(Gib(log, "total_bytes"), "16±0.005");
  EXPECT_EQ(Gib(log, "requested_bytes"), "14.4±0.005");
  EXPECT_EQ(Gib(log, "non_torch_bytes"), "0.03±0.005");
  EXPECT_EQ(Gib(log, "activation_bytes"), "0.5±0.005");
  EXPECT_EQ(Gib(log, "available_bytes"), "13.4±0.005");
  EXPECT_EQ(Plain(log, "blocks"), 12200);
  EXPECT_EQ(Plain(log, "cpu_blocks"), 3640);
  EXPECT_EQ(Plain(log, "max_concurrency"), 95.31);
  EXPECT_EQ(Gib(log, "graph_bytes"), "0.13±0.005");
  EXPECT_EQ(log.figures.size(), 10u);
  EXPECT_TRUE(log.warnings.empty());
  const std::map<std::string, std::string> settings = {
      {"context-length", "8192"}, {"dtype", "float16"},           {"kv-format-k", "auto"},
      {"kv-format-v", "auto"},    {"memory-utilization", "0.90"}, {"pipeline-parallel", "1"},
      {"tensor-parallel", "1"},   {"weights-format", "awq"}};
  EXPECT_EQ(log.settings, settings);
  EXPECT_EQ(ModelWord(log, "path"), "Mistral-Small-3.1-24B");
}

// vllm-project/vllm #28228: two workers, of which the first alone says what is available.
TEST(LogVllm, ReadsTheEngineOf2025) {
  const EngineLog log = LogOf(
      "(APIServer pid=1) INFO 11-06 10:50:01 [api_server.py:1] vLLM API server version 0.11.0\n"
      "(APIServer pid=1) INFO 11-06 10:50:02 [utils.py:233] non-default args: {'model_tag': "
      "'/m/Kimi-Linear-48B/', 'max_model_len': 120000, 'tensor_parallel_size': 2, "
      "'gpu_memory_utilization': 0.95, 'max_num_seqs': 8, 'max_num_batched_tokens': 4096, "
      "'block_size': 16, 'quantization': None, 'kv_cache_dtype': 'fp8'}\n"
      "(EngineCore_DP0 pid=26283) INFO 11-06 10:50:09 [config.py:1] Setting attention block size "
      "to "
      "960 tokens to ensure that attention page size is >= mamba page size.\n"
      "(Worker_TP0 pid=26347) INFO 11-06 10:51:10 [gpu_model_runner.py:1] Model loading took "
      "14.9889 "
      "GiB and 3.652170 seconds\n"
      "(Worker_TP1 pid=26348) INFO 11-06 10:51:10 [gpu_model_runner.py:1] Model loading took "
      "14.9889 "
      "GiB and 3.652170 seconds\n"
      "(Worker_TP0 pid=26347) INFO 11-06 10:51:48 [gpu_worker.py:349] Available KV cache memory: "
      "2.30 GiB\n"
      "(EngineCore_DP0 pid=26283) INFO 11-06 10:51:48 [kv_cache_utils.py:1229] GPU KV cache size: "
      "75,840 tokens\n"
      "(EngineCore_DP0 pid=26283) INFO 11-06 10:51:48 [kv_cache_utils.py:1234] Maximum concurrency "
      "for 120,000 tokens per request: 2.48x\n"
      "(EngineCore_DP0 pid=26283) INFO 11-06 10:51:48 [kv_cache_utils.py:1234] Maximum concurrency "
      "for 120,000 tokens per request: 2.48x\n");
  EXPECT_EQ(log.version, "0.11.0");
  EXPECT_EQ(Gib(log, "weights_bytes", "TP0"), "14.9889±5e-05");
  EXPECT_EQ(Gib(log, "weights_bytes", "TP1"), "14.9889±5e-05");
  EXPECT_EQ(FindFigure(log, "weights_bytes", "TP1")->what, "TP1 weights");
  EXPECT_EQ(Gib(log, "available_bytes", "TP0"), "2.3±0.005");
  EXPECT_EQ(Plain(log, "cache_tokens", ""), 75840);
  EXPECT_EQ(Plain(log, "max_concurrency", ""), 2.48);
  EXPECT_EQ(log.figures.size(), 5u);
  const std::map<std::string, std::string> settings = {
      {"concurrency", "8"},           {"context-length", "120000"},
      {"kv-format-k", "fp8"},         {"kv-format-v", "fp8"},
      {"memory-utilization", "0.95"}, {"page", "960"},
      {"tensor-parallel", "2"},       {"ubatch", "4096"}};
  EXPECT_EQ(log.settings, settings);
  EXPECT_EQ(ModelWord(log, "path"), "Kimi-Linear-48B");
  EXPECT_TRUE(log.warnings.empty());
}

// vllm-project/vllm #21489, and the lines of DEBUG.
TEST(LogVllm, ReadsTheSuggestionAndTheProfile) {
  const EngineLog log = LogOf(
      "Free memory on device (177.66/178.36 GiB) on startup. Desired GPU memory utilization is "
      "(0.9, "
      "160.53 GiB). Actual usage is 8.58 GiB for weight, 9.96 GiB for peak activation, 0.07 GiB "
      "for "
      "non-torch memory, and 0.65 GiB for CUDAGraph memory. Replace gpu_memory_utilization config "
      "with `--kv-cache-memory=151519866880` to fit into requested memory, or "
      "`--kv-cache-memory=169914000000` to fully utilize gpu memory. Current kv cache memory in "
      "use "
      "is 152000000000 bytes.\n");
  EXPECT_EQ(Gib(log, "free_before_bytes"), "177.66±0.005");
  EXPECT_EQ(Gib(log, "total_bytes"), "178.36±0.005");
  EXPECT_EQ(Gib(log, "requested_bytes"), "160.53±0.005");
  EXPECT_EQ(Gib(log, "weights_bytes"), "8.58±0.005");
  EXPECT_EQ(Gib(log, "activation_bytes"), "9.96±0.005");
  EXPECT_EQ(Gib(log, "non_torch_bytes"), "0.07±0.005");
  EXPECT_EQ(Plain(log, "suggested_bytes"), 151519866880);
  EXPECT_EQ(Plain(log, "kv_bytes"), 152000000000);
  EXPECT_EQ(SettingOf(log, "memory-utilization"), "0.9");
  const EngineLog profile = LogOf(
      "DEBUG Memory profiling takes 17.96 seconds. Total non KV cache memory: 17.12GiB; torch peak "
      "memory increase: 1.89GiB; non-torch forward increase memory: 0.25GiB; weights memory: "
      "14.99GiB.\n");
  EXPECT_EQ(Gib(profile, "non_kv_bytes"), "17.12±0.005");
  EXPECT_EQ(Gib(profile, "activation_bytes"), "1.89±0.005");
  EXPECT_EQ(Gib(profile, "non_torch_bytes"), "0.25±0.005");
  EXPECT_EQ(Gib(profile, "weights_bytes"), "14.99±0.005");
}

// vllm-project/vllm #10909: two workers that do not say which they are.
TEST(LogVllm, ReadsTheProfileOfDecember2024) {
  const EngineLog log = LogOf(
      "INFO 12-13 02:09:14 model_runner.py:1094] Loading model weights took 18.4902 GB\n"
      "(VllmWorkerProcess pid=1587462) INFO 12-13 02:10:28 worker.py:237] Memory profiling "
      "results: "
      "duration=71.88 seconds, total_gpu_memory=79.15GiB, initial_memory_usage=19.68GiB, "
      "peak_torch_memory=34.32GiB, memory_usage_post_profile=35.32GiB, non_torch_memory=1.96GiB, "
      "kv_cache_size=34.96GiB, gpu_memory_utilization=0.90.\n"
      "INFO 12-13 02:10:28 worker.py:237] Memory profiling results: duration=72.36 seconds, "
      "total_gpu_memory=79.15GiB, initial_memory_usage=19.68GiB, peak_torch_memory=34.50GiB, "
      "memory_usage_post_profile=35.32GiB, non_torch_memory=1.96GiB, kv_cache_size=34.78GiB, "
      "gpu_memory_utilization=0.90.\n"
      "INFO 12-13 02:10:29 distributed_gpu_executor.py:58] # GPU blocks: 189945, # CPU blocks: "
      "21845\n");
  EXPECT_EQ(Gib(log, "weights_bytes"), "18.4902±5e-05");
  EXPECT_EQ(Gib(log, "total_bytes"), "79.15±0.005");
  EXPECT_EQ(Gib(log, "peak_torch_bytes"), "34.32±0.005");
  EXPECT_EQ(Gib(log, "non_torch_bytes"), "1.96±0.005");
  EXPECT_EQ(Gib(log, "available_bytes"), "34.96±0.005");
  EXPECT_EQ(Plain(log, "blocks"), 189945);
  EXPECT_EQ(Plain(log, "cpu_blocks"), 21845);
  EXPECT_EQ(SettingOf(log, "memory-utilization"), "0.90");
  EXPECT_EQ(log.warnings, std::vector<std::string>{
                              "line 3: a figure is printed again with another value; of those that "
                              "come twice, the first count"});
}

// gpustack/runner #251 and aivrar/vllm-windows-build #4.
TEST(LogVllm, ReadsGraphsMeasuredAndEstimated) {
  const EngineLog log = LogOf(
      "(Worker_TP1 pid=448) INFO 08-14 14:07:22 [gpu_model_runner.py:6806] Estimated CUDA graph "
      "memory: 0.36 GiB total\n"
      "(Worker_TP0 pid=447) INFO 08-14 14:07:22 [gpu_worker.py:578] CUDA graph memory profiling is "
      "enabled (default since v0.21.0). The current --gpu-memory-utilization=0.8200 is equivalent "
      "to "
      "--gpu-memory-utilization=0.8048 without CUDA graph memory profiling.\n"
      "INFO 05-26 21:34:14 [gpu_worker.py:621] CUDA graph pool memory: 0.11 GiB (actual), 0.14 GiB "
      "(estimated), difference: 0.03 GiB (25.0%).\n");
  EXPECT_EQ(Gib(log, "graph_estimate_bytes", "TP1"), "0.36±0.005");
  EXPECT_EQ(Gib(log, "graph_bytes", ""), "0.11±0.005");
  EXPECT_EQ(Gib(log, "graph_estimate_bytes", ""), "0.14±0.005");
  EXPECT_EQ(SettingOf(log, "memory-utilization"), "none");
}

// RedHatAI/Qwen3.6-35B-A3B-NVFP4 on vLLM 0.20, in a container that puts its own times in front.
TEST(LogVllm, ReadsLinesBehindTheTimesOfAContainer) {
  const EngineLog log = LogOf(
      "2026-05-01 22:45:03.814 | (EngineCore pid=187) INFO 05-01 20:45:03 [core.py:109] "
      "Initializing "
      "a V1 LLM engine (v0.20.0) with config: model='RedHatAI/Qwen3.6-35B-A3B-NVFP4', "
      "dtype=torch.bfloat16, max_seq_len=65536, tensor_parallel_size=1, "
      "quantization=compressed-tensors, quantization_config=None, kv_cache_dtype=fp8_e4m3, "
      "served_model_name=x\n"
      "2026-05-01 22:45:21.853 | (EngineCore pid=187) INFO 05-01 20:45:21 [weight_utils.py:904] "
      "Filesystem type for checkpoints: EXT4. Checkpoint size: 23.32 GiB. Available RAM: 56.47 "
      "GiB.\n"
      "2026-05-01 22:45:53.672 | (EngineCore pid=187) INFO 05-01 20:45:53 "
      "[gpu_model_runner.py:4879] "
      "Model loading took 21.86 GiB memory and 33.868409 seconds\n"
      "2026-05-01 22:47:46.772 | (EngineCore pid=187) INFO 05-01 20:47:46 [gpu_worker.py:440] "
      "Available KV cache memory: 2.95 GiB\n");
  EXPECT_EQ(log.version, "0.20.0");
  EXPECT_EQ(Gib(log, "file_bytes", ""), "23.32±0.005");
  EXPECT_EQ(Gib(log, "weights_bytes", ""), "21.86±0.005");
  EXPECT_EQ(Gib(log, "available_bytes", ""), "2.95±0.005");
  EXPECT_EQ(SettingOf(log, "weights-format"), "compressed-tensors");
  EXPECT_EQ(SettingOf(log, "kv-format-v"), "fp8_e4m3");
  EXPECT_TRUE(log.warnings.empty());
}

}  // namespace
}  // namespace fourpiles
