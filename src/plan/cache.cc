#include "plan/cache.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "base/try.h"
#include "formats/storage.h"

namespace fourpiles {
namespace {

// One kind of thing that a layer's cache holds.
struct Kind {
  const char* what;
  std::int64_t Cache::*elements;
  bool per_token;
  NumberFormat format;
};

std::vector<Kind> KindsOf(const ServingJob& serving) {
  const NumberFormat float32 = FindFormat("float32").value();
  return {
      {"keys", &Cache::key_elements_per_token, true, serving.key_format},
      {"values", &Cache::value_elements_per_token, true, serving.value_format},
      {"index keys", &Cache::index_elements_per_token, true, serving.key_format},
      {"convolution inputs", &Cache::convolution_elements_per_request, false,
       serving.compute_format},
      {"recurrent memory", &Cache::recurrent_elements_per_request, false, float32},
  };
}

// Layers whose caches are alike: how many, and what each keeps.
struct Run {
  std::int64_t layers = 0;
  std::int64_t elements = 0;
  std::optional<std::int64_t> window = {};
};

std::vector<Run> RunsOf(const Network& network, const Kind& kind) {
  std::map<std::pair<std::int64_t, std::int64_t>, Run> runs;  // by elements and window
  for (const Cache& cache : network.caches) {
    const std::int64_t elements = cache.*kind.elements;
    if (elements != 0) {
      Run& run = runs[{elements, cache.window.value_or(0)}];
      run = {run.layers + 1, elements, cache.window};
    }
  }
  std::vector<Run> list;
  list.reserve(runs.size());
  for (const auto& [key, run] : runs) {
    list.push_back(run);
  }
  return list;
}

Result<void> AddCache(Resident& resident, const Run& run, const Kind& kind,
                      const ServingJob& serving) {
  const std::int64_t tokens =
      kind.per_token ? std::min(serving.context_length, run.window.value_or(serving.context_length))
                     : 1;
  const Checked elements = Checked(run.layers) * run.elements * tokens * serving.concurrency;
  const Checked bytes = StorageBytes(elements, kind.format);
  if (!bytes.ok()) {
    return WrongUsage({.where = "budget",
                       .found = "the KV cache passes 2^53 bytes",
                       .expected = "expected less",
                       .hint = "check --context-length and --concurrency"});
  }
  const std::string window = run.window ? fmt::format(", window {}", *run.window) : "";
  resident.Add({.pile = Pile::kKvCache,
                .format = kind.format.name,
                .elements = Elements(elements.value()),
                .bytes = Exactly(Bytes(bytes.value()))},
               {.what = fmt::format("{} of {} layers{}", kind.what, run.layers,
                                    kind.per_token ? window : ""),
                .formula = fmt::format("{} requests × {} layers × {} elements{}",
                                       serving.concurrency, run.layers, run.elements,
                                       kind.per_token ? fmt::format(" × {} tokens", tokens) : ""),
                .source = "shapes of the architecture; a cache without padding"});
  return {};
}

Checked BytesOfKinds(const Network& network, const ServingJob& serving, bool per_token) {
  Checked bytes = 0;
  for (const Kind& kind : KindsOf(serving)) {
    if (kind.per_token == per_token) {
      for (const Run& run : RunsOf(network, kind)) {
        bytes = bytes + Checked(run.layers) * StorageBytes(run.elements, kind.format);
      }
    }
  }
  return bytes;
}

}  // namespace

Result<Resident> CacheStorages(const Network& network, const ServingJob& serving) {
  Resident resident;
  for (const Kind& kind : KindsOf(serving)) {
    for (const Run& run : RunsOf(network, kind)) {
      TRY_VOID(AddCache(resident, run, kind, serving));
    }
  }
  return resident;
}

Checked CacheBytesPerToken(const Network& network, const ServingJob& serving) {
  return BytesOfKinds(network, serving, true);
}

Checked StateBytesPerRequest(const Network& network, const ServingJob& serving) {
  return BytesOfKinds(network, serving, false);
}

}  // namespace fourpiles
