#pragma once

// What DeepSpeed's files of one rank say, besides their tensors.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_source.h"

namespace fourpiles {

// Whose states a file has, by its name.
struct RankName {
  bool has_optimizer = false;   // else those of the model
  std::int64_t data_rank = -1;  // -1: it is the same for all
  std::int64_t model_rank = 0;
};

// Nothing: of another name, as those of single layers or experts.
std::optional<RankName> ParseRankName(std::string_view file);

struct NamedShape {
  std::string name = {};
  std::vector<std::int64_t> shape = {};
  std::int64_t elements = 0;
};

// How a rank's optimizer is cut.
struct ZeroFacts {
  std::int64_t stage = 0;  // 1, 2 or 3; 1 where it is not said, as BF16_Optimizer does
  std::int64_t ranks = 0;  // among which it is cut
};

// Errors (kInput): a file that has no such facts, or others than can be.
Result<ZeroFacts> ReadZeroFacts(const ByteSource& source);

// The parameters of each group in the order in which they lie in its flat vector. Errors (kInput):
// the same.
Result<std::vector<std::vector<NamedShape>>> ReadParameterShapes(const ByteSource& source);

// Those of the frozen parameters; none where there are none. Errors (kInput): the same.
Result<std::vector<NamedShape>> ReadFrozenShapes(const ByteSource& source);

}  // namespace fourpiles
