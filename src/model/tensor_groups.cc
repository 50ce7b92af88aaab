#include "model/tensor_groups.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/terminal_text.h"
#include "tensors/name_pattern.h"

namespace fourpiles {
namespace {

constexpr std::size_t kMostNames = 3;
constexpr std::size_t kMostLength = 120;  // of a name

std::vector<std::int64_t> ValuesOf(const std::vector<NumberRun>& runs) {
  std::set<std::int64_t> values;
  for (const auto& [first, last] : runs) {
    for (std::int64_t value = first; value <= last; ++value) {
      values.insert(values.end(), value);
    }
  }
  return {values.begin(), values.end()};
}

}  // namespace

void TensorGroups::Add(std::string_view name) {
  const NamePattern pattern = PatternOf(name);
  std::vector<std::vector<NumberRun>> numbers;
  for (const std::int64_t number : pattern.numbers) {
    numbers.push_back({{number, number}});
  }
  Add(pattern.text, numbers, 1);
}

void TensorGroups::Add(const std::string& pattern,
                       const std::vector<std::vector<NumberRun>>& numbers, std::int64_t count) {
  count_ += count;
  const auto [place, is_new] = groups_.try_emplace(pattern);
  if (is_new) {
    order_.push_back(pattern);
  }
  auto& places = place->second;
  places.resize(std::max(places.size(), numbers.size()));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    for (const NumberRun& run : numbers[i]) {
      // Most come one after the other.
      if (!places[i].empty() && places[i].back().second + 1 == run.first) {
        places[i].back().second = run.second;
      } else if (places[i].empty() || places[i].back() != run) {
        places[i].push_back(run);
      }
    }
  }
}

std::string TensorGroups::Listed() const {
  std::string text;
  for (std::size_t i = 0; i < std::min(order_.size(), kMostNames); ++i) {
    std::vector<std::vector<std::int64_t>> values;
    for (const std::vector<NumberRun>& runs : groups_.find(order_[i])->second) {
      values.push_back(ValuesOf(runs));
    }
    const std::string name =
        EscapeForTerminal(WithValues(order_[i].substr(0, kMostLength), values));
    text += (i == 0 ? "" : ", ") + name;
  }
  if (order_.size() > kMostNames) {
    const std::size_t others = order_.size() - kMostNames;
    text += fmt::format(" and {} other name{}", others, others == 1 ? "" : "s");
  }
  return text;
}

}  // namespace fourpiles
