// Settings of serving beside model and engine: each by what it adds, counted by hand.

#include <algorithm>
#include <fstream>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "plan/solve.h"
#include "plan/solve_serving.h"

namespace fourpiles {
namespace {

using Typed = std::map<std::string, std::string>;

Result<Job> JobWith(const std::string& model, const Typed& settings) {
  return MakeJob(JobKind::kServe, model, TypedSettings(settings));
}

Budget Served(const std::string& model, Typed settings) {
  settings.insert({"context-length", "1024"});
  return BudgetOf(JobWith(model, settings).value()).value();
}

std::int64_t WeightsOn(const Budget& budget, Place place) {
  Bytes sum(0);
  for (const Storage& storage : budget.tape.storages) {
    const bool counts = storage.pile == Pile::kWeights && storage.place == place;
    sum += counts ? storage.bytes.expected : Bytes(0);
  }
  return sum.value();
}

// What the settings `more` add to the weights on the worst device.
std::int64_t Added(const std::string& model, const Typed& settings, Typed more) {
  more.insert(settings.begin(), settings.end());
  return WeightsOn(Served(model, more), Place::kDevice) -
         WeightsOn(Served(model, settings), Place::kDevice);
}

// Experts of Mixtral 8x7B: 32 layers × 8 × 3 matrices of 4,096 × 14,336, two bytes each.
constexpr std::int64_t kExperts = std::int64_t{32} * 8 * 3 * 4096 * 14336 * 2;

// 1,235,814,400 parameters of Llama-3.2-1B, in bfloat16 whatever the model is served in; the files
// of gpt-oss-20b.
TEST(ServingOptions, TheDraftIsInItsOwnFormat) {
  const Typed fp8 = {{"engine", "vllm"}, {"weights-format", "fp8"}};
  EXPECT_EQ(Added("llama-3.1-8b", fp8, {{"draft", "llama-3.2-1b"}}), 1'235'814'400 * 2LL);
  EXPECT_EQ(Added("llama-3.1-8b", {}, {{"draft", "gpt-oss-20b"}}), 13'761'264'768);
}

// 41,943,040 of rank 16 (peft's own count), two bytes each.
TEST(ServingOptions, AdaptersStayLoaded) {
  EXPECT_EQ(Added("llama-3.1-8b", {}, {{"adapter", "lora:rank=16"}, {"adapters", "4"}}),
            4 * 41'943'040 * 2);
}

TEST(ServingOptions, ExpertsOnTheHostAreNotOnTheDevice) {
  const Typed settings = {{"engine", "llama.cpp"}, {"weights-format", "bf16"}};
  Typed host = settings;
  host["experts-on-host"] = "true";
  const Budget beside = Served("mixtral-8x7b", settings);
  const Budget apart = Served("mixtral-8x7b", host);
  EXPECT_EQ(WeightsOn(beside, Place::kDevice) - WeightsOn(apart, Place::kDevice), kExperts);
  EXPECT_EQ(WeightsOn(apart, Place::kHost) - WeightsOn(beside, Place::kHost), kExperts);
}

// Two replicas of two devices: each device has half of each expert, or two experts of the eight.
TEST(ServingOptions, ExpertsAreSpreadOverReplicas) {
  const Typed settings = {{"engine", "vllm"}, {"devices", "4"}, {"tensor-parallel", "2"}};
  EXPECT_EQ(Added("mixtral-8x7b", settings, {{"expert-parallel", "4"}}),
            kExperts / 4 - kExperts / 2);
}

// 17 tokens in a block of 32: × 32 layers × 8 heads × 128 × 2 × 2 bytes.
TEST(ServingOptions, AnEngineMayBeAFile) {
  const std::string path = fmt::format("{}engine-{}.json", testing::TempDir(), getpid());
  std::ofstream(path) << R"({"id": "vllm", "aliases": [], "summary": "larger blocks",
      "memory_utilization": 0.5, "page_tokens": 32, "swap_bytes": 0,
      "kv_formats": ["auto", "bfloat16"], "terms": [], "versions": [], "ratios": [
        {"id": "sampler", "what": "x", "low": 1, "expected": 1, "high": 1, "source": "a test"},
        {"id": "layer", "what": "x", "low": 1, "expected": 1, "high": 1, "source": "a test"}],
      "source": "a test", "checked": "2026-11-30"})";
  const Budget budget = Served("llama-3.1-8b", {{"engine", path}, {"context-length", "17"}});
  unlink(path.c_str());
  EXPECT_EQ(budget.piles.at(Pile::kKvCache), Bytes(32 * 131072));
}

// 80e9 − 8,030,261,248 × 2 bytes hold 487,819.5 tokens of 131,072 bytes; the model's longest is
// 131,072.
TEST(ServingOptions, ContextsByConcurrency) {
  const Job job = JobWith("llama-3.1-8b", {{"device", "80GB"}}).value();
  const std::vector<ContextRow> rows = ContextTable(job, PlanServing(job).value());
  const std::pair<std::int64_t, std::int64_t> expected[] = {
      {1, 131072}, {2, 131072}, {4, 121954}, {8, 60977}};
  for (std::size_t i = 0; i < std::size(expected); ++i) {
    EXPECT_EQ(rows[i].concurrency, expected[i].first);
    EXPECT_EQ(rows[i].context_length, expected[i].second);
  }
}

TEST(ServingOptions, DevicesAreLaidOutAsTyped) {
  struct Case {
    Typed typed;
    std::int64_t devices;
    std::optional<ServingLayout> layout;
  };
  const Case cases[] = {
      {{}, 16, ServingLayout{.tensor = 8, .pipeline = 2}},
      {{{"tensor-parallel", "4"}}, 8, ServingLayout{.tensor = 4, .pipeline = 2}},
      {{{"tensor-parallel", "4"}}, 6, std::nullopt},
      {{{"pipeline-parallel", "4"}}, 8, ServingLayout{.tensor = 2, .pipeline = 4}},
      {{{"expert-parallel", "4"}}, 2, std::nullopt},
      {{{"expert-parallel", "4"}}, 16, ServingLayout{.tensor = 8, .data = 2, .expert = 4}},
  };
  for (const Case& c : cases) {
    Typed typed = c.typed;
    typed.insert({{"device", "80GB"}, {"solve", "devices"}});
    const std::optional<Job> laid = WithDevices(JobWith("mixtral-8x7b", typed).value(), c.devices);
    ASSERT_EQ(laid.has_value(), c.layout.has_value());
    if (laid) {
      const ServingLayout& layout = laid->serving.layout;
      EXPECT_EQ(layout.tensor, c.layout->tensor);
      EXPECT_EQ(layout.pipeline, c.layout->pipeline);
      EXPECT_EQ(layout.data, c.layout->data);
      EXPECT_EQ(layout.expert, c.layout->expert);
    }
  }
}

// 141 GB fit two devices of 80 GB; four share every layer where that is asked for.
TEST(ServingOptions, SolvedDevicesKeepWhatWasTyped) {
  const Typed settings = {{"device", "80GB"}, {"solve", "devices"}};
  EXPECT_EQ(Served("llama-3.1-70b", settings).solution, 2);
  Typed four = settings;
  four["tensor-parallel"] = "4";
  EXPECT_EQ(Served("llama-3.1-70b", four).solution, 4);
  four["devices"] = "8";
  EXPECT_EQ(JobWith("llama-3.1-70b", four).error().text.found, "8, and searched for");
}

// vLLM runs no more than --max-num-seqs at a time, whatever fits.
TEST(ServingOptions, SolvedConcurrencyIsWithinTheEngines) {
  EXPECT_EQ(
      Served(
          "llama-3.1-8b",
          {{"engine", "vllm"}, {"device", "80GB"}, {"max-num-seqs", "4"}, {"solve", "concurrency"}})
          .solution,
      4);
}

// llama.cpp refuses quantised values without flash attention; of keys that are typed --kv-format
// says nothing, so that the values alone shrink: 512 MiB of float16, 8.5 bits of 16 left.
TEST(ServingOptions, AdviceIsACommandThatWorks) {
  const Typed settings = {{"engine", "llama.cpp"},
                          {"weights-format", "q4_k_m"},
                          {"device", "24GB"},
                          {"context-length", "8192"}};
  const auto saves = [&](const Typed& more) {
    Typed all = settings;
    all.insert(more.begin(), more.end());
    const Budget budget = Served("llama-3.1-8b", all);
    const auto found = std::ranges::find(budget.advice, "--kv-format q8_0", &Advice::change);
    return found == budget.advice.end() ? Bytes(0) : found->saves;
  };
  EXPECT_EQ(saves({{"flash-attention", "off"}}), Bytes(0));
  EXPECT_EQ(saves({{"kv-format-k", "q4_0"}}), Bytes((512 - 272) << 20));
}

}  // namespace
}  // namespace fourpiles
