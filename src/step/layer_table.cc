#include "step/layer_table.h"

#include <algorithm>
#include <map>

namespace fourpiles {
namespace {

std::size_t Index(std::int64_t number) {
  return static_cast<std::size_t>(number);
}

const Kernel& MakerOf(const Tape& tape, const Storage& storage) {
  return tape.moments[Index(storage.born)];
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

std::optional<LayerPlace> MiddlePlace(const Network& network) {
  std::vector<LayerPlace> places;
  for (std::size_t i = 0; i < network.blocks.size(); ++i) {
    const Block& block = network.blocks[i];
    for (std::int64_t layer = 0; IsNumbered(block) && layer < block.repeat; ++layer) {
      places.push_back({.block = static_cast<std::int64_t>(i), .layer = layer});
    }
  }
  return places.empty() ? std::nullopt : std::optional(places[places.size() / 2]);
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
  const std::optional<LayerPlace> place = MiddlePlace(*tape.network);
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
