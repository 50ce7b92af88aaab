#pragma once

// The answer: what one device of the job must hold, when it holds most, and whether that fits.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plan/job.h"
#include "step/tape.h"

namespace fourpiles {

enum class Fit {
  kFits,   // even the high end of the band
  kTight,  // what is expected does, the high end does not
  kDoesNotFit,
};
std::string_view Name(Fit verdict);  // "does_not_fit"

// What serving can be told besides its piles.
struct ServingFigures {
  Bytes cache_per_token = Bytes(0);
  Bytes state_per_request = Bytes(0);
  std::int64_t cache_tokens = 0;                     // context_length × concurrency
  std::optional<std::int64_t> max_concurrency = {};  // with a device
};

struct Budget {
  Job job = {};  // with --solve: the solved one
  Tape tape = {};
  std::string worst_rank = {};
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
  // For a model that is a file: its tensors as they lie, or where it is a config alone its weights
  // in the format that it names; and how many times as much training needs on one device without
  // sharding. Not known for the config of a quantised model.
  struct FileShare {
    Bytes weights = Bytes(0);
    std::string format = {};
    double times = 0;
  };
  std::optional<FileShare> file = {};
  std::vector<std::string> unknowns = {};  // what is not in the numbers
  std::vector<std::string> warnings = {};
};

// Plays every part of the job as it stands and reports the worst; job.solve is left to solve.h.
// Error: kUsage for products past 2^53.
Result<Budget> PlayedBudget(const Job& job);

// Plays the worst rank of a training budget again, with an action of its own for every layer.
Result<Tape> PlayWhole(const Budget& budget);

}  // namespace fourpiles
