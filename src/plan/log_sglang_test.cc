// The wording of real logs, from the threads named.

#include <gtest/gtest.h>

#include "plan/log_testing.h"

namespace fourpiles {
namespace {

// sgl-project/sglang #10571 (the arguments), #27537, #12978, #11830.
TEST(LogSglang, ReadsAWholeStart) {
  const EngineLog log = LogOf(
      "[2025-10-02 21:34:32] server_args=ServerArgs(model_path='/home/admin/DeepSeek-R1', "
      "tokenizer_path='/home/admin/DeepSeek-R1', context_length=65535, dtype='auto', "
      "quantization='fp8', quantization_param_path=None, kv_cache_dtype='auto', "
      "mem_fraction_static=0.92, max_running_requests=32, max_queued_requests=None, "
      "max_total_tokens=None, chunked_prefill_size=16384, max_prefill_tokens=16384, page_size=64, "
      "hybrid_kvcache_ratio=None, swa_full_tokens_ratio=0.8, device='cuda', tp_size=8, pp_size=1)\n"
      "[2025-08-13 14:47:38 TP0] Load weight begin. avail mem=175.34 GB\n"
      "[2025-08-13 14:34:24 TP0] Load weight end. type=DeepseekV3ForCausalLM, "
      "dtype=torch.bfloat16, "
      "avail mem=80.84 GB, mem usage=94.50 GB.\n"
      "[2026-06-08 07:20:53 TP0] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 1106304, K "
      "size: 25.32 GB, V size: 25.32 GB\n"
      "[2026-06-08 07:20:53 TP0] Memory pool end. avail mem=12.05 GB\n"
      "[2025-11-10 19:59:09 TP0] Capture cuda graph end. Time elapsed: 11.39 s. mem usage=1.00 GB. "
      "avail mem=11.17 GB.\n"
      "[2025-11-30 11:18:05] max_total_num_tokens=1106304, chunked_prefill_size=8192, "
      "max_prefill_tokens=16384, max_running_requests=4096, context_len=128000, "
      "available_gpu_mem=37.06 GB\n");
  EXPECT_EQ(log.engine, LogEngine::kSglang);
  EXPECT_EQ(Gib(log, "free_before_bytes", "TP0"), "175.34±0.005");
  EXPECT_EQ(Gib(log, "free_after_weights_bytes", "TP0"), "80.84±0.005");
  EXPECT_EQ(Gib(log, "weights_bytes", "TP0"), "94.5±0.005");
  EXPECT_EQ(Plain(log, "cache_tokens", "TP0"), 1106304);
  EXPECT_EQ(Gib(log, "kv_key_bytes", "TP0"), "25.32±0.005");
  EXPECT_EQ(Gib(log, "kv_value_bytes", "TP0"), "25.32±0.005");
  EXPECT_EQ(Gib(log, "free_after_pool_bytes", "TP0"), "12.05±0.005");
  EXPECT_EQ(Gib(log, "graph_bytes", "TP0"), "1±0.005");
  EXPECT_EQ(Plain(log, "cache_tokens", ""), 1106304);
  EXPECT_EQ(Plain(log, "max_running_requests", ""), 4096);
  EXPECT_EQ(Gib(log, "free_bytes", ""), "37.06±0.005");
  EXPECT_EQ(log.figures.size(), 11u);
  EXPECT_TRUE(log.warnings.empty());
  const std::map<std::string, std::string> settings = {{"concurrency", "32"},
                                                       {"context-length", "65535"},
                                                       {"dtype", "auto"},
                                                       {"kv-format-k", "bfloat16"},
                                                       {"kv-format-v", "bfloat16"},
                                                       {"memory-utilization", "0.92"},
                                                       {"page", "64"},
                                                       {"pipeline-parallel", "1"},
                                                       {"swa-full-tokens-ratio", "0.8"},
                                                       {"tensor-parallel", "8"},
                                                       {"ubatch", "16384"},
                                                       {"weights-format", "fp8"}};
  EXPECT_EQ(log.settings, settings);
  EXPECT_EQ(ModelWord(log, "path"), "DeepSeek-R1");
  EXPECT_EQ(ModelWord(log, "arch"), "DeepseekV3ForCausalLM");
}

// sgl-project/sglang #18039; the second pool's sizes are made up.
TEST(LogSglang, TellsThePoolOfWindowsFromTheOther) {
  const EngineLog log = LogOf(
      "[2026-01-31 13:50:39 TP2] Use sliding window memory pool. full_layer_tokens=375360, "
      "swa_layer_tokens=300288\n"
      "[2026-01-31 13:50:39 TP2] KV Cache is allocated. #tokens: 300288, K size: 8.38 GB, V size: "
      "5.59 GB\n"
      "[2026-01-31 13:50:39 TP2] KV Cache is allocated. #tokens: 375360, K size: 8.38 GB, V size: "
      "5.50 GB\n"
      "[2026-01-31 13:50:39 TP2] SWAKVPool mem usage: 27.85 GB, swa size: 300288, full size: "
      "375360\n");
  EXPECT_EQ(Gib(log, "swa_kv_key_bytes", "TP2"), "8.38±0.005");
  EXPECT_EQ(Gib(log, "swa_kv_value_bytes", "TP2"), "5.59±0.005");
  EXPECT_EQ(Gib(log, "kv_key_bytes", "TP2"), "8.38±0.005");
  EXPECT_EQ(Gib(log, "kv_value_bytes", "TP2"), "5.5±0.005");
  EXPECT_EQ(Gib(log, "kv_bytes", "TP2"), "27.85±0.005");
  EXPECT_EQ(Plain(log, "cache_tokens", "TP2"), 375360);
  EXPECT_EQ(Plain(log, "swa_tokens", "TP2"), 300288);
  EXPECT_EQ(Plain(log, "full_tokens", "TP2"), 375360);
  EXPECT_EQ(log.figures.size(), 8u);
}

TEST(LogSglang, ReadsStatesLatentPoolsAndOldRanks) {
  const EngineLog log = LogOf(
      "[gpu_id=1] Load weight end. type=Qwen2ForCausalLM, dtype=torch.bfloat16, avail mem=15.95 "
      "GB\n"
      "[2026-01-31 13:50:39 DP1 TP3] Mamba Cache is allocated. max_mamba_cache_size: 360, "
      "conv_state "
      "size: 0.99GB, ssm_state size: 50.77GB\n"
      "[2026-01-31 13:50:39 DP1 TP3] KV Cache is allocated. #tokens: 314304, KV size: 29.32 GB\n"
      "Capturing batches [20, 10]:  100%|##| 5/5\r[2026-01-31 13:50:39] Capture target decode CUDA "
      "graph end. elapsed=25.74 s, mem usage=2.66 "
      "GB, avail mem=24.45 GB.\n");
  EXPECT_EQ(Gib(log, "free_after_weights_bytes", "gpu_id=1"), "15.95±0.005");
  EXPECT_EQ(Gib(log, "recurrent_conv_bytes", "DP1 TP3"), "0.99±0.005");
  EXPECT_EQ(Gib(log, "recurrent_state_bytes", "DP1 TP3"), "50.77±0.005");
  EXPECT_EQ(Plain(log, "recurrent_cells", "DP1 TP3"), 360);
  EXPECT_EQ(Gib(log, "kv_bytes", "DP1 TP3"), "29.32±0.005");
  EXPECT_EQ(Gib(log, "graph_bytes", ""), "2.66±0.005");
}

}  // namespace
}  // namespace fourpiles
