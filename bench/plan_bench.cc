// How long a search for layouts takes on one core: Llama-3.1-405B on 8,192 H100s of 80 GB, the
// model read, every layout decided, the front played with its allocator. The row of memcpy copies
// the network once for each layout, which a search that copied it could not go below.

#include <string>

#include <benchmark/benchmark.h>

#include "base/freed_memory.h"
#include "model/catalogue.h"
#include "plan/search_layouts.h"

namespace fourpiles {
namespace {

PlanRequest RequestOf(const char* model, const char* devices) {
  return {.model = model,
          .settings = TypedSettings({{"device", "h100-sxm-80gb"},
                                     {"devices", devices},
                                     {"sequence-length", "8192"},
                                     {"model", model}}),
          .samples = std::stoll(devices) / 4};
}

void Search(benchmark::State& state, const char* model, const char* devices) {
  const PlanRequest request = RequestOf(model, devices);
  std::int64_t layouts = 0;
  std::int64_t plays = 0;
  for (auto _ : state) {
    const PlanAnswer answer = SearchLayouts(request).value();
    layouts = Tried(answer.counts);
    plays = answer.counts.plays;
  }
  state.counters["layouts"] = static_cast<double>(layouts);
  state.counters["plays"] = static_cast<double>(plays);
  state.SetItemsProcessed(state.iterations() * layouts);
}

void CopyNetwork(benchmark::State& state, const char* model) {
  const Network network = FindModel(model)->network;
  for (auto _ : state) {
    Network copy = network;
    benchmark::DoNotOptimize(copy.blocks.data());
  }
  state.SetItemsProcessed(state.iterations());
}

BENCHMARK_CAPTURE(Search, llama_405b_on_8192, "llama-3.1-405b", "8192")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Search, llama_8b_on_64, "llama-3.1-8b", "64")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Search, mixtral_on_256, "mixtral-8x7b", "256")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(CopyNetwork, llama_405b, "llama-3.1-405b");

}  // namespace
}  // namespace fourpiles

int main(int argc, char** argv) {
  fourpiles::KeepFreedMemory();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
