// TensorRT-LLM on one kind of rank: plan/tensorrt_llm.h has its rule.

#include <algorithm>

#include <fmt/format.h>

#include "base/try.h"
#include "plan/cache.h"
#include "plan/paged_cache.h"
#include "plan/serving_rank.h"
#include "plan/tensorrt_llm.h"

namespace fourpiles {
namespace {

constexpr std::int64_t kStepTokens = 8192;  // llm_args.py, max_num_tokens

// Whole blocks of every request. A window keeps its last tokens, in whole blocks.
Result<Resident> RequestsOf(std::span<const Cache> caches, const Job& job, RequestLoad load) {
  const std::int64_t block = job.serving.engine->page_tokens;
  load.tokens = OrLargest(DivideRoundingUp(Checked(load.tokens), block) * block);
  return CacheStorages(caches, CacheFormatsOf(job.serving), load);
}

// What the engine leaves of what is free once it is loaded.
Bytes FreeBytes(const ServingRank& rank, const Job& job) {
  return job.device->memory - ExpectedOf(rank.loaded);
}

CachePool PoolOf(const ServingRank& rank, const Job& job, Bytes free) {
  const Checked token_bytes = CacheBytesPerToken(rank.caches, CacheFormatsOf(job.serving));
  const TensorrtLlmPool pool = {.free_bytes = std::max<std::int64_t>(0, free.value()),
                                .free_fraction = job.serving.memory_utilization,
                                .token_bytes = token_bytes,
                                .block_tokens = job.serving.engine->page_tokens};
  const bool grows = token_bytes.ok() && token_bytes.value() > 0;
  return {.bytes = Bytes(OrLargest(ShareOf(pool.free_bytes, pool.free_fraction))),
          .blocks = grows ? OrLargest(TensorrtLlmBlocks(pool)) : 0,
          .block_tokens = pool.block_tokens,
          .tokens = grows ? OrLargest(TensorrtLlmTokens(pool)) : 0};
}

std::vector<EngineFigure> FiguresOf(const ServingRank& rank) {
  return {
      {.id = "kv_bytes", .value = static_cast<double>(rank.pool->bytes.value()), .unit = "bytes"},
      {.id = "blocks", .value = static_cast<double>(rank.pool->blocks), .unit = "blocks"},
      {.id = "cache_tokens", .value = static_cast<double>(rank.pool->tokens), .unit = "tokens"}};
}

}  // namespace

Result<ServingPlan> PlanTensorrtLlm(const Job& job) {
  ServingPlan plan;
  TRY(plan.ranks, RanksOf(job));
  for (ServingRank& rank : plan.ranks) {
    const std::int64_t tokens = job.serving.micro_batch.value_or(kStepTokens);
    const Checked layer = StorageBytes(Checked(1), *CacheFormatsOf(job.serving).convolution) *
                          tokens * LargestLayerElements(*rank.network);
    AddBand(rank.loaded, Pile::kWorkspace, Times(layer, job, "layer"),
            {.what = "values of the largest layer in the largest step",
             .formula = fmt::format("{} tokens × what a block's projections put out", tokens),
             .source = "data/engines.json"});
    AddTerm(rank.loaded, job, "cuda_context");
    rank.requests = [caches = rank.caches, &job](const RequestLoad& load) {
      return RequestsOf(caches, job, load);
    };
    if (job.device) {
      const Bytes free = FreeBytes(rank, job);
      rank.pool = PoolOf(rank, job, free);
      rank.figures = [](const ServingRank& of, const RequestLoad&) { return FiguresOf(of); };
      AddLeftFree(rank.loaded, free - rank.pool->bytes,
                  fmt::format("free after the load × (1 − {})", job.serving.memory_utilization));
    }
  }
  if (EncoderTokens(job.model.network.caches) > 0) {
    plan.unknowns.emplace_back("the share of the pool that is set apart for cross attention");
  }
  return plan;
}

}  // namespace fourpiles
