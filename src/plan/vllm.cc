#include "plan/vllm.h"

#include <algorithm>

namespace fourpiles {

Checked VllmRequestedBytes(Checked total, double memory_utilization) {
  return ShareOf(total, memory_utilization);
}

Checked VllmAvailableBytes(Checked requested, const VllmUse& use) {
  return requested - use.weights - use.peak_activation - use.non_torch;
}

Checked VllmSuggestedCacheBytes(Checked available, Checked cuda_graphs) {
  constexpr std::int64_t kRedundancyBytes = std::int64_t{150} << 20;
  return available - cuda_graphs - kRedundancyBytes;
}

VllmGroups VllmGroupsOf(std::span<const std::int64_t> counts) {
  if (counts.empty() || std::ranges::min(counts) < 1) {
    return {};
  }
  const std::int64_t least = std::ranges::min(counts);
  const std::int64_t most = std::ranges::max(counts);
  VllmGroups groups = {.group_size = 2 * most < 3 * least ? most : least};
  std::int64_t layers = 0;
  for (const std::int64_t count : counts) {
    layers += count;
    groups.groups += (count + groups.group_size - 1) / groups.group_size;
  }
  groups.padding_layers = groups.groups * groups.group_size - layers;
  return groups;
}

Checked VllmBlocks(const VllmPool& pool) {
  const Checked page = pool.token_bytes * pool.block_tokens;
  return DivideRoundingDown(DivideRoundingDown(pool.available, page), pool.group_size);
}

Checked VllmTokens(const VllmPool& pool) {
  return DivideRoundingDown(VllmBlocks(pool), pool.groups) * pool.block_tokens;
}

Checked VllmCpuBlocks(Checked swap_bytes, Checked block_bytes) {
  return DivideRoundingDown(swap_bytes, block_bytes);
}

Checked VllmAttentionBlock(Checked state_page, Checked token_bytes, std::int64_t kernel_tokens) {
  return DivideRoundingUp(state_page, token_bytes * kernel_tokens) * kernel_tokens;
}

double VllmConcurrency(Checked blocks, Checked blocks_of_request) {
  if (!blocks.ok() || !blocks_of_request.ok() || blocks_of_request.value() < 1) {
    return 0;
  }
  return static_cast<double>(blocks.value()) / static_cast<double>(blocks_of_request.value());
}

double VllmConcurrencyOfTokens(Checked tokens, std::int64_t length) {
  if (!tokens.ok() || length < 1) {
    return 0;
  }
  return static_cast<double>(tokens.value()) / static_cast<double>(length);
}

Checked VllmDerivedTokens(double concurrency, std::int64_t length) {
  const double tokens = concurrency * static_cast<double>(length);
  if (!(tokens >= 0 && tokens <= static_cast<double>(kLargestAmount))) {
    return Checked(kLargestAmount) + 1;
  }
  return static_cast<std::int64_t>(tokens);
}

}  // namespace fourpiles
