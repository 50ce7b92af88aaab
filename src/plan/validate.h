#pragma once

// Predictions against measured runs. A run is one line of JSON, read by its fields alone: what kind
// of figure it is, the shapes and settings it was measured with, the value. No run is known by its
// name.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fields.h"
#include "fourpiles/result.h"

namespace fourpiles {

// A predicted figure, in the unit of the measured one: "MiB", "GiB", "bytes", "tokens", "blocks",
// "cells", "x", "bpw".
struct Prediction {
  double value = 0;
  std::string unit = {};
};

// Error: what keeps the row from being expressed, as Error::text.found: "no field k_dim".
using Predictor = Result<Prediction> (*)(const Fields& row);

// How close a prediction must come.
enum class Closeness {
  kAsPrinted,    // equal at the digits that were printed; of medium or low confidence within 1 %
  kWithinPrint,  // inside what the printed inputs allow
  kBand,         // within 8 %
  kShown,        // not judged
};

// One kind of figure, "llamacpp_kv": a row of the table of its engine.
struct RunKind {
  std::string_view kind;
  Closeness closeness = Closeness::kShown;
  Predictor predict = nullptr;
};

// Of llama.cpp and its relatives (validate_llamacpp.cc); of engines whose cache is a pool, and of
// weights outside GGUF (validate_pools.cc).
std::span<const RunKind> LlamacppRunKinds();
std::span<const RunKind> PoolRunKinds();

}  // namespace fourpiles
