#include "plan/llamacpp_compute.h"

#include <string>

#include <gtest/gtest.h>

namespace fourpiles {
namespace {

// Public logs, "compute buffer size", MiB. Exact where nothing else is said.
TEST(LlamacppCompute, IsWhatLogsSay) {
  struct Log {
    const char* model;
    ComputeRequest request;
    double mib;
    double band = 0.0001;
  };
  const Log kLogs[] = {
      {"GLM-Z1-32B on a CPU", {.cells = 5120, .hidden_size = 6144, .vocab_size = 151552}, 308},
      {"GLM-Z1-32B on CUDA",
       {.cells = 32768, .hidden_size = 6144, .vocab_size = 151552, .on_gpu = true},
       353,
       0.005},
      {"Mistral-7B without flash attention",
       {.micro_batch = 256,
        .cells = 8192,
        .hidden_size = 4096,
        .heads = 32,
        .query_width = 4096,
        .flash_attention = false},
       280},
      {"Pythia-2.8B, with fused queries",
       {.cells = 2048,
        .hidden_size = 2560,
        .vocab_size = 50304,
        .heads = 32,
        .query_width = 2560,
        .fused_width = 3 * 2560,
        .flash_attention = false,
        .on_gpu = true},
       162},
      {"Qwen3-30B-A3B, with queries wider than the residual",
       {.cells = 16384,
        .hidden_size = 2048,
        .vocab_size = 151936,
        .heads = 32,
        .query_width = 4096,
        .flash_attention = false,
        .on_gpu = true},
       1080},
      {"Gemma-3-27B, with two masks",
       {.cells = 131072,
        .hidden_size = 5376,
        .vocab_size = 262208,
        .heads = 32,
        .query_width = 4096,
        .flash_attention = false,
        .window_mask = true},
       8743.51,
       0.0005},
      {"Command-R over two GPUs",
       {.cells = 4096,
        .hidden_size = 8192,
        .vocab_size = 256000,
        .heads = 64,
        .query_width = 8192,
        .flash_attention = false,
        .on_gpu = true,
        .pipeline_copies = 4},
       672.01},
      {"Qwen3-235B with experts on the host",
       {.cells = 32768,
        .hidden_size = 4096,
        .vocab_size = 151936,
        .on_gpu = true,
        .experts_on_host = true,
        .expert_bytes = std::int64_t{816} << 20,
        .experts_per_token = 8,
        .expert_width = 1536},
       1024,
       0.05},
  };
  for (const Log& log : kLogs) {
    const Checked bytes = ComputeBufferBytes(log.request);
    ASSERT_TRUE(bytes.ok()) << log.model;
    EXPECT_NEAR(static_cast<double>(bytes.value()) / 1048576, log.mib, log.mib * log.band)
        << log.model;
  }
}

}  // namespace
}  // namespace fourpiles
