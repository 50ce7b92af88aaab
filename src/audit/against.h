#pragma once

// Two checkpoints held against each other, value by value: what a conversion that was done
// elsewhere has lost.

#include <string>
#include <vector>

#include "audit/audit.h"
#include "audit/findings.h"

namespace fourpiles {

struct Comparison {
  // Values are those of the first checkpoint. Formats are the types that the second one stores its
  // tensors in, as they come; a tensor has figures in its own alone. `overflow` is saturate where
  // every finite value is one in the second too, else ieee. Tensors of other shapes are skipped.
  Audit audit = {};
  // Tensors of real numbers of the first, and those of them that were not compared.
  std::int64_t real = 0;
  std::int64_t unpaired = 0;
  std::vector<std::string> only_first = {};   // tensors without a partner in the second …
  std::vector<std::string> only_second = {};  // … and in the first
};

// Tensors are paired by name; those of a GGUF beside another checkpoint as PairGguf says. Of the
// options, formats and overflow are not used. Errors: a file that cannot be read, or has become
// shorter (kInput).
Result<Comparison> AuditAgainst(const Checkpoint& first, const Checkpoint& second,
                                const AuditOptions& options);

// FindingsOf the audit, and scales that a conversion elsewhere may have got wrong.
std::vector<AuditFinding> FindingsOf(const Comparison& comparison, const Thresholds& thresholds);

}  // namespace fourpiles
