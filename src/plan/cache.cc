#include "plan/cache.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "base/try.h"

namespace fourpiles {
namespace {

// One kind of thing that a layer's cache holds.
struct Kind {
  const char* what;
  std::int64_t Cache::*elements;
  bool per_token;
  const StoredType* format;
};

std::array<Kind, 5> KindsOf(const CacheFormats& formats) {
  static const StoredType* const float32 = FindStoredType("float32");
  return {
      {{"keys", &Cache::key_elements_per_token, true, formats.key},
       {"values", &Cache::value_elements_per_token, true, formats.value},
       {"index keys", &Cache::index_elements_per_token, true, formats.key},
       {"convolution inputs", &Cache::convolution_elements_per_request, false, formats.convolution},
       {"recurrent memory", &Cache::recurrent_elements_per_request, false, float32}}};
}

// Layers whose caches are alike: how many, and what each keeps.
struct Run {
  std::int64_t layers = 0;
  std::int64_t elements = 0;
  Cache like = {};
};

std::vector<Run> RunsOf(std::span<const Cache> caches, const Kind& kind) {
  std::map<std::array<std::int64_t, 3>, Run> runs;  // by elements, window, encoder's tokens
  for (const Cache& cache : caches) {
    const std::int64_t elements = cache.*kind.elements;
    if (elements != 0) {
      Run& run = runs[{elements, cache.window.value_or(0), cache.encoder_tokens.value_or(-1)}];
      run = {run.layers + 1, elements, cache};
    }
  }
  std::vector<Run> list;
  list.reserve(runs.size());
  for (const auto& [key, run] : runs) {
    list.push_back(run);
  }
  return list;
}

std::string WhichTokens(const Cache& cache) {
  if (cache.encoder_tokens) {
    return ", of the encoder's tokens";
  }
  return cache.window ? fmt::format(", window {}", *cache.window) : "";
}

Result<void> AddCache(Resident& resident, const Run& run, const Kind& kind,
                      const RequestLoad& load) {
  const std::int64_t tokens = kind.per_token ? TokensHeld(run.like, load.tokens) : 1;
  const Checked rows = Checked(run.layers) * tokens * load.requests;
  const Checked elements = rows * run.elements;
  const Checked bytes = StorageBytes(run.elements, *kind.format) * rows;
  if (!bytes.ok() || !elements.ok()) {
    return CacheTooLarge();
  }
  resident.Add({.pile = Pile::kKvCache,
                .format = kind.format->name,
                .elements = Elements(elements.value()),
                .bytes = Exactly(Bytes(bytes.value()))},
               {.what = fmt::format("{} of {} layers{}", kind.what, run.layers,
                                    kind.per_token ? WhichTokens(run.like) : ""),
                .formula = fmt::format("{} requests × {} layers × {} elements{}", load.requests,
                                       run.layers, run.elements,
                                       kind.per_token ? fmt::format(" × {} tokens", tokens) : ""),
                .source = "shapes of the architecture; a cache without padding"});
  return {};
}

// Of one request: what grows with its context, a token of it; or all that does not.
Checked BytesOfKinds(std::span<const Cache> caches, const CacheFormats& formats, bool grows) {
  Checked bytes = 0;
  for (const Kind& kind : KindsOf(formats)) {
    for (const Run& run : RunsOf(caches, kind)) {
      if (grows == (kind.per_token && !run.like.encoder_tokens)) {
        const std::int64_t tokens = kind.per_token ? run.like.encoder_tokens.value_or(1) : 1;
        bytes = bytes + Checked(run.layers) * tokens * StorageBytes(run.elements, *kind.format);
      }
    }
  }
  return bytes;
}

}  // namespace

CacheFormats CacheFormatsOf(const ServingJob& serving) {
  return {.key = serving.key_format,
          .value = serving.value_format,
          .convolution = FindStoredType(serving.compute_format.name)};
}

Cache FullHeads(Cache cache) {
  if (cache.full_key_elements > 0) {
    cache.key_elements_per_token = cache.full_key_elements;
    cache.value_elements_per_token = cache.full_value_elements;
    cache.heads = cache.full_heads;
  }
  return cache;
}

std::int64_t TokensHeld(const Cache& cache, std::int64_t tokens) {
  return cache.encoder_tokens.value_or(std::min(tokens, cache.window.value_or(tokens)));
}

std::int64_t EncoderTokens(std::span<const Cache> caches) {
  std::int64_t tokens = 0;
  for (const Cache& cache : caches) {
    tokens = std::max(tokens, cache.encoder_tokens.value_or(0));
  }
  return tokens;
}

Result<Resident> CacheStorages(std::span<const Cache> caches, const CacheFormats& formats,
                               const RequestLoad& load) {
  Resident resident;
  for (const Kind& kind : KindsOf(formats)) {
    for (const Run& run : RunsOf(caches, kind)) {
      TRY_VOID(AddCache(resident, run, kind, load));
    }
  }
  return resident;
}

Checked CacheBytesPerToken(std::span<const Cache> caches, const CacheFormats& formats) {
  return BytesOfKinds(caches, formats, true);
}

Checked StateBytesPerRequest(std::span<const Cache> caches, const CacheFormats& formats) {
  return BytesOfKinds(caches, formats, false);
}

tl::unexpected<Error> CacheTooLarge() {
  return WrongUsage({.where = "budget",
                     .found = "the KV cache passes 2^53 bytes",
                     .expected = "expected less",
                     .hint = "check --context-length and --concurrency"});
}

}  // namespace fourpiles
