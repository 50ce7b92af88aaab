// vLLM on one kind of rank: plan/vllm.h has its rules, data/engines.json what was measured.

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "base/try.h"
#include "plan/cache.h"
#include "plan/paged_cache.h"
#include "plan/serving_rank.h"
#include "plan/vllm.h"

namespace fourpiles {
namespace {

// The older engine takes a whole context in one step, in chunks of 512 from 32,768 on
// (vllm/config.py, SchedulerConfig; vllm/engine/arg_utils.py, create_engine_config, of 0.6).
std::int64_t StepTokensBeforeV1(std::int64_t context_length) {
  constexpr std::int64_t kLongContext = 32768;
  constexpr std::int64_t kChunk = 512;
  return context_length > kLongContext ? kChunk : std::max<std::int64_t>(2048, context_length);
}

// Requests and tokens that the profiling step is made of, where nothing was set
// (vllm/engine/arg_utils.py, get_batch_defaults: the API server, by the device's memory).
struct StepSize {
  std::int64_t tokens = 2048;
  std::int64_t requests = 256;
};
StepSize StepSizeOf(const Job& job) {
  StepSize size;
  const bool a100 = job.device && job.device->names.id.find("a100") != std::string::npos;
  if (job.device && job.device->memory >= Bytes(std::int64_t{70} << 30) && !a100) {
    size = {.tokens = 8192, .requests = 1024};
  }
  if (job.serving.version.before_v1) {
    size = {.tokens = StepTokensBeforeV1(job.serving.context_length), .requests = 256};
  }
  size.tokens = job.serving.micro_batch.value_or(size.tokens);
  size.requests = std::min(job.serving.max_num_seqs.value_or(size.requests), size.tokens);
  return size;
}

// Layers that share block tables: alike in window and bytes of a token, or alike in their state.
struct LayerKind {
  std::int64_t layers = 0;
  std::int64_t token_bytes = 0;  // of one layer; 0: a state
  std::int64_t window = 0;       // 0: none
  std::int64_t state_bytes = 0;
};

// An indexer's keys are 8-bit, with a float32 scale for each 128 (vllm, DeepseekV32IndexerCache).
std::int64_t IndexBytes(std::int64_t elements) {
  return elements + (elements + 127) / 128 * 4;
}

// The latent of sparse attention in 8 bits: 512 codes, four float32 scales and the rotary part in
// 16 bits (vllm, "fp8_ds_mla": 656 bytes).
std::int64_t SparseLatentBytes(const Cache& cache, const CacheFormats& formats) {
  const std::int64_t latent = cache.key_elements_per_token - cache.rotary_elements;
  const bool quantised = formats.key->block_bits == 8;
  return quantised ? latent + latent / 128 * 4 + cache.rotary_elements * 2
                   : OrLargest(StorageBytes(cache.key_elements_per_token, *formats.key));
}

std::int64_t TokenBytesOf(const Cache& cache, const CacheFormats& formats) {
  if (cache.index_elements_per_token > 0 && cache.value_elements_per_token == 0) {
    return SparseLatentBytes(cache, formats) + IndexBytes(cache.index_elements_per_token);
  }
  return OrLargest(StorageBytes(cache.key_elements_per_token, *formats.key) +
                   StorageBytes(cache.value_elements_per_token, *formats.value));
}

std::vector<LayerKind> KindsOf(const std::vector<Cache>& caches, const CacheFormats& formats) {
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, LayerKind> kinds;
  const auto add = [&](LayerKind kind) {
    LayerKind& same = kinds[{kind.state_bytes, kind.window, kind.token_bytes}];
    kind.layers = same.layers + 1;
    same = kind;
  };
  for (const Cache& cache : caches) {
    if (const std::int64_t bytes = TokenBytesOf(cache, formats); bytes > 0) {
      add({.token_bytes = bytes, .window = cache.window.value_or(0)});
    }
    PagedState state = PagedStateOf(cache, 1);
    state.convolution_bits = formats.convolution->block_bits;
    if (const std::int64_t bytes = OrLargest(StateBytes(state)); bytes > 0) {
      add({.state_bytes = bytes});
    }
  }
  std::vector<LayerKind> list;
  list.reserve(kinds.size());
  for (const auto& [key, kind] : kinds) {
    list.push_back(kind);
  }
  return list;
}

// How the kinds share one pool: pages of one size, groups of so many layers.
struct Paging {
  std::vector<LayerKind> kinds = {};
  std::int64_t block_tokens = 16;  // of the attention layers with the most bytes a token
  Checked page = 0;                // of one layer
  VllmGroups groups = {};
  std::int64_t step_tokens = 0;     // of one scheduled step: what windows keep besides
  std::int64_t encoder_tokens = 0;  // of a request, in blocks of their own

