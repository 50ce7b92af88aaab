#include "base/nearest_name.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "base/ascii.h"

namespace fourpiles {
namespace {

constexpr std::size_t kLargestDistance = 3;

// The optimal string alignment distance (Levenshtein's with swaps of neighbours), three rows of its
// table at a time: row i holds the distances of a's first i letters to every beginning of b.
std::size_t Distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> above(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) {
    row[j] = j;
  }
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(before, above);
    std::swap(above, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = LowerCase(a[i - 1]) == LowerCase(b[j - 1]);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && LowerCase(a[i - 1]) == LowerCase(b[j - 2]) &&
          LowerCase(a[i - 2]) == LowerCase(b[j - 1])) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

}  // namespace

std::optional<std::string_view> NearestName(std::string_view typed,
                                            std::span<const std::string_view> candidates) {
  const std::size_t limit = std::min(kLargestDistance, typed.size() / 3);
  std::optional<std::string_view> nearest;
  std::size_t least = limit + 1;
  for (const std::string_view candidate : candidates) {
    // A name from a file may be megabytes long: its length alone rules it out.
    if (std::max(typed.size(), candidate.size()) - std::min(typed.size(), candidate.size()) >
        limit) {
      continue;
    }
    const std::size_t distance = Distance(typed, candidate);
    if (distance < least) {
      least = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string DidYouMean(std::string_view typed, std::span<const std::string_view> candidates) {
  const std::optional<std::string_view> nearest = NearestName(typed, candidates);
  return nearest ? "did you mean \"" + std::string(*nearest) + "\"?" : "";
}

}  // namespace fourpiles
