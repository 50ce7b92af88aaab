// SGLang on one kind of rank: plan/sglang.h has its rules. Activations and graphs live in the share
// of the memory that the pool does not take.

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/try.h"
#include "plan/cache.h"
#include "plan/paged_cache.h"
#include "plan/serving_rank.h"
#include "plan/sglang.h"

namespace fourpiles {
namespace {

constexpr double kWindowRatio = 0.8;  // server_args.py, swa_full_tokens_ratio
constexpr double kStateRatio = 0.9;   // server_args.py, mamba_full_memory_ratio

// Bytes of one token in the layers with and without a window, and of one request's states.
struct Cells {
  std::int64_t full = 0;
  std::int64_t full_keys = 0;  // of it
  std::int64_t window = 0;
  std::int64_t window_keys = 0;  // of it
  std::int64_t page_tokens = 1;
  std::int64_t window_tokens = 0;  // the longest
  std::int64_t encoder_tokens =
      0;  // of a request, in slots of all layers (mllama.py, encoder_lens)
  std::int64_t state = 0;
};

// Indexer keys of sparse attention: 8 bits and a float32 scale for each 128 (memory_pool.py,
// NSATokenToKVPool).
Checked TokenBytesOf(const Cache& cache, const CacheFormats& formats) {
  const std::int64_t index = cache.index_elements_per_token;
  return StorageBytes(cache.key_elements_per_token, *formats.key) +
         StorageBytes(cache.value_elements_per_token, *formats.value) + index +
         (index + 127) / 128 * 4;
}

Cells CellsOf(const std::vector<Cache>& caches, const Job& job) {
  const CacheFormats formats = CacheFormatsOf(job.serving);
  Cells cells = {.page_tokens = job.serving.engine->page_tokens,
                 .encoder_tokens = EncoderTokens(caches)};
  const auto add = [](std::int64_t& sum, Checked bytes) { sum = OrLargest(bytes + sum); };
  for (const Cache& cache : caches) {
    add(cache.window ? cells.window : cells.full, TokenBytesOf(cache, formats));
    add(cache.window ? cells.window_keys : cells.full_keys,
        StorageBytes(cache.key_elements_per_token, *formats.key));
    cells.window_tokens = std::max(cells.window_tokens, cache.window.value_or(0));
    PagedState state = PagedStateOf(cache, 1);
    state.convolution_bits = formats.convolution->block_bits;
    add(cells.state, StateBytes(state));
  }
  if (cells.full == 0) {  // windows everywhere: one pool, as if there were none
    std::swap(cells.full, cells.window);
    std::swap(cells.full_keys, cells.window_keys);
  }
  return cells;
}

// Tokens of the pool of windows are a share of the others'.
Checked TokensBytes(const Cells& cells, Checked tokens) {
  const Checked window =
      cells.window > 0 ? SglangWindowTokens(tokens, kWindowRatio, cells.page_tokens) : Checked(0);
  return tokens * cells.full + window * cells.window;
}

// Tokens that the requests need: all of theirs in the full layers, and so many more that the share
// of the windows' pool holds what their windows do.
Checked TokensNeeded(const Cells& cells, const RequestLoad& load) {
  const Checked full = (Checked(load.tokens) + cells.encoder_tokens) * load.requests;
  if (cells.window == 0) {
    return full;
  }
  const Checked windows = Checked(std::min(load.tokens, cells.window_tokens)) * load.requests;
  const auto least =
      static_cast<std::int64_t>(std::ceil(static_cast<double>(OrLargest(windows)) / kWindowRatio));
  return Checked(std::max(OrLargest(full), std::min(least, kLargestAmount)));
}

// The pool is divided once: what tokens do not use of their share, states cannot have, nor they
// theirs.
void AddUnused(Resident& resident, Checked tokens, Checked states) {
  const auto of_tokens = static_cast<double>(tokens.value()) * (1 + kStateRatio);
  const auto of_states = static_cast<double>(states.value()) * (1 + 1 / kStateRatio);
  const double whole =
      std::min(std::max(of_tokens, of_states), static_cast<double>(kLargestAmount));
  const Bytes unused = Bytes(std::llround(whole)) - Bytes(tokens.value()) - Bytes(states.value());
  if (unused > Bytes(0)) {
    AddBand(resident, Pile::kOverhead, Exactly(unused),
            {.what = "share of the pool that only the other of tokens and states can use",
             .formula = fmt::format("tokens : states = 1 : {}", kStateRatio),
             .source = "sglang/srt/server_args.py, mamba_full_memory_ratio"});
  }
}

Result<Resident> RequestsOf(const Cells& cells, const Job& job, const RequestLoad& load) {
  Resident resident;
  const Checked tokens = TokensNeeded(cells, load);
  const Checked bytes = TokensBytes(cells, tokens);
  const Checked states = Checked(cells.state) * load.requests;
  if (!bytes.ok() || !states.ok() || !tokens.ok()) {
    return CacheTooLarge();
  }
  const StoredType& format = *job.serving.key_format;
  if (bytes.value() > 0) {
    resident.Add(
        {.pile = Pile::kKvCache,
         .format = format.name,
         .elements = Elements(OrLargest(bytes * 8 * format.block_elements) / format.block_bits),
         .bytes = Exactly(Bytes(bytes.value()))},
        {.what = "token slots",
         .formula = cells.window > 0
                        ? fmt::format("{} tokens × {} bytes, and {} of them × {} in windows",
                                      tokens.value(), cells.full, kWindowRatio, cells.window)
                        : fmt::format("{} tokens × {} bytes", tokens.value(), cells.full),
         .source = "sglang/srt/mem_cache/memory_pool.py"});
  }
  if (states.value() > 0) {
    AddBand(resident, Pile::kKvCache, Exactly(Bytes(states.value())),
            {.what = "states",
             .formula = fmt::format("{} requests × {} bytes", load.requests, cells.state),
             .source = "sglang/srt/mem_cache/memory_pool.py, MambaPool"});
  }
  if (cells.state > 0 && cells.full > 0) {
    AddUnused(resident, bytes, states);
  }
  return resident;
}

SglangMemory MemoryOf(const ServingRank& rank, const Job& job) {
  const Bytes before = job.device->memory - ExpectedOf(rank.loaded, Pile::kOverhead);
  const Bytes after = before - ExpectedOf(rank.loaded, Pile::kWeights);
  return {.available_before_load = before.value(),
          .available_after_load = after.value(),
          .memory_fraction_static = job.serving.memory_utilization};
}

// Where there are states, they and the tokens divide what there is.
CachePool PoolOf(const Cells& cells, const SglangMemory& memory) {
  const Checked bytes = SglangCacheBytes(memory);
  CachePool pool = {.bytes = Bytes(OrLargest(bytes))};
  const Checked of_tokens = cells.state > 0 ? ShareOf(bytes, 1 / (1 + kStateRatio)) : bytes;
  if (cells.full > 0) {
    const Checked tokens =
        SglangMaxTotalTokens(of_tokens, Checked(cells.full) + cells.window, cells.page_tokens);
    const SglangSplit split = {.full_cell = cells.full,
                               .window_cell = cells.window,
                               .ratio = kWindowRatio,
                               .page_tokens = cells.page_tokens};
    pool.tokens = OrLargest(SglangSplitTokens(tokens, split).full_tokens);
  }
  pool.blocks = pool.tokens;
  return pool;
}

// The lines of the pools, which have a page more than they give out; full, then windows.
std::vector<EngineFigure> PoolFigures(const Cells& cells, std::int64_t tokens) {
  std::vector<EngineFigure> figures;
  const auto add = [&figures](std::string id, Checked value, std::string unit) {
    figures.push_back({.id = std::move(id),
                       .value = static_cast<double>(OrLargest(value)),
                       .unit = std::move(unit)});
  };
  const auto bytes = [&cells](Checked of, std::int64_t cell) {
    return SglangPoolBytes(of, cells.page_tokens, cell);
  };
  add("cache_tokens", tokens, "tokens");
  add("kv_key_bytes", bytes(tokens, cells.full_keys), "bytes");
  add("kv_value_bytes", bytes(tokens, cells.full - cells.full_keys), "bytes");
  Checked all = bytes(tokens, cells.full);
  if (cells.window > 0) {
    const Checked window = SglangWindowTokens(tokens, kWindowRatio, cells.page_tokens);
    add("full_tokens", tokens, "tokens");
    add("swa_tokens", window, "tokens");
    add("swa_kv_key_bytes", bytes(window, cells.window_keys), "bytes");
    add("swa_kv_value_bytes", bytes(window, cells.window - cells.window_keys), "bytes");
    all = all + bytes(window, cells.window);
  }
  add("kv_bytes", all, "bytes");
  return figures;
}

std::vector<EngineFigure> FiguresOf(const ServingRank& rank, const Cells& cells) {
  std::vector<EngineFigure> figures;
  if (rank.pool) {
    figures = PoolFigures(cells, rank.pool->tokens);
  }
  figures.push_back({.id = "weights_bytes",
                     .value = static_cast<double>(ExpectedOf(rank.loaded, Pile::kWeights).value()),
                     .unit = "bytes"});
  return figures;
}

}  // namespace

Result<ServingPlan> PlanSglang(const Job& job) {
  ServingPlan plan;
  TRY(plan.ranks, RanksOf(job));
  for (ServingRank& rank : plan.ranks) {
    AddRepacking(rank.loaded, job);
    AddTerm(rank.loaded, job, "cuda_context");
    const Cells cells = CellsOf(rank.caches, job);
    rank.figures = [cells](const ServingRank& of, const RequestLoad&) {
      return FiguresOf(of, cells);
    };
    if (job.device) {
      const SglangMemory memory = MemoryOf(rank, job);
      rank.pool = PoolOf(cells, memory);
      AddLeftFree(rank.loaded, Bytes(OrLargest(SglangReservedBytes(memory))),
                  fmt::format("free before the load × (1 − {}): activations, graphs",
                              job.serving.memory_utilization));
    }
    rank.requests = [cells, &job](const RequestLoad& load) { return RequestsOf(cells, job, load); };
  }
  return plan;
}

}  // namespace fourpiles
