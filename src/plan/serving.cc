#include "plan/serving.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/check.h"
#include "base/try.h"

namespace fourpiles {
namespace {

struct EngineFunction {
  std::string_view id;
  Result<ServingPlan> (*plan)(const Job& job);
};
constexpr EngineFunction kEngines[] = {
    {"llama.cpp", PlanLlamacpp},        {"sglang", PlanSglang}, {"tensorrt-llm", PlanTensorrtLlm},
    {"transformers", PlanTransformers}, {"vllm", PlanVllm},
};

void AddTo(Band& sum, const Resident& resident) {
  for (const Storage& storage : resident.storages) {
    if (storage.place == Place::kDevice) {
      sum.low += storage.bytes.low;
      sum.expected += storage.bytes.expected;
      sum.high += storage.bytes.high;
    }
  }
}

}  // namespace

RequestLoad LoadOf(const ServingJob& serving) {
  const std::int64_t replicas = serving.layout.data;
  return {.tokens = TokensOf(serving), .requests = (serving.concurrency + replicas - 1) / replicas};
}

Result<ServingPlan> PlanServing(const Job& job) {
  if (!job.serving.engine) {
    return PlanPlain(job);
  }
  const auto* engine =
      std::ranges::find(kEngines, job.serving.engine->names.id, &EngineFunction::id);
  if (engine == std::end(kEngines)) {  // a record of the user's
    return WrongUsage({.where = "--engine",
                       .found = fmt::format("\"{}\" is no engine that is known here",
                                            job.serving.engine->names.id),
                       .expected = "expected a record whose id is one of the engines",
                       .hint = "vllm, sglang, tensorrt-llm, llama.cpp, transformers"});
  }
  return engine->plan(job);
}

Result<Band> DeviceBytes(const ServingRank& rank, const RequestLoad& load) {
  Band sum;
  AddTo(sum, rank.loaded);
  TRY(const Resident requests, rank.requests(load));
  AddTo(sum, requests);
  return sum;
}

}  // namespace fourpiles
