#pragma once

// What vLLM allocates (V1; the older engine where it says so). It takes a share of the device,
// loads the weights, runs one step of the largest shape, and makes the rest a pool of blocks:
//
//   available = total × utilisation − weights − peak of that step − what is not PyTorch's
//   blocks    = available ÷ bytes of a page ÷ layers that take a page of each block
//
// The step's peak, what is not PyTorch's, and the CUDA graphs have no closed form:
// data/engines.json has what was measured. Sources: vllm/worker/gpu_worker.py,
// determine_available_memory; vllm/v1/core/kv_cache_utils.py.

#include <cstdint>
#include <span>

#include "base/checked.h"
#include "plan/paged_cache.h"

namespace fourpiles {

struct VllmUse {
  Checked weights = 0;
  Checked peak_activation = 0;
  Checked non_torch = 0;
};

// total × utilisation (gpu_worker.py, request_memory). 79.22 GiB × 0.9 = 71.30 GiB.
Checked VllmRequestedBytes(Checked total, double memory_utilization);

// Of one rank, for the cache; negative where the model does not fit. CUDA graphs are not taken off.
// 71.30 − 14.96 − 1.26 − 1.79 = 53.29 GiB (vllm#10511).
Checked VllmAvailableBytes(Checked requested, const VllmUse& use);

// What vLLM suggests for --kv-cache-memory: what is available, less the graphs, less 150 MiB
// (gpu_worker.py, compile_or_warm_up_model).
Checked VllmSuggestedCacheBytes(Checked available, Checked cuda_graphs);

// How the layers share the blocks. Models whose layers are all alike have one group of all layers.
struct VllmGroups {
  std::int64_t group_size = 0;      // layers that take a page of each block
  std::int64_t groups = 0;          // block tables of a request
  std::int64_t padding_layers = 0;  // pages that no layer uses
};
// `counts`: layers of each kind of cache. The least count, or the largest where it is less than one
// and a half times the least (_get_kv_cache_groups_uniform_page_size). Kimi-Linear, 7 and 20:
// groups of 7, 1 + 3 of them, 1 padding layer. All zeros for counts that are none or not positive.
VllmGroups VllmGroupsOf(std::span<const std::int64_t> counts);

// The pool of one rank; an engine has the least of its ranks (get_kv_cache_configs).
struct VllmPool {
  Checked available = 0;
  Checked token_bytes = 0;  // of one token in one layer
  std::int64_t block_tokens = 16;
  std::int64_t group_size = 1;  // all layers, without groups
  std::int64_t groups = 1;
};
// available // page // group_size (get_num_blocks). Llama-3.1-8B with 3.81 GiB: 1,950 blocks of
// 2 MiB; the log, whose 3.81 is rounded, says 1,952.
Checked VllmBlocks(const VllmPool& pool);
// blocks // groups × block_tokens: what versions until 0.20 call the size of the cache.
Checked VllmTokens(const VllmPool& pool);

// Blocks in host memory of the older engine: swap space // bytes of a block (worker/worker.py,
// determine_num_available_blocks). Llama-2-13B, 4 GiB: 327.
Checked VllmCpuBlocks(Checked swap_bytes, Checked block_bytes);

// Tokens of an attention block whose page is no smaller than the state's page: the state's page in
// tokens, rounded up to a multiple of what the kernel takes, 16, or 64 for latent attention in
// Triton (model_executor/models/config.py, HybridAttentionMambaModelConfig). Kimi-Linear:
// 1,085,440 / 1,152 → 960.
Checked VllmAttentionBlock(Checked state_page, Checked token_bytes, std::int64_t kernel_tokens);

// Requests of full length at once, of so many blocks each, summed over the groups
// (get_max_concurrency_for_kv_cache_config).
double VllmConcurrency(Checked blocks, Checked blocks_of_request);

// The concurrency of the log in versions with one group: tokens ÷ length, not rounded to blocks.
double VllmConcurrencyOfTokens(Checked tokens, std::int64_t length);

// "GPU KV cache size" since about 0.21: int(concurrency × length). It changes with the length asked
// for, and is no capacity.
Checked VllmDerivedTokens(double concurrency, std::int64_t length);

}  // namespace fourpiles
