#pragma once

// The answer: what one device of the job must hold, when it holds most, and whether that fits.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plan/job.h"
#include "plan/serving.h"
#include "step/tape.h"

namespace fourpiles {

enum class Fit {
  kFits,   // even the high end of the band
  kTight,  // what is expected does, the high end does not
  kDoesNotFit,
};
std::string_view Name(Fit verdict);  // "does_not_fit"

// The largest context of each of so many requests at a time, at most the model's longest.
struct ContextRow {
  std::int64_t concurrency = 1;
  std::int64_t context_length = 0;
};

// What serving can be told besides its piles.
struct ServingFigures {
  Bytes cache_per_token = Bytes(0);    // of the whole model, no window full
  Bytes state_per_request = Bytes(0);  // of the whole model
  // What the pool holds, of an engine that fills it; else context_length × concurrency.
  std::int64_t cache_tokens = 0;
  std::optional<CachePool> pool = {};                // the least of all ranks
  std::optional<std::int64_t> max_concurrency = {};  // with a device
  std::optional<std::int64_t> gpu_layers = {};       // llama.cpp with a device: the most that fit
  std::vector<ContextRow> contexts = {};             // with a device
  std::vector<EngineFigure> log = {};                // of the worst rank
};

// One kind of rank, where there are several.
struct RankBudget {
  std::string rank = {};
  std::int64_t ranks = 1;
  std::map<Pile, Bytes> piles = {};  // expected
  Band total = {};                   // of training: its peak
};

// A single change that lowers the peak.
struct Advice {
  std::string change = {};   // as it is typed: "--kv-format fp8"
  std::string command = {};  // the whole line that shows it
  Bytes saves = Bytes(0);    // at the peak
  std::string costs = {};    // what is lost
  // Whether the job with it fits, or where it is tight fits at the high end too; when serving,
  // whether it saves as much as is too much, all else as it stands. Nothing: not decided.
  std::optional<bool> enough = {};
};

// What a recipe comes to, on one device and at full size.
struct RecipeReading {
  std::string recipe = {};
  double bytes_per_parameter = 0;
};

struct Budget {
  Job job = {};  // with --solve: the solved one
  Tape tape = {};
  std::string worst_rank = {};
  std::string shown_rank = {};  // whose tape, peak and piles these are; empty: the worst's
  std::vector<RankBudget> ranks = {};
  Bytes host = Bytes(0);  // of one host, all its ranks together
  Peak peak = {};
  std::map<Pile, Bytes> piles = {};  // at the peak
  // Activations, or when serving the KV cache: not known for a bare count without layers.
  bool shapes_known = true;
  // Weights, gradients and optimizer state at full size, however long gradients live.
  Bytes state = Bytes(0);
  Bytes saved_activations = Bytes(0);  // kept when the forward pass ends, without the inputs
  Band total = {};
  std::optional<Fit> verdict = {};            // with a device
  std::optional<Bytes> headroom = {};         // memory − total expected
  std::optional<std::int64_t> solution = {};  // with --solve: what was found, if anything fits
  std::optional<ServingFigures> serving = {};
  std::vector<Advice> advice = {};
  // For a model that is a file: its tensors as they lie, or where it is a config alone its weights
  // in the format that it names; and how many times as much training needs on one device without
  // sharding. Not known for the config of a quantised model.
  struct FileShare {
    Bytes weights = Bytes(0);
    std::string format = {};
    double times = 0;
  };
  std::optional<FileShare> file = {};
  // Where the recipe was typed as a word that may mean several: all of them.
  std::vector<RecipeReading> readings = {};
  std::vector<std::string> unknowns = {};  // what is not in the numbers
  std::vector<std::string> warnings = {};
};

Fit FitOf(const Band& total, Bytes memory);

// It is not too large for its device, and with --solve something was found.
bool IsYes(const Budget& budget);

// The peak of the fullest device of a training step, and nothing else of its budget: a fraction of
// the time.
Result<Bytes> PeakBytes(const Job& job);

// Plays every part of the job as it stands and reports the worst; job.solve is left to solve.h.
// Error: kUsage for products past 2^53.
Result<Budget> PlayedBudget(const Job& job);

// The same of a serving job whose plan is made already.
Result<Budget> ServingBudget(const Job& job, const ServingPlan& plan);

// What a person should know of the settings and the model.
std::vector<std::string> WarningsOf(const Job& job);
// Whether activations, or when serving the KV cache, can be told.
bool ShapesAreKnown(const Job& job);

// Plays one kind of rank of a training job again, with an action of its own for every layer.
Result<Tape> PlayWhole(const Job& job, std::string_view rank);

}  // namespace fourpiles
