#include "step/lines.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

namespace fourpiles {
namespace {

struct Group {
  Line line;
  std::string pattern;
  std::int64_t count = 0;
};

}  // namespace

std::vector<Line> LinesAt(const Tape& tape, Place place, Moment moment) {
  std::map<std::tuple<Pile, std::string, std::string, std::string>, std::size_t> places;
  std::vector<Group> groups;
  for (const Storage& storage : tape.storages) {
    if (storage.place != place || !IsAlive(storage, moment)) {
      continue;
    }
    const std::string& name = storage.pattern.empty() ? storage.what : storage.pattern;
    const auto [entry, is_new] =
        places.try_emplace({storage.pile, name, storage.format, storage.formula}, groups.size());
    if (is_new) {
      groups.push_back({.line = {.pile = storage.pile,
                                 .what = storage.what,
                                 .format = storage.format,
                                 .formula = storage.formula,
                                 .source = storage.source},
                        .pattern = name});
    }
    Group& group = groups[entry->second];
    group.line.elements += storage.elements;
    group.line.bytes += storage.bytes.expected;
    ++group.count;
  }
  std::vector<Line> lines;
  for (Group& group : groups) {
    if (group.count > 1) {
      group.line.what = fmt::format("{} × {}", group.pattern, group.count);
    }
    lines.push_back(std::move(group.line));
  }
  std::ranges::stable_sort(lines, {}, &Line::pile);
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
