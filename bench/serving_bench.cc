// How long serving takes to plan: what an engine loads and what requests take beside it, and the
// search for the most requests; and how fast the log of an engine is read.
//
// The row of CopyJob copies the job, which a budget cannot go below: it has one. The rows of Copy
// and FindLines do least that can be done with the bytes of a log: memcpy, and memchr of each end
// of a line.

#include <cstring>
#include <string>

#include <benchmark/benchmark.h>

#include "base/freed_memory.h"
#include "plan/engine_log.h"
#include "plan/solve.h"
#include "plan/solve_serving.h"

namespace fourpiles {
namespace {

Job JobOf(const char* engine) {
  const bool llamacpp = std::string_view(engine) == "llama.cpp";
  return MakeJob(JobKind::kServe, "llama-3.1-405b",
                 TypedSettings({{"engine", engine},
                                {"weights-format", llamacpp ? "q4_k_m" : "fp8"},
                                {"devices", "8"},
                                {"device", "h200-sxm-141gb"},
                                {"context-length", "8192"}}))
      .value();
}

void PlanAndBudget(benchmark::State& state, const char* engine) {
  const Job job = JobOf(engine);
  for (auto _ : state) {
    const ServingPlan plan = PlanServing(job).value();
    benchmark::DoNotOptimize(ServingBudget(job, plan).value().total);
  }
}

void SolveConcurrency(benchmark::State& state, const char* engine) {
  const Job job = JobOf(engine);
  const ServingPlan plan = PlanServing(job).value();
  for (auto _ : state) {
    benchmark::DoNotOptimize(SolveServing(job, plan, Unknown::kConcurrency).value());
  }
}

// With the table of contexts and the advice.
void WholeAnswer(benchmark::State& state, const char* engine) {
  const Job job = JobOf(engine);
  for (auto _ : state) {
    benchmark::DoNotOptimize(BudgetOf(job).value().total);
  }
}

void CopyJob(benchmark::State& state) {
  const Job job = JobOf("vllm");
  for (auto _ : state) {
    Job copy = job;
    benchmark::DoNotOptimize(copy);
  }
}

// The start-up of a server, and its reports since: 100,000 lines.
std::string LongLog() {
  std::string log =
      "INFO 11-08 12:00:00 api_server.py:585] vLLM API server version 0.6.3.post1\n"
      "INFO 11-08 12:00:09 model_runner.py:1067] Loading model weights took 14.9888 GB\n"
      "INFO 11-08 12:00:11 gpu_executor.py:122] # GPU blocks: 27247, # CPU blocks: 2048\n"
      "INFO 11-08 12:00:11 gpu_executor.py:126] Maximum concurrency for 8192 tokens per request: "
      "53.22x\n";
  for (int i = 0; i < 100'000; ++i) {
    log +=
        "INFO 11-08 12:01:07 metrics.py:349] Avg prompt throughput: 1503.2 tokens/s, Avg "
        "generation "
        "throughput: 611.0 tokens/s, Running: 52 reqs, Swapped: 0 reqs, Pending: 3 reqs, GPU KV "
        "cache usage: 91.4%, CPU KV cache usage: 0.0%.\n";
  }
  return log;
}

void SetBytes(benchmark::State& state, std::size_t bytes) {
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
}

void ReadLog(benchmark::State& state) {
  const std::string log = LongLog();
  for (auto _ : state) {
    benchmark::DoNotOptimize(ReadEngineLog(log, "log").value().figures.size());
  }
  SetBytes(state, log.size());
}

void FindLines(benchmark::State& state) {
  const std::string log = LongLog();
  for (auto _ : state) {
    std::size_t lines = 0;
    const char* at = log.data();
    const char* const end = at + log.size();
    while (at < end) {
      const void* newline = std::memchr(at, '\n', static_cast<std::size_t>(end - at));
      at = newline == nullptr ? end : static_cast<const char*>(newline) + 1;
      ++lines;
    }
    benchmark::DoNotOptimize(lines);
  }
  SetBytes(state, log.size());
}

void Copy(benchmark::State& state) {
  const std::string log = LongLog();
  std::string copy(log.size(), ' ');
  for (auto _ : state) {
    std::memcpy(copy.data(), log.data(), log.size());
    benchmark::DoNotOptimize(copy.data());
    benchmark::ClobberMemory();
  }
  SetBytes(state, log.size());
}

constexpr const char* kEngines[] = {"vllm", "sglang", "tensorrt-llm", "llama.cpp", "transformers"};

void RegisterEngines() {
  for (const char* engine : kEngines) {
    const std::string name = engine;
    benchmark::RegisterBenchmark(("PlanAndBudget/" + name).c_str(), PlanAndBudget, engine);
    benchmark::RegisterBenchmark(("SolveConcurrency/" + name).c_str(), SolveConcurrency, engine);
    benchmark::RegisterBenchmark(("WholeAnswer/" + name).c_str(), WholeAnswer, engine);
  }
}

BENCHMARK(CopyJob);
BENCHMARK(ReadLog)->Unit(benchmark::kMillisecond);
BENCHMARK(FindLines)->Unit(benchmark::kMillisecond);
BENCHMARK(Copy)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace fourpiles

int main(int argc, char** argv) {
  fourpiles::KeepFreedMemory();
  benchmark::Initialize(&argc, argv);
  fourpiles::RegisterEngines();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
