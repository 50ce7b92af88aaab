#include "tensors/checkpoint.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/keyed_hash.h"

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

// Hashes are sorted, for names lie scattered in memory; names only where two hashes are the same.
std::vector<std::size_t> RepeatedNames(const std::vector<std::string_view>& names) {
  struct Hashed {
    std::size_t hash = 0;
    std::size_t name = 0;  // its index
  };
  std::vector<Hashed> order;
  order.reserve(names.size());
  for (const std::string_view name : names) {
    order.push_back({KeyedHash()(name), order.size()});
  }
  std::ranges::sort(order, [&names](const Hashed& a, const Hashed& b) {
    return a.hash != b.hash ? a.hash < b.hash
                            : std::pair(names[a.name], a.name) < std::pair(names[b.name], b.name);
  });
  std::vector<std::size_t> repeated;
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (order[i].hash == order[i - 1].hash && names[order[i].name] == names[order[i - 1].name]) {
      repeated.push_back(order[i].name);
    }
  }
  std::ranges::sort(repeated);
  return repeated;
}

std::string ShapeText(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

Checked ElementsOf(const std::vector<std::int64_t>& shape) {
  Checked elements = 1;
  for (const std::int64_t dimension : shape) {
    elements = elements * dimension;
  }
  return elements;
}

}  // namespace fourpiles
