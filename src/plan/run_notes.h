#pragma once

// The numbers that the notes of a measured run state in words.

#include <optional>
#include <string>
#include <string_view>

#include "fourpiles/result.h"
#include "fourpiles/units.h"

namespace fourpiles {

struct LengthMoments {
  double mean = 0;
  double deviation = 0;  // standard; in tokens, like the mean
};

struct RunNotes {
  std::string rank = {};          // of "r=16", "rank 16", "rank=16"
  std::string dropout = {};       // of "dropout=0.05", "dropout 0.05"
  std::string tokens = {};        // of "20 virtual tokens"
  std::string accumulation = {};  // of "grad accumulation 16"; of "128/mb": none, a step has many
  std::string global_batch = {};  // samples of a step, of "global-batch 8"
  std::optional<LengthMoments> lengths = {};  // of samples, of "3234 +/- 2548 tokens"
  // Of "CUDA context 1343 MB", "context 1343 + weights 1278": as nvidia-smi counts, 2^20 bytes.
  std::optional<Bytes> context = {};
};

// Error: one of these words stands there without a number that is understood.
Result<RunNotes> NotesOf(std::string_view notes);

}  // namespace fourpiles
