#pragma once

// An optimizer, as far as memory is concerned, is the list of tensors it keeps for every parameter.
//
// Most keep a number for each element. Adafactor keeps a sum for each row and column of a matrix
// (Shazeer and Stern 2018, arXiv 1804.04235, algorithm 4), GaLore the moments of a projected
// gradient and the projection (Zhao et al. 2024, arXiv 2403.03507, algorithm 2), 8-bit ones a code
// for each element and a scale for each block (Dettmers et al. 2022, arXiv 2110.02861, section 2),
// and Muon other states for the layers' matrices than for the rest. All are records.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "fourpiles/formats.h"
#include "model/names.h"

namespace fourpiles {

// Of which parameters a state is kept. Matrices have two dimensions or more; hidden ones are those
// of the layers, and the rest is embeddings, output layer and vectors.
enum class ParameterSet { kAll, kMatrices, kVectors, kHidden, kRest };
std::string_view Name(ParameterSet set);  // "matrices"

// How many numbers are kept of one tensor. Of a matrix m × n: m × n, m, n; with rank r max(m, n) ×
// r, and the projection min(m, n) × r. Of a stack of matrices: of each.
enum class StateShape { kFull, kRows, kColumns, kProjected, kProjection };
std::string_view Name(StateShape shape);  // "rows"

// Codes, and a float32 scale for each block of them.
struct BlockScales {
  std::int64_t block = 0;     // elements that share a scale; 0: the state is not quantised
  std::int64_t least = 0;     // elements of the smallest tensor that is quantised
  bool whole_blocks = false;  // only tensors that blocks fill exactly are
  std::int64_t table = 0;     // float32 numbers of a quantisation map, for each tensor
};

struct OptimizerState {
  std::string name = {};                    // "exp_avg"
  std::optional<NumberFormat> format = {};  // without one: as the recipe has it
  ParameterSet of = ParameterSet::kAll;
  StateShape shape = StateShape::kFull;
  BlockScales scales = {};
  int code_bits = 0;  // of whole-number codes, in place of the format
  // Of the tensors that are not quantised; without one: as the recipe has it.
  std::optional<NumberFormat> otherwise = {};
  // Tensors of so many elements or more are pages of the host that the device fetches, which its
  // allocator does not count; 0: none.
  std::int64_t paged_from = 0;
};

struct Optimizer {
  Names names = {};
  std::string summary = {};
  std::vector<OptimizerState> states = {};
  // float32 numbers it keeps for every tensor on the host: its step counter.
  std::int64_t scalars = 0;
  // What a step needs for a moment: so many copies of the largest tensor when it takes one after
  // the other; of all tensors when it runs kernel by kernel over all (foreach). Adam's is the root
  // of its second moment (torch/optim/adam.py, _multi_tensor_adam, since 2.0). Without the second
  // it always takes one after the other.
  std::int64_t loop_temporaries = 0;
  std::optional<std::int64_t> foreach_temporaries = {};
  std::int64_t rank = 0;  // of projected gradients; 0: none are
  std::string source = {};
  std::string checked = {};  // the day, as 2026-11-29
};

// The record of one optimizer; `where` names it in errors.
Result<Optimizer> OptimizerFromJson(const Json& json, std::string_view where);

// The catalogue, in the order of data/optimizers.json.
const std::vector<Optimizer>& Optimizers();

// Whether what it keeps depends on the shapes of the tensors, and not on their elements alone.
bool NeedsShapes(const Optimizer& optimizer);

// The catalogue's optimizer of that id or alias, or the one in a file that ends in ".json". Those
// with a rank take another: "galore-adamw:rank=1024", which is then the id.
Result<Optimizer> FindOptimizer(std::string_view name, std::string_view where = "--optimizer");

}  // namespace fourpiles
