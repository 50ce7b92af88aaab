#include "tensors/checkpoint.h"

#include <algorithm>
#include <numeric>
#include <utility>

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

std::vector<std::size_t> RepeatedNames(const std::vector<std::string_view>& names) {
  std::vector<std::size_t> order(names.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, [&names](std::size_t a, std::size_t b) {
    return std::pair(names[a], a) < std::pair(names[b], b);
  });
  std::vector<std::size_t> repeated;
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (names[order[i]] == names[order[i - 1]]) {
      repeated.push_back(order[i]);
    }
  }
  std::ranges::sort(repeated);
  return repeated;
}

Checked ElementsOf(const std::vector<std::int64_t>& shape) {
  Checked elements = 1;
  for (const std::int64_t dimension : shape) {
    elements = elements * dimension;
  }
  return elements;
}

}  // namespace fourpiles
