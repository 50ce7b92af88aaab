#include "step/lines.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

namespace fourpiles {
namespace {

// "model.layers.31 output" becomes "model.layers.* output", the same for all layers.
std::string WithoutNumbers(const std::string& what) {
  std::string pattern;
  for (const char c : what) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit) {
      pattern += c;
    } else if (!pattern.ends_with('*')) {
      pattern += '*';
    }
  }
  return pattern;
}

struct Group {
  Line line;
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
    const auto [entry, is_new] = places.try_emplace(
        {storage.pile, WithoutNumbers(storage.what), storage.format, storage.formula},
        groups.size());
    if (is_new) {
      groups.push_back({.line = {.pile = storage.pile,
                                 .what = storage.what,
                                 .format = storage.format,
                                 .formula = storage.formula,
                                 .source = storage.source}});
    }
    Group& group = groups[entry->second];
    group.line.elements += storage.elements;
    group.line.bytes += storage.bytes.expected;
    ++group.count;
  }
  std::vector<Line> lines;
  for (Group& group : groups) {
    if (group.count > 1) {
      group.line.what = fmt::format("{} × {}", WithoutNumbers(group.line.what), group.count);
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
