#include "plan/tensorrt_llm.h"

#include "plan/paged_cache.h"

namespace fourpiles {

Checked TensorrtLlmBlocks(const TensorrtLlmPool& pool) {
  return DivideRoundingDown(ShareOf(pool.free_bytes, pool.free_fraction),
                            pool.token_bytes * pool.block_tokens);
}

Checked TensorrtLlmTokens(const TensorrtLlmPool& pool) {
  return TensorrtLlmBlocks(pool) * pool.block_tokens;
}

}  // namespace fourpiles
