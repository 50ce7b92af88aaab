#include "plan/advice.h"

#include <algorithm>

#include <fmt/format.h>

#include "plan/serving.h"

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

bool IsLlamacpp(const Job& job) {
  return job.serving.engine && job.serving.engine->names.id == "llama.cpp";
}

// The job with that change; nothing where the engine does not have the format.
std::optional<Job> With(const Job& job, const Candidate& candidate) {
  Job other = job;
  ServingJob& serving = other.serving;
  if (candidate.changed == Changed::kCache) {
    const StoredType* type = FindStoredType(candidate.format);
    const bool has = !serving.engine || std::ranges::find(serving.engine->kv_formats, type->name) !=
                                            serving.engine->kv_formats.end();
    if (!has) {
      return std::nullopt;
    }
    serving.key_format = type;
    serving.value_format = type;
    return other;
  }
  serving.weights = {.name = std::string(candidate.format)};
  if (candidate.llamacpp) {
    if (const auto mixture = FindMixture(candidate.format, "advice")) {
      serving.weights.mixture = *mixture;
    }
  } else if (const auto scheme = FindWeightScheme(candidate.format, "advice")) {
    serving.weights.scheme = *scheme;
  }
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

}  // namespace

std::vector<Advice> ServingAdvice(const Budget& budget) {
  std::vector<Advice> advice;
  const Job& job = budget.job;
  if (!budget.shapes_known) {
    return advice;
  }
  for (const Candidate& candidate : kCandidates) {
    if (candidate.llamacpp != IsLlamacpp(job)) {
      continue;
    }
    const std::optional<Job> other = With(job, candidate);
    const Bytes bytes = other ? BytesWith(*other) : Bytes(kLargestAmount);
    if (bytes < budget.total.expected) {
      const bool cache = candidate.changed == Changed::kCache;
      advice.push_back({.change = fmt::format("--{} {}", cache ? "kv-format" : "weights-format",
                                              candidate.format),
                        .saves = budget.total.expected - bytes,
                        .costs = std::string(candidate.costs)});
    }
  }
  std::ranges::stable_sort(advice, std::ranges::greater(), &Advice::saves);
  return advice;
}

}  // namespace fourpiles
