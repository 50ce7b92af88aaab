#pragma once

// An engine's defaults, and what it takes that has no closed form: each a band of what was
// measured, with its source.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "fourpiles/result.h"
#include "model/names.h"
#include "plan/llamacpp.h"

namespace fourpiles {

// An amount that was measured, not derived.
struct EngineTerm {
  std::string id = {};                    // "cuda_graphs"
  std::string what = {};                  // "pools of captured graphs"
  std::vector<std::string> figures = {};  // what logs and runs call it: "cuda_graph_capture"
  std::int64_t low_bytes = 0;             // least of what was measured
  std::int64_t expected_bytes = 0;        // in the middle
  std::int64_t high_bytes = 0;            // most
  std::string source = {};
};

// How many times as much something takes as its shapes alone say: temporaries, copies.
struct EngineRatio {
  std::string id = {};    // "sampler"
  std::string what = {};  // "copies of the logits in the sampler"
  double low = 1;
  double expected = 1;
  double high = 1;
  std::string source = {};
};

// What other builds of the engine do differently.
struct EngineVersion {
  std::string id = "current";
  std::string what = {};
  LlamacppVersion llamacpp = {};
  // vLLM before V1: a whole context in one step, and a pool of blocks in host memory too.
  bool before_v1 = false;
  bool capacity_in_tokens = true;  // "cache size" is what fits; false: concurrency × length
  std::string source = {};
};

struct EngineRecord {
  Names names = {};
  std::string summary = {};
  // Share of the device's memory that it takes, or of what is free; engines that take what they
  // need have none.
  std::optional<double> memory_utilization = {};
  std::int64_t page_tokens = 1;  // tokens of a page or block; what contexts are rounded up to
  std::int64_t swap_bytes = 0;   // host memory for pages
  std::vector<std::string> kv_formats = {};  // what its cache may be stored in, the usual one first
  std::vector<EngineTerm> terms = {};
  std::vector<EngineRatio> ratios = {};
  std::vector<EngineVersion> versions = {};  // the current one first
  std::string source = {};
  std::string checked = {};  // the day, as 2026-11-29
};

// The record of one engine; `where` names it in errors.
Result<EngineRecord> EngineFromJson(const Json& json, std::string_view where);

// The catalogue, in the order of data/engines.json.
std::vector<EngineRecord> Engines();

// The catalogue's engine of that id or alias, or the one in a file that ends in ".json".
Result<EngineRecord> FindEngine(std::string_view name, std::string_view where = "--engine");

// The term or ratio of that id, or nullptr.
const EngineTerm* FindTerm(const EngineRecord& engine, std::string_view id);
const EngineRatio* FindRatio(const EngineRecord& engine, std::string_view id);

}  // namespace fourpiles
