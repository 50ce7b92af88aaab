#include "tensors/name_pattern.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fourpiles {
namespace {

constexpr std::string_view kPlace = "{}";
constexpr std::size_t kMostDigits = 15;
constexpr std::size_t kMostRuns = 3;
constexpr std::size_t kMostNumbers = 8;  // of a name; later ones are letters like any other

// The next separator from `begin` on, or the end. Written out, because find_first_of() searches the
// set for every letter.
std::size_t EndOfPart(std::string_view name, std::size_t begin) {
  while (begin < name.size() && name[begin] != '.' && name[begin] != '/') {
    ++begin;
  }
  return begin;
}

bool IsNumber(std::string_view part) {
  return !part.empty() && part.size() <= kMostDigits &&
         std::ranges::all_of(part, [](char c) { return '0' <= c && c <= '9'; });
}

// Neighbours without a gap: {0, 1, 2, 7} → {0, 2}, {7, 7}.
std::vector<std::pair<std::int64_t, std::int64_t>> RunsOf(const std::vector<std::int64_t>& sorted) {
  std::vector<std::pair<std::int64_t, std::int64_t>> runs;
  for (const std::int64_t value : sorted) {
    if (!runs.empty() && runs.back().second + 1 == value) {
      runs.back().second = value;
    } else {
      runs.emplace_back(value, value);
    }
  }
  return runs;
}

bool HasEvenSteps(const std::vector<std::int64_t>& sorted) {
  for (std::size_t i = 2; i < sorted.size(); ++i) {
    if (sorted[i] - sorted[i - 1] != sorted[1] - sorted[0]) {
      return false;
    }
  }
  return sorted.size() > 2;
}

std::string ValuesText(const std::vector<std::int64_t>& sorted) {
  if (sorted.size() == 1) {
    return fmt::format("{}", sorted.front());
  }
  const auto runs = RunsOf(sorted);
  if (runs.size() > kMostRuns) {
    return HasEvenSteps(sorted)
               ? fmt::format("{{{},{},…,{}}}", sorted[0], sorted[1], sorted.back())
               : fmt::format("{{{}..{}: {}}}", sorted.front(), sorted.back(), sorted.size());
  }
  std::vector<std::string> texts;
  texts.reserve(runs.size());
  for (const auto& [first, last] : runs) {
    texts.push_back(first == last ? fmt::format("{}", first) : fmt::format("{}..{}", first, last));
  }
  return fmt::format("{{{}}}", fmt::join(texts, ","));
}

}  // namespace

NamePattern PatternOf(std::string_view name) {
  NamePattern pattern;
  pattern.text.reserve(name.size());
  while (true) {
    const std::size_t end = EndOfPart(name, 0);
    const std::string_view part = name.substr(0, end);
    if (IsNumber(part) && pattern.numbers.size() < kMostNumbers) {
      std::int64_t number = 0;
      std::from_chars(part.data(), part.data() + part.size(), number);
      pattern.numbers.push_back(number);
      pattern.text += kPlace;
    } else {
      pattern.text += part;
    }
    if (end == name.size()) {
      return pattern;
    }
    pattern.text += name[end];
    name.remove_prefix(end + 1);
  }
}

std::string WithValues(std::string_view pattern,
                       const std::vector<std::vector<std::int64_t>>& values) {
  std::string text;
  for (const std::vector<std::int64_t>& each : values) {
    const std::size_t place = std::min(pattern.find(kPlace), pattern.size());
    text += pattern.substr(0, place);
    text += ValuesText(each);
    pattern.remove_prefix(std::min(place + kPlace.size(), pattern.size()));
  }
  return text.append(pattern);
}

std::size_t NameGroups::GroupOf(std::string_view name, std::string_view kind) {
  NamePattern pattern = PatternOf(name);
  // With their lengths, so that no letter of a name can stand for a boundary.
  const std::size_t lengths[] = {pattern.text.size(), pattern.numbers.size()};
  std::string key = pattern.text;
  key.append(kind).append(reinterpret_cast<const char*>(lengths), sizeof lengths);
  const std::size_t group = keys_.NumberOf(key);
  if (group == groups_.size()) {
    groups_.push_back({.pattern = std::move(pattern.text),
                       .values = std::vector<std::vector<std::int64_t>>(pattern.numbers.size())});
  }
  for (std::size_t i = 0; i < pattern.numbers.size(); ++i) {
    groups_[group].values[i].push_back(pattern.numbers[i]);
  }
  return group;
}

std::string NameGroups::NameOf(std::size_t group) const {
  std::vector<std::vector<std::int64_t>> values = groups_[group].values;
  for (std::vector<std::int64_t>& each : values) {
    std::ranges::sort(each);
    each.erase(std::unique(each.begin(), each.end()), each.end());
  }
  return WithValues(groups_[group].pattern, values);
}

std::string_view ModuleOf(std::string_view name) {
  std::size_t begin = 0;
  bool behind_number = false;
  while (true) {
    const std::size_t end = EndOfPart(name, begin);
    const std::string_view part = name.substr(begin, end - begin);
    if (behind_number) {
      // GGUF names a layer's tensors flat: "blk.3.attn_q.weight".
      const std::size_t word = name.starts_with("blk.") ? part.find('_') : end;
      return name.substr(0, begin + std::min(word, part.size()));
    }
    if (end == name.size()) {
      return name.substr(0, begin == 0 || IsNumber(part) ? end : begin - 1);
    }
    behind_number = IsNumber(part);
    begin = end + 1;
  }
}

bool Matches(std::string_view name, std::string_view pattern) {
  if (pattern.find_first_of("*?") == std::string_view::npos) {
    return name.find(pattern) != std::string_view::npos;
  }
  // Where a later part fails, only the last "*" takes one letter more.
  std::size_t n = 0;
  std::size_t p = 0;
  std::size_t star = std::string_view::npos;
  std::size_t star_name = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_name = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++star_name;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

bool MatchesAny(std::string_view name, const std::vector<std::string>& filters) {
  return filters.empty() || std::ranges::any_of(filters, [&](const std::string& filter) {
           return Matches(name, filter);
         });
}

}  // namespace fourpiles
