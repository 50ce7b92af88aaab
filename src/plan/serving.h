#pragma once

// What an engine allocates for a serving job, on each kind of rank:
//
//   Job → ServingPlan     what is there before the first request, counted once
//   RequestLoad → bytes   what so many requests of such a length take beside it
//
// The search for the largest concurrency or context asks for the second many times, and for the
// first once. An engine is a record (data/engines.json) and one function of this kind.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fourpiles/result.h"
#include "plan/job.h"
#include "plan/rank_network.h"
#include "step/play.h"

namespace fourpiles {

struct RequestLoad {
  std::int64_t tokens = 1;    // of each request
  std::int64_t requests = 1;  // at a time, on one replica
};
RequestLoad LoadOf(const ServingJob& serving);

// The pool of an engine that takes what is left.
struct CachePool {
  Bytes bytes = Bytes(0);
  std::int64_t blocks = 0;
  std::int64_t block_tokens = 1;
  std::int64_t tokens = 0;  // that fit at once
};

// A figure as the engine's log prints it.
struct EngineFigure {
  std::string id = {};      // "available_bytes"
  std::string device = {};  // llama.cpp: "GPU 0", "host"; empty: one figure for all
  double value = 0;
  std::string unit = {};  // "bytes", "blocks", "tokens", "cells", "x"
};

struct ServingRank {
  std::string name = "rank 0";
  std::int64_t ranks = 1;  // how many are alike
  std::shared_ptr<const Network> network = {};
  bool ends = true;                // it has the output layer, and a draft model
  std::vector<Cache> caches = {};  // of the network, and of the draft model
  Resident loaded = {};
  // Caches, and buffers that grow with them. Error: bytes past 2^53.
  std::function<Result<Resident>(const RequestLoad&)> requests = {};
  // The pool that so many bytes make, of an engine that fills what is left.
  std::function<CachePool(Bytes)> fill = {};
  std::optional<CachePool> pool = {};  // that of the device, where one is given
  std::function<std::vector<EngineFigure>(const ServingRank&, const RequestLoad&)> figures = {};
};

struct ServingPlan {
  std::vector<ServingRank> ranks = {};
  // llama.cpp with a device: the most layers that fit it, searched for when asked.
  std::function<Result<std::int64_t>()> most_gpu_layers = {};
  std::vector<std::string> unknowns = {};  // what is not in the numbers
};

// By the job's engine; without one weights and caches alone. The job must outlive the plan.
// Errors: kUsage, kInput.
Result<ServingPlan> PlanServing(const Job& job);

// What a device must hold for that load, overheads included.
Result<Band> DeviceBytes(const ServingRank& rank, const RequestLoad& load);

// The engines' functions.
Result<ServingPlan> PlanPlain(const Job& job);
Result<ServingPlan> PlanTransformers(const Job& job);
Result<ServingPlan> PlanVllm(const Job& job);
Result<ServingPlan> PlanSglang(const Job& job);
Result<ServingPlan> PlanTensorrtLlm(const Job& job);
Result<ServingPlan> PlanLlamacpp(const Job& job);

}  // namespace fourpiles
