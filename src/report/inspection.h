#pragma once

// What checkpoints hold, as text, JSON and comma-separated values.

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "tensors/difference.h"
#include "tensors/inventory.h"
#include "tensors/quantised_config.h"
#include "units/print.h"

namespace fourpiles {

// One checkpoint with all that was found out about it. The parts refer to each other, so that an
// Inspection stays where it is made.
struct Inspection {
  explicit Inspection(Checkpoint opened, const InventoryChoice& choice)
      : checkpoint(std::move(opened)),
        weights(StoredWeightsOf(checkpoint)),
        inventory(InventoryOf(checkpoint, weights, choice)) {}
  Inspection(const Inspection&) = delete;
  Inspection& operator=(const Inspection&) = delete;

  Checkpoint checkpoint;
  StoredWeights weights;
  Inventory inventory;
};

struct InspectionView {
  bool all = false;       // every tensor for itself, every line of every table, every import
  bool metadata = false;  // what the files say of themselves
  ByteUnit unit = ByteUnit::kGib;
};

// What the verdict is and means, where it is no plain accept: "verdict: report, …\n"; else nothing.
std::string VerdictLine(FileVerdict verdict);
// At most 40 lines, but for `all` and `metadata`.
std::string InspectionText(const Inspection& inspection, const InspectionView& view);
Json::Object InspectionJson(const Inspection& inspection);
// A line a tensor: name, dtype, format, shape, parameters, bytes, offset, file.
std::string InspectionCsv(const Inspection& inspection);

// What two checkpoints have not in common.
std::string DifferenceText(const Inspection& first, const Inspection& second,
                           const InspectionView& view);
Json::Object DifferenceJson(const Inspection& first, const Inspection& second);

// Warnings of the files and of the inventory, for stderr.
std::vector<std::string> InspectionWarnings(const Inspection& inspection);

}  // namespace fourpiles
