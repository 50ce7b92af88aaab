#include "step/optimizer_state.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace fourpiles {
namespace {

bool IsMatrix(const Parameter& parameter) {
  return parameter.shape.size() >= 2;
}

bool Keeps(ParameterSet set, const Block& block, const Parameter& parameter) {
  const bool hidden = IsMatrix(parameter) && IsNumbered(block);
  switch (set) {
    case ParameterSet::kAll:
      return true;
    case ParameterSet::kMatrices:
      return IsMatrix(parameter);
    case ParameterSet::kVectors:
      return !IsMatrix(parameter);
    case ParameterSet::kHidden:
      return hidden;
    case ParameterSet::kRest:
      break;
  }
  return !hidden;
}

// Numbers that are kept of one tensor. Worked: of 4096 × 11008 with rank 128, projected moments are
// 11008 × 128 and the projection 4096 × 128.
std::int64_t SizeOf(StateShape shape, const Parameter& parameter, std::int64_t rank) {
  const std::int64_t elements = ElementsOf(parameter) / parameter.copies;
  if (shape == StateShape::kFull || !IsMatrix(parameter)) {
    return elements;
  }
  const std::int64_t columns = parameter.shape.back();
  const std::int64_t rows = parameter.shape[parameter.shape.size() - 2];
  const std::int64_t matrices = elements / (rows * columns);
  const std::int64_t narrow = std::min(rows, columns);
  switch (shape) {
    case StateShape::kRows:
      return matrices * rows;
    case StateShape::kColumns:
      return matrices * columns;
    case StateShape::kProjected:
      return matrices * std::max(rows, columns) * std::min(rank, narrow);
    default:
      return matrices * narrow * std::min(rank, narrow);
  }
}

std::string WordsOf(StateShape shape, std::int64_t rank) {
  switch (shape) {
    case StateShape::kFull:
      return "trainable parameters";
    case StateShape::kRows:
      return "rows of matrices";
    case StateShape::kColumns:
      return "columns of matrices";
    case StateShape::kProjected:
      return fmt::format("numbers of gradients of rank {}", rank);
    case StateShape::kProjection:
      break;
  }
  return fmt::format("numbers of projections to rank {}", rank);
}

class Amounts {
 public:
  void Add(StateAmount amount) {
    const auto same = std::ranges::find_if(amounts_, [&](const StateAmount& other) {
      return other.what == amount.what && other.words == amount.words &&
             other.type.name == amount.type.name && other.place == amount.place;
    });
    if (same == amounts_.end()) {
      amounts_.push_back(std::move(amount));
    } else {
      same->elements += amount.elements;
    }
  }
  std::vector<StateAmount> Take() { return std::move(amounts_); }

 private:
  std::vector<StateAmount> amounts_ = {};
};

bool IsQuantised(const BlockScales& scales, std::int64_t size) {
  return scales.block > 0 && size >= scales.least &&
         !(scales.whole_blocks && size % scales.block != 0);
}

ElementType CodesOf(const OptimizerState& state) {
  if (state.format) {
    return TypeOf(*state.format);
  }
  return {.name = state.code_bits == 8 ? "uint8" : "uint4", .bits = state.code_bits};
}

// So many tensors alike, of `size` elements.
struct Alike {
  std::int64_t tensors = 1;
  std::int64_t size = 0;
};

void AddQuantised(Amounts& amounts, const OptimizerState& state, const Alike& alike,
                  StateAmount amount) {
  const BlockScales& scales = state.scales;
  amount.type = CodesOf(state);
  amounts.Add(amount);
  const std::int64_t blocks = (alike.size + scales.block - 1) / scales.block;
  amounts.Add({.what = state.name + " scales",
               .words = fmt::format("blocks of {}", scales.block),
               .type = kFloat32,
               .elements = alike.tensors * blocks});
  if (scales.table > 0) {
    amounts.Add({.what = state.name + " maps",
                 .words = fmt::format("numbers, {} a tensor", scales.table),
                 .type = kFloat32,
                 .elements = alike.tensors * scales.table});
  }
}

// Of one parameter, in all layers that have it.
struct KeptParameter {
  const Parameter& parameter;
  std::int64_t layers = 1;
};

void AddAmounts(Amounts& amounts, const KeptParameter& kept, const Optimizer& optimizer,
                const OptimizerState& state, const NumberFormat& usual) {
  const Parameter& parameter = kept.parameter;
  const Alike alike = {.tensors = parameter.copies * kept.layers,
                       .size = SizeOf(state.shape, parameter, optimizer.rank)};
  const bool paged = state.paged_from > 0 && alike.size >= state.paged_from;
  StateAmount amount = {.what = state.name,
                        .words = WordsOf(state.shape, optimizer.rank),
                        .place = paged ? Place::kHost : Place::kDevice,
                        .elements = alike.tensors * alike.size};
  if (IsQuantised(state.scales, alike.size)) {
    AddQuantised(amounts, state, alike, std::move(amount));
    return;
  }
  const std::optional<NumberFormat>& fixed =
      state.scales.block > 0 ? state.otherwise : state.format;
  const bool float32 = parameter.float32 && !fixed;
  amount.words += float32 ? " in float32" : "";
  amount.type = float32 ? kFloat32 : TypeOf(fixed.value_or(usual));
  amounts.Add(std::move(amount));
}

}  // namespace

std::vector<StateAmount> AmountsOf(const Network& network, const Optimizer& optimizer,
                                   const OptimizerState& state, const NumberFormat& usual) {
  Amounts amounts;
  for (const Block& block : network.blocks) {
    for (const Parameter& parameter : block.parameters) {
      if (parameter.trainable && Keeps(state.of, block, parameter)) {
        AddAmounts(amounts, {parameter, block.repeat}, optimizer, state, usual);
      }
    }
  }
  return amounts.Take();
}

}  // namespace fourpiles
