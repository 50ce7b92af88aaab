#include "step/layer_table.h"

#include <algorithm>
#include <cstdlib>
#include <map>

namespace fourpiles {
namespace {

std::size_t Index(std::int64_t number) {
  return static_cast<std::size_t>(number);
}

const Kernel& MakerOf(const Tape& tape, const Storage& storage) {
  return tape.moments[Index(storage.made)];
}

const Block& BlockOf(const Tape& tape, const Action& action) {
  return tape.network->blocks[Index(action.block)];
}

std::string OperatorName(const Tape& tape, const Kernel& kernel) {
  const Block& block = BlockOf(tape, tape.actions[Index(kernel.action)]);
  const std::string name = kernel.op < 0 ? "" : block.operators[Index(kernel.op)].name;
  return name.empty() ? kernel.kind->name : name;
}

struct LayerPlace {
  std::int64_t block = 0;
  std::int64_t layer = 0;
};

// The layer nearest the middle of those that were played for themselves.
std::optional<LayerPlace> MiddlePlace(const Tape& tape) {
  std::int64_t layers = 0;
  std::int64_t distance = 0;
  for (const Block& block : tape.network->blocks) {
    layers += IsNumbered(block) ? block.repeat : 0;
  }
  std::optional<LayerPlace> nearest;
  std::int64_t number = 0;
  for (const Action& action : tape.actions) {
    const Block& block = BlockOf(tape, action);
    if (action.kind == ActionKind::kForward && action.micro_batch == 0 && IsNumbered(block)) {
      if (action.layers == 1 && (!nearest || std::abs(number - layers / 2) < distance)) {
        nearest = LayerPlace{.block = action.block, .layer = action.layer};
        distance = std::abs(number - layers / 2);
      }
      number += action.layers;
    }
  }
  return nearest;
}

SavedTensor Describe(const Tape& tape, const Storage& storage) {
  const Kernel& maker = MakerOf(tape, storage);
  const Kernel& keeper = storage.kept < 0 ? maker : tape.moments[Index(storage.kept)];
  const auto begin = storage.shape.lengths.begin();
  return {.operator_name = OperatorName(tape, maker),
          .what = storage.slot,
          .shape = {begin, begin + storage.shape.rank},
          .format = std::string(storage.format),
          .bytes = ExpectedBytes(storage),
          .kernel = maker.kind->name,
          .kept_by = keeper.kind->name,
          .source = keeper.kind->source};
}

}  // namespace

std::optional<LayerTable> MiddleLayer(const Tape& tape) {
  const std::optional<LayerPlace> place = MiddlePlace(tape);
  if (!place) {
    return std::nullopt;
  }
  LayerTable table = {.name = LayerName(tape.network->blocks[Index(place->block)], place->layer)};
  for (const Storage& storage : tape.storages) {
    if (!IsSaved(tape, storage)) {
      continue;
    }
    const Action& action = tape.actions[Index(MakerOf(tape, storage).action)];
    if (action.block == place->block && action.layer == place->layer) {
      table.saved.push_back(Describe(tape, storage));
      table.bytes += table.saved.back().bytes;
    }
  }
  return table;
}

std::vector<OperatorShare> SavedByOperator(const Tape& tape) {
  std::map<std::string, std::size_t> places;
  std::vector<OperatorShare> shares;
  for (const Storage& storage : tape.storages) {
    if (!IsSaved(tape, storage)) {
      continue;
    }
    const Kernel& maker = MakerOf(tape, storage);
    const std::string& block = BlockOf(tape, tape.actions[Index(maker.action)]).name;
    const std::string name = (block.empty() ? "" : block + ".") + OperatorName(tape, maker);
    const auto [entry, is_new] = places.try_emplace(name, shares.size());
    if (is_new) {
      shares.push_back({.name = name});
    }
    shares[entry->second].bytes += ExpectedBytes(storage);
  }
  std::ranges::stable_sort(shares, std::ranges::greater(), &OperatorShare::bytes);
  return shares;
}

}  // namespace fourpiles
