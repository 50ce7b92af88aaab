#include "tensors/checkpoint.h"

#include <algorithm>

namespace fourpiles {

std::string_view Name(FileVerdict verdict) {
  switch (verdict) {
    case FileVerdict::kAccept:
      return "accept";
    case FileVerdict::kAcceptWithWarning:
      return "accept-with-warning";
    case FileVerdict::kReport:
      return "report";
    case FileVerdict::kRefuse:
      break;
  }
  return "refuse";
}

const MetadataEntry* FindEntry(const std::vector<MetadataEntry>& metadata, std::string_view key) {
  const auto found = std::ranges::find(metadata, key, &MetadataEntry::key);
  return found == metadata.end() ? nullptr : &*found;
}

FileVerdict WorstOf(const std::vector<Finding>& findings) {
  FileVerdict worst = FileVerdict::kAccept;
  for (const Finding& finding : findings) {
    worst = std::max(worst, finding.verdict);
  }
  return worst;
}

Checked ElementsOf(const std::vector<std::int64_t>& shape) {
  Checked elements = 1;
  for (const std::int64_t dimension : shape) {
    elements = elements * dimension;
  }
  return elements;
}

}  // namespace fourpiles
