#include "plan/advice.h"

#include <algorithm>

#include <fmt/format.h>

#include "plan/change_command.h"
#include "plan/serving.h"
#include "plan/setting_reader.h"

namespace fourpiles {
namespace {

enum class Changed { kWeights, kCache };

// Perplexities are those of LLaMA-7B on WikiText-2 in llama.cpp's k-quants (ggml-org/llama.cpp,
// pull request 1684 and examples/quantize/README.md of 2023); accuracies those of Kurtic et al.
// 2024, arXiv 2411.02355, over Llama 3.1 and academic benchmarks.
struct Candidate {
  std::string_view format;
  std::string_view costs;
  Changed changed;
  bool llamacpp;
};
constexpr Candidate kCandidates[] = {
    {"q8_0", "perplexity of LLaMA-7B +0.0004 (llama.cpp PR 1684)", Changed::kWeights, true},
    {"q6_k", "perplexity of LLaMA-7B +0.0044 (llama.cpp PR 1684)", Changed::kWeights, true},
    {"q4_k_m", "perplexity of LLaMA-7B +0.0535 (llama.cpp PR 1684)", Changed::kWeights, true},
    {"fp8", "no loss that benchmarks could tell from noise (Kurtic et al. 2024, arXiv 2411.02355)",
     Changed::kWeights, false},
    {"awq",
     "1 to 3 % of the accuracy, more for small models (Kurtic et al. 2024, arXiv 2411.02355: 4-bit "
     "weights)",
     Changed::kWeights, false},
    {"q8_0",
     "keys and values rounded to 8 bits in blocks of 32; try it on long contexts of your task",
     Changed::kCache, true},
    {"q4_0",
     "keys and values rounded to 4 bits: keys lose the most; try it on long contexts of your task",
     Changed::kCache, true},
    {"float8_e4m3fn",
     "keys and values rounded to 3 bits of fraction; calibrate the scales, try it on long contexts "
     "of your task",
     Changed::kCache, false},
};

std::string_view SettingOf(const Candidate& candidate) {
  return candidate.changed == Changed::kCache ? "kv-format" : "weights-format";
}

// The job as the change would be read, which what was solved for is not; nothing where it is
// refused.
std::optional<Job> With(const Job& job, const Candidate& candidate) {
  Settings settings = job.settings;
  const std::string setting(SettingOf(candidate));
  settings.insert_or_assign(setting, SetValue{std::string(candidate.format), "--" + setting});
  std::vector<Default> unused;
  SettingReader reader(settings, unused);
  auto read = ReadServing(reader, job);
  if (!read) {
    return std::nullopt;
  }
  Job other = job;
  ServingJob& serving = other.serving;
  serving.weights = std::move(read->weights);
  serving.compute_format = read->compute_format;
  serving.key_format = read->key_format;
  serving.value_format = read->value_format;
  return other;
}

Bytes WorstOf(const ServingPlan& plan, const RequestLoad& load) {
  Bytes worst(0);
  for (const ServingRank& rank : plan.ranks) {
    if (const auto bytes = DeviceBytes(rank, load)) {
      worst = std::max(worst, bytes->expected);
    }
  }
  return worst;
}

Bytes BytesWith(const Job& job) {
  const auto plan = PlanServing(job);
  return plan ? WorstOf(*plan, LoadOf(job.serving)) : Bytes(kLargestAmount);
}

// Whether saving so much would make it fit, or where it is tight fit at the high end too. Nothing
// where it fits already, and without a device.
std::optional<bool> IsEnough(const Budget& budget, Bytes saves) {
  if (!budget.verdict || *budget.verdict == Fit::kFits) {
    return std::nullopt;
  }
  const bool is_tight = *budget.verdict == Fit::kTight;
  const Bytes held = is_tight ? budget.total.high : budget.total.expected;
  return held - saves <= budget.job.device->memory;
}

}  // namespace

std::vector<Advice> ServingAdvice(const Budget& budget) {
  std::vector<Advice> advice;
  const Job& job = budget.job;
  if (!budget.shapes_known) {
    return advice;
  }
  for (const Candidate& candidate : kCandidates) {
    if (candidate.llamacpp != IsLlamacpp(job.serving)) {
      continue;
    }
    const std::optional<Job> other = With(job, candidate);
    const Bytes bytes = other ? BytesWith(*other) : Bytes(kLargestAmount);
    if (bytes < budget.total.expected) {
      const SettingChanges changes = {
          {std::string(SettingOf(candidate)), std::string(candidate.format)}};
      const Bytes saves = budget.total.expected - bytes;
      advice.push_back({.change = ChangeAsTyped(changes),
                        .command = CommandWith(job, changes),
                        .saves = saves,
                        .costs = std::string(candidate.costs),
                        .enough = IsEnough(budget, saves)});
    }
  }
  std::ranges::stable_sort(advice, std::ranges::greater(), &Advice::saves);
  return advice;
}

}  // namespace fourpiles
