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

// Between what two printed numbers allow, both ends included.
struct PrintedRange {
  double low = 0;
  double high = 0;
};

// How close a prediction must come.
enum class Closeness {
  kAsPrinted,    // equal at the digits that were printed; of medium or low confidence within 1 %
  kWithinPrint,  // inside the prediction's band; without one as printed
  kBand,         // within 8 %
  kInBand,       // inside the prediction's band
  kShown,        // not judged
};

// What another planner would answer.
struct NamedFigure {
  std::string name = {};
  double value = 0;
};

// A predicted figure, in the unit of the measured one: "MiB", "GiB", "bytes", "tokens", "blocks",
// "cells", "x", "bpw".
struct Prediction {
  double value = 0;
  std::string unit = {};
  // What the printed digits of the inputs allow.
  std::optional<PrintedRange> band = {};
  std::optional<Closeness> closeness = {};  // of this row, instead of its kind's
  std::string means_unit = {};  // the unit that the row's stands for, where a note says so
  std::vector<NamedFigure> published = {};  // in the same unit
};

// Error: what keeps the row from being expressed, as Error::text.found: "no field k_dim".
using Predictor = Result<Prediction> (*)(const Fields& row);

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
// Of training, and of one kernel (validate_training.cc).
std::span<const RunKind> TrainingRunKinds();

// A row beside its prediction.
struct ValidatedRun {
  std::string id = {};
  std::string kind = {};
  // Whose summary it is in: its kind; of training its metric and who measured it.
  std::string group = {};
  std::string source = {};
  std::string measured_by = {};  // "Lightning-AI/litgpt", of the source
  // Of training, as the row has them.
  std::string metric = {};
  std::string measures = {};
  std::string confidence = {};
  std::string unit = {};  // of both figures: the row's own
  double measured = 0;
  std::optional<double> predicted = {};  // none: the row is not expressible
  std::string reason = {};               // why
  std::optional<PrintedRange> band = {};
  std::vector<NamedFigure> published = {};
  double error = 0;      // predicted ÷ measured − 1
  bool exact = false;    // equal at the printed digits
  bool judged = false;   // its kind is not only shown
  bool close = false;    // as close as its kind asks
  bool in_band = false;  // the measured figure lies in the band; false without one
};

// Over the rows of one kind, or over all.
struct ValidationSummary {
  std::string kind = {};
  std::int64_t rows = 0;
  std::int64_t compared = 0;
  std::int64_t exact = 0;
  std::int64_t judged = 0;
  std::int64_t off = 0;  // judged, and not close
  double median_absolute_error = 0;
  double worst = 0;  // the error of the largest size, with its sign
  double share_within_5_percent = 0;
  double share_underestimated = 0;
};

struct Validation {
  std::vector<ValidatedRun> rows = {};
  std::vector<ValidationSummary> kinds = {};  // in the order they come first
  ValidationSummary judged = {};              // of the kinds that are judged
  ValidationSummary all = {};
  std::vector<ErrorText> faults = {};  // lines that are no record
};

struct ValidationChoice {
  std::vector<std::string> kinds = {};  // only those; empty: all
  // A judged row is off beyond this relative error, instead of by its kind's closeness.
  std::optional<double> tolerance = {};
};

// Predicted ÷ measured − 1.
double RelativeError(double predicted, double measured);
// Of no values: 0.
double MedianOf(std::vector<double> values);

// Reads a text of one JSON object a line; empty lines are passed over. `where` names it in errors.
Validation Validate(std::string_view text, std::string_view where, std::span<const RunKind> kinds,
                    const ValidationChoice& choice);

}  // namespace fourpiles
