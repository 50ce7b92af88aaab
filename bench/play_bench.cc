// How long one play takes: a training step of a catalogue model, from the first kernel to the peak.
// The row of memcpy copies as many bytes as the tape has, which a play cannot go below.

#include <cstring>

#include <benchmark/benchmark.h>

#include "base/freed_memory.h"
#include "model/catalogue.h"
#include "step/play.h"

namespace fourpiles {
namespace {

Part PartOf(const char* model, bool every_layer) {
  const ElementType bfloat16 = {"bfloat16", 16};
  Part part = {.network = std::make_shared<const Network>(FindModel(model)->network),
               .batch = {.micro_batch_size = 1, .sequence_length = 8192},
               .numbers = {.weights = bfloat16, .compute = bfloat16},
               .gradients = GradientUse::kAdded};
  part.schedule = TrainingSchedule(*part.network, {.every_layer = every_layer});
  return part;
}

void PlayStep(benchmark::State& state, const char* model, bool every_layer) {
  const Part part = PartOf(model, every_layer);
  const Profile profile = FindProfile("pytorch").value();
  std::size_t bytes = 0;
  for (auto _ : state) {
    const Tape tape = Play(part, profile).value();
    benchmark::DoNotOptimize(PeakOf(tape, Place::kDevice));
    bytes = tape.storages.size() * sizeof(Storage) + tape.moments.size() * sizeof(Kernel);
  }
  state.counters["tape_bytes"] = static_cast<double>(bytes);
}

void CopyTape(benchmark::State& state, const char* model) {
  const Tape tape = Play(PartOf(model, false), FindProfile("pytorch").value()).value();
  std::vector<Storage> copy(tape.storages.size());
  for (auto _ : state) {
    std::memcpy(static_cast<void*>(copy.data()), tape.storages.data(),
                copy.size() * sizeof(Storage));
    benchmark::DoNotOptimize(copy.data());
    benchmark::ClobberMemory();
  }
}

BENCHMARK_CAPTURE(PlayStep, llama_405b, "llama-3.1-405b", false);
BENCHMARK_CAPTURE(PlayStep, llama_405b_every_layer, "llama-3.1-405b", true);
BENCHMARK_CAPTURE(PlayStep, llama_8b, "llama-3.1-8b", false);
BENCHMARK_CAPTURE(PlayStep, gpt2, "gpt2", false);
BENCHMARK_CAPTURE(CopyTape, llama_405b, "llama-3.1-405b");

}  // namespace
}  // namespace fourpiles

int main(int argc, char** argv) {
  fourpiles::KeepFreedMemory();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
