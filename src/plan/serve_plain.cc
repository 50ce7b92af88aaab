// Serving without an engine: weights and caches, nothing padded; and transformers', which keeps
// its caches in the same way.

#include <algorithm>

#include <fmt/format.h>

#include "base/try.h"
#include "plan/cache.h"
#include "plan/serving_rank.h"

namespace fourpiles {
namespace {

std::function<Result<Resident>(const RequestLoad&)> PlainCaches(const ServingRank& rank,
                                                                const Job& job) {
  return [caches = rank.caches, &job](const RequestLoad& load) {
    return CacheStorages(caches, CacheFormatsOf(job.serving), load);
  };
}

// Latent attention keeps the keys and values of all heads: they are made of the latent before the
// cache is asked (transformers, models/deepseek_v3/modeling_deepseek_v3.py).
std::vector<Cache> WithFullHeads(std::vector<Cache> caches) {
  std::ranges::transform(caches, caches.begin(), FullHeads);
  return caches;
}

// torch.cat makes a layer's keys anew for each token, beside the old ones (transformers,
// cache_utils.py, DynamicLayer.update); keys and values come one after the other. Those of cross
// attention stay as they are.
Checked LargestCacheTensor(std::span<const Cache> caches, const CacheFormats& formats,
                           const RequestLoad& load) {
  Checked most = 0;
  for (const Cache& cache : caches) {
    const std::int64_t tokens = cache.encoder_tokens ? 0 : TokensHeld(cache, load.tokens);
    const Checked keys = StorageBytes(cache.key_elements_per_token, *formats.key);
    const Checked values = StorageBytes(cache.value_elements_per_token, *formats.value);
    const Checked larger = OrLargest(keys) > OrLargest(values) ? keys : values;
    const Checked bytes = larger * tokens * load.requests;
    most = OrLargest(bytes) > OrLargest(most) ? bytes : most;
  }
  return most;
}

// The prompt passes the layers in one piece, and the last token's logits are made in the format
// that is computed in, then in float32 (generation/utils.py, _sample).
Result<Resident> TransformersRequests(const Network& network, std::span<const Cache> caches,
                                      const Job& job, const RequestLoad& load) {
  const CacheFormats formats = CacheFormatsOf(job.serving);
  TRY(Resident resident, CacheStorages(caches, formats, load));
  const std::int64_t tokens = job.serving.micro_batch.value_or(load.tokens);
  const Checked layer = StorageBytes(Checked(1), *formats.convolution) * tokens * load.requests *
                        LargestLayerElements(network);
  AddBand(resident, Pile::kWorkspace, Times(layer, job, "layer"),
          {.what = "values of the largest layer, in the prefill",
           .formula = fmt::format("{} requests × {} tokens × what a block's projections put out",
                                  load.requests, tokens),
           .source = "shapes of the architecture; data/engines.json"});
  const Checked logits = Checked(load.requests) * network.vocab_size.value_or(0) * 4;
  const Checked copied = LargestCacheTensor(caches, formats, load);
  const Checked decode = logits + copied;
  if (!layer.ok() || !decode.ok()) {
    return CacheTooLarge();
  }
  if (decode.value() > layer.value()) {  // the prefill's values are gone by then
    AddBand(resident, Pile::kWorkspace, Exactly(Bytes(decode.value() - layer.value())),
            {.what = "a layer's cache copied by torch.cat, and logits, beyond the prefill",
             .formula = "the largest layer's keys, and requests × vocabulary × 4 bytes",
             .source = "transformers src/transformers/cache_utils.py"});
  }
  return resident;
}

}  // namespace

Result<ServingPlan> PlanPlain(const Job& job) {
  ServingPlan plan;
  TRY(plan.ranks, RanksOf(job));
  for (ServingRank& rank : plan.ranks) {
    rank.requests = PlainCaches(rank, job);
  }
  plan.unknowns.emplace_back(
      "working buffers of an engine, padding of its cache: --engine names one");
  return plan;
}

Result<ServingPlan> PlanTransformers(const Job& job) {
  ServingPlan plan;
  TRY(plan.ranks, RanksOf(job));
  for (ServingRank& rank : plan.ranks) {
    AddTerm(rank.loaded, job, "cuda_context");
    AddTerm(rank.loaded, job, "cublas_workspace");
    rank.requests = [network = rank.network, caches = WithFullHeads(rank.caches),
                     &job](const RequestLoad& load) {
      return TransformersRequests(*network, caches, job, load);
    };
  }
  return plan;
}

}  // namespace fourpiles