  std::int64_t BlockTokens(const LayerKind& kind) const {
    const std::int64_t tokens = OrLargest(page) / std::max<std::int64_t>(1, kind.token_bytes);
    return std::max<std::int64_t>(1, tokens);
  }
  std::int64_t GroupsOf(const LayerKind& kind) const {
    return (kind.layers + groups.group_size - 1) / groups.group_size;
  }
};

Paging PagingOf(const std::vector<Cache>& caches, const Job& job) {
  Paging paging = {.kinds = KindsOf(caches, CacheFormatsOf(job.serving)),
                   .block_tokens = job.serving.engine->page_tokens,
                   .step_tokens = StepSizeOf(job).tokens,
                   .encoder_tokens = EncoderTokens(caches)};
  std::vector<std::int64_t> counts;
  counts.reserve(paging.kinds.size());
  std::int64_t token_bytes = 0;
  std::int64_t state_bytes = 0;
  for (const LayerKind& kind : paging.kinds) {
    counts.push_back(kind.layers);
    token_bytes = std::max(token_bytes, kind.token_bytes);
    state_bytes = std::max(state_bytes, kind.state_bytes);
  }
  if (counts.empty()) {
    return paging;
  }
  paging.groups =
      counts.size() == 1 ? VllmGroups{.group_size = counts[0], .groups = 1} : VllmGroupsOf(counts);
  if (state_bytes > 0 && token_bytes > 0) {
    constexpr std::int64_t kLatentKernel = 64;
    const bool latent = std::ranges::any_of(caches, [](const Cache& cache) {
      return cache.key_elements_per_token > 0 && cache.value_elements_per_token == 0;
    });
    const std::int64_t kernel = latent ? kLatentKernel : paging.block_tokens;
    const Checked block = VllmAttentionBlock(state_bytes, token_bytes, kernel);
    paging.block_tokens = std::max(paging.block_tokens, OrLargest(block));
  }
  paging.page = token_bytes > 0 ? Checked(token_bytes) * paging.block_tokens : state_bytes;
  return paging;
}

// Of one request: attention a block for each so many tokens; a window what it sees and one step
// can add, and a block more as it does not begin on one (SlidingWindowSpec.max_memory_usage_bytes);
// a state one. Cross attention is the older engine's alone, whose blocks have a page of every
// layer: those of the encoder's tokens stand in a table of their own (core/block_manager.py,
// cross_block_tables).
Checked BlocksOfRequest(const Paging& paging, std::int64_t tokens) {
  Checked blocks = 0;
  for (const LayerKind& kind : paging.kinds) {
    Checked of_kind = 1;
    if (kind.token_bytes > 0) {
      const std::int64_t block = paging.BlockTokens(kind);
      const Checked seen = Checked(kind.window) - 1 + paging.step_tokens;
      of_kind = kind.window > 0
                    ? DivideRoundingUp(Checked(std::min(OrLargest(seen), tokens)), block) + 1
                    : DivideRoundingUp(Checked(tokens), block) +
                          DivideRoundingUp(Checked(paging.encoder_tokens), block);
    }
    blocks = blocks + of_kind * paging.GroupsOf(kind);
  }
  return blocks;
}

Checked BlockBytes(const Paging& paging) {
  return paging.page * paging.groups.group_size;
}

Result<Resident> RequestsOf(const Paging& paging, const Job& job, const RequestLoad& load) {
  Resident resident;
  if (paging.kinds.empty()) {
    return resident;
  }
  const Checked each = BlocksOfRequest(paging, load.tokens);
  const Checked bytes = each * load.requests * BlockBytes(paging);
  if (!bytes.ok()) {
    return CacheTooLarge();
  }
  const StoredType& format = *job.serving.key_format;
  const Checked elements = bytes * 8 * format.block_elements;
  resident.Add({.pile = Pile::kKvCache,
                .format = format.name,
                .elements = Elements(OrLargest(elements) / format.block_bits),
                .bytes = Exactly(Bytes(bytes.value()))},
               {.what = fmt::format("blocks of {} tokens", paging.block_tokens),
                .formula = fmt::format("{} requests × {} blocks × {} layers × {} bytes a page",
                                       load.requests, each.value(), paging.groups.group_size,
                                       paging.page.value()),
                .source = "vllm/v1/core/kv_cache_utils.py"});
  return resident;
}

// The largest of a step: what a layer's projections put out, or on the last stage the sampler's
// logits.
void AddStep(ServingRank& rank, const Job& job) {
  const StepSize step = StepSizeOf(job);
  const Checked layer = StorageBytes(Checked(1), *CacheFormatsOf(job.serving).convolution) *
                        step.tokens * LargestLayerElements(*rank.network);
  const Checked logits =
      Checked(step.requests) * (rank.ends ? rank.network->vocab_size.value_or(0) : 0) * 4;
  const Band of_layer = Times(layer, job, "layer");
  const Band of_sampler = Times(logits, job, "sampler");
  const bool sampler = of_sampler.expected > of_layer.expected;
  AddBand(rank.loaded, Pile::kWorkspace,
          {std::max(of_layer.low, of_sampler.low), std::max(of_layer.expected, of_sampler.expected),
           std::max(of_layer.high, of_sampler.high)},
          {.what = sampler ? "peak of the profiling step: the sampler's logits"
                           : "peak of the profiling step: values of the largest layer",
           .formula = sampler ? fmt::format("{} requests × vocabulary × 4 bytes × {}",
                                            step.requests, ExpectedRatio(job, "sampler"))
                              : fmt::format("{} tokens × what a block's projections put out × {}",
                                            step.tokens, ExpectedRatio(job, "layer")),
           .source = "vllm/v1/worker/gpu_model_runner.py, profile_run; data/engines.json"});
}

Bytes RequestedBytes(const Job& job) {
  return Bytes(
      OrLargest(VllmRequestedBytes(job.device->memory.value(), job.serving.memory_utilization)));
}

// What is left for the pool.
Bytes AvailableBytes(const ServingRank& rank, const Job& job) {
  const Checked available =
      VllmAvailableBytes(RequestedBytes(job).value(),
                         {.weights = ExpectedOf(rank.loaded, Pile::kWeights).value(),
                          .peak_activation = ExpectedOf(rank.loaded, Pile::kWorkspace).value(),
                          .non_torch = ExpectedOf(rank.loaded, Pile::kOverhead).value()});
  return Bytes(OrLargest(available));
}

CachePool PoolOf(const Paging& paging, Bytes available) {
  CachePool pool = {.bytes = std::max(Bytes(0), available), .block_tokens = paging.block_tokens};
  if (paging.kinds.empty()) {
    return pool;
  }
  const VllmPool vllm = {.available = pool.bytes.value(),
                         .token_bytes = paging.page,  // whole pages
                         .block_tokens = 1,
                         .group_size = paging.groups.group_size,
                         .groups = paging.groups.groups};
  pool.blocks = OrLargest(VllmBlocks(vllm));
  pool.tokens = OrLargest(VllmTokens(vllm) * pool.block_tokens);
  return pool;
}

// Memory that the engine does not take, less the graphs, which are captured in it.
void AddOutside(ServingRank& rank, const Job& job, Bytes requested) {
  Resident graphs;
  AddTerm(graphs, job, "cuda_graphs");
  const Bytes left = job.device->memory - requested - ExpectedOf(graphs);
  rank.loaded.Append(std::move(graphs));
  AddLeftFree(rank.loaded, left,
              fmt::format("memory × (1 − {}) − graphs", job.serving.memory_utilization));
}

// The lines of the pool.
std::vector<EngineFigure> PoolFigures(const Paging& paging, const CachePool& pool, const Job& job,
                                      const RequestLoad& load) {
  const EngineVersion& version = job.serving.version;
  const double concurrency = VllmConcurrency(pool.blocks, BlocksOfRequest(paging, load.tokens));
  const std::int64_t tokens = version.capacity_in_tokens
                                  ? pool.tokens
                                  : OrLargest(VllmDerivedTokens(concurrency, load.tokens));
  std::vector<EngineFigure> figures = {
      {.id = "available_bytes", .value = static_cast<double>(pool.bytes.value()), .unit = "bytes"},
      {.id = "blocks", .value = static_cast<double>(pool.blocks), .unit = "blocks"},
      {.id = "cache_tokens", .value = static_cast<double>(tokens), .unit = "tokens"},
      {.id = "max_concurrency", .value = concurrency, .unit = "x"}};
  if (version.before_v1) {
    const Checked blocks = VllmCpuBlocks(job.serving.engine->swap_bytes, BlockBytes(paging));
    figures.push_back(
        {.id = "cpu_blocks", .value = static_cast<double>(OrLargest(blocks)), .unit = "blocks"});
  }
  return figures;
}

std::vector<EngineFigure> FiguresOf(const ServingRank& rank, const Paging& paging, const Job& job,
                                    const RequestLoad& load) {
  const auto bytes = [](std::string id, Bytes value) {
    return EngineFigure{
        .id = std::move(id), .value = static_cast<double>(value.value()), .unit = "bytes"};
  };
  std::vector<EngineFigure> figures = {
      bytes("weights_bytes", ExpectedOf(rank.loaded, Pile::kWeights)),
      bytes("activation_bytes", ExpectedOf(rank.loaded, Pile::kWorkspace))};
  if (job.device) {
    figures.push_back(bytes("requested_bytes", RequestedBytes(job)));
  }
  if (rank.pool && !paging.kinds.empty()) {
    std::ranges::move(PoolFigures(paging, *rank.pool, job, load), std::back_inserter(figures));
  }
  return figures;
}

}  // namespace

Result<ServingPlan> PlanVllm(const Job& job) {
  ServingPlan plan;
  TRY(plan.ranks, RanksOf(job));
  for (ServingRank& rank : plan.ranks) {
    AddRepacking(rank.loaded, job);
    AddStep(rank, job);
    AddTerm(rank.loaded, job, "non_torch");
    const Paging paging = PagingOf(rank.caches, job);
    rank.fill = [paging](Bytes available) { return PoolOf(paging, available); };
    rank.figures = [paging, &job](const ServingRank& of, const RequestLoad& load) {
      return FiguresOf(of, paging, job, load);
    };
    if (job.device) {
      rank.pool = rank.fill(AvailableBytes(rank, job));
      AddOutside(rank, job, RequestedBytes(job));
    }
    rank.requests = [paging, &job](const RequestLoad& load) {
      return RequestsOf(paging, job, load);
    };
  }
  plan.unknowns.emplace_back("image encoders in the profiling step");
  return plan;
}

}  // namespace fourpiles
