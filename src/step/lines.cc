#include "step/lines.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fourpiles {
namespace {

struct Group {
  Line line;
  std::int64_t count = 0;
};

// What a storage is, in words; those alike have the same.
StorageText TextOf(const Tape& tape, const Storage& storage) {
  if (storage.text >= 0) {
    return (*tape.texts)[static_cast<std::size_t>(storage.text)];
  }
  const Kernel& kernel = tape.moments[static_cast<std::size_t>(storage.made)];
  const Action& action = tape.actions[static_cast<std::size_t>(kernel.action)];
  std::string what = storage.slot;
  if (action.kind != ActionKind::kStep) {
    const Block& block = tape.network->blocks[static_cast<std::size_t>(action.block)];
    const std::string op =
        kernel.op < 0 ? "" : block.operators[static_cast<std::size_t>(kernel.op)].name;
    what = fmt::format("{}{}{} {}", block.name, block.name.empty() || op.empty() ? "" : ".", op,
                       storage.slot);
  }
  if (kernel.kind->name != std::string_view(storage.slot)) {
    what += fmt::format(" of {}", kernel.kind->name);
  }
  const std::span<const std::int64_t> lengths(storage.shape.lengths.data(),
                                              static_cast<std::size_t>(storage.shape.rank));
  return {.what = std::move(what),
          .formula = fmt::format("{}", fmt::join(lengths, " × ")),
          .source = kernel.kind->source};
}

}  // namespace

std::vector<Line> LinesAt(const Tape& tape, Place place, Moment moment) {
  std::map<std::tuple<Pile, std::string, std::string_view, std::string>, std::size_t> places;
  std::vector<Group> groups;
  for (const Storage& storage : tape.storages) {
    if (storage.place != place || !IsAlive(storage, moment)) {
      continue;
    }
    const StorageText text = TextOf(tape, storage);
    const auto [entry, is_new] =
        places.try_emplace({storage.pile, text.what, storage.format, text.formula}, groups.size());
    if (is_new) {
      groups.push_back({.line = {.pile = storage.pile,
                                 .what = text.what,
                                 .format = std::string(storage.format),
                                 .formula = text.formula,
                                 .source = text.source}});
    }
    Group& group = groups[entry->second];
    group.line.elements += Elements(storage.elements.value() * storage.copies);
    group.line.bytes += ExpectedBytes(storage);
    group.count += storage.copies;
  }
  std::vector<Line> lines;
  for (Group& group : groups) {
    if (group.count > 1) {
      group.line.what += fmt::format(" × {}", group.count);
    }
    lines.push_back(std::move(group.line));
  }
  std::ranges::stable_sort(lines, {}, &Line::pile);
  return lines;
}

std::vector<Line> LargestAt(const Tape& tape, Place place, Moment moment, std::size_t most) {
  std::vector<Line> lines = LinesAt(tape, place, moment);
  std::ranges::stable_sort(lines, std::ranges::greater(), &Line::bytes);
  lines.resize(std::min(lines.size(), most));
  return lines;
}

std::map<Pile, FormatBytes> FormatsAt(const Tape& tape, Place place, Moment moment) {
  std::map<Pile, FormatBytes> piles;
  for (const Line& line : LinesAt(tape, place, moment)) {
    piles[line.pile][line.format] += line.bytes;
  }
  return piles;
}

}  // namespace fourpiles
