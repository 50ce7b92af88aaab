#pragma once

// Names of many tensors told in one: the numbers in them become ranges.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fourpiles {

// First to last, both included.
using NumberRun = std::pair<std::int64_t, std::int64_t>;

class TensorGroups {
 public:
  void Add(std::string_view name);
  // So many tensors of a pattern, with the numbers that stand in each of its "{}".
  void Add(const std::string& pattern, const std::vector<std::vector<NumberRun>>& numbers,
           std::int64_t count);

  std::int64_t Count() const { return count_; }
  // "model.layers.{0..2}.mlp.up_proj.weight, lm_head.weight and 4 other names", safe to print.
  std::string Listed() const;

 private:
  std::int64_t count_ = 0;
  std::map<std::string, std::vector<std::vector<NumberRun>>> groups_;  // by pattern
  std::vector<std::string> order_;  // of the patterns, as they came
};

}  // namespace fourpiles
