#pragma once

// What a format change does to the numbers of a checkpoint: one streaming pass over its tensors,
// all formats at once.
//
//   Checkpoint, formats → Audit      (losses.h: what is counted)
//
// Results do not depend on threads, on the instruction set, or on how the file was read: sums are
// made over blocks of 65,536 elements and merged in order.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "audit/audit_format.h"
#include "audit/losses.h"
#include "fourpiles/number_format.h"
#include "fourpiles/result.h"
#include "tensors/open_checkpoint.h"

namespace fourpiles {

// A tensor in one of the formats.
struct FormatLosses {
  Losses losses = {};
  // The largest factor that values can be multiplied with before any overflows: largest value of
  // the format ÷ largest magnitude. Nothing of block formats and of tensors without finite values
  // other than zero.
  std::optional<double> fitting_scale = {};
  std::optional<ScaleFacts> scales = {};  // of block formats whose scales stand apart
  std::string not_possible = {};          // why this tensor cannot be in that format; else empty
};

struct TensorAudit {
  std::int32_t tensor = 0;  // of the checkpoint
  std::string name = {};
  bool is_repeated = false;  // tied: it has another name before, and is in the totals by that one
  ValueFacts values = {};
  std::optional<ChannelFacts> channels = {};
  std::vector<FormatLosses> formats = {};  // as Audit::formats
};

// A tensor that holds no real numbers, or that cannot be read.
struct SkippedTensor {
  std::int32_t tensor = 0;
  std::string name = {};
  std::string why = {};
};

struct Audit {
  Overflow overflow = Overflow::kSaturate;
  std::vector<AuditFormat> formats = {};
  bool each_in_every_format = true;       // false: each tensor is in one of them
  std::vector<TensorAudit> tensors = {};  // in the order of the checkpoint
  std::vector<SkippedTensor> skipped = {};
  ValueFacts values = {};                 // of all tensors; the moments are of all values together
  std::vector<FormatLosses> totals = {};  // as formats; largest_at is of worst_tensors
  std::vector<std::int32_t> worst_tensors = {};  // as formats: the index in `tensors` that has the
                                                 // largest relative error; -1: none
};

struct AuditProgress {
  std::int64_t bytes_done = 0;
  std::int64_t bytes = 0;
};

struct AuditOptions {
  std::vector<AuditFormat> formats = {};
  Overflow overflow = Overflow::kSaturate;  // of values and infinities; rounding is nearest-even
  std::vector<std::string> filters = {};    // names of tensors, as of InventoryChoice; empty: all
  int threads = 1;
  std::function<void(const AuditProgress&)> progress =
      {};  // called now and then, never twice at once
};

// Errors: a file that cannot be read, or has become shorter (kInput).
Result<Audit> AuditCheckpoint(const Checkpoint& checkpoint, const AuditOptions& options);

}  // namespace fourpiles
