#include "model/tensor_groups.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/terminal_text.h"

namespace fourpiles {
namespace {

constexpr std::size_t kMostNames = 3;
constexpr std::size_t kMostRuns = 4;
constexpr std::size_t kMostLength = 120;  // of a name

bool IsNumber(std::string_view text) {
  constexpr std::size_t kMostDigits = 9;
  return !text.empty() && text.size() <= kMostDigits &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

// Runs in order, those that touch joined.
std::vector<NumberRun> Joined(std::vector<NumberRun> runs) {
  std::sort(runs.begin(), runs.end());
  std::vector<NumberRun> joined;
  for (const NumberRun& run : runs) {
    if (!joined.empty() && run.first <= joined.back().second + 1) {
      joined.back().second = std::max(joined.back().second, run.second);
    } else {
      joined.push_back(run);
    }
  }
  return joined;
}

// "7", "{0..2}", "{0,2,4..9,…}".
std::string Braces(const std::vector<NumberRun>& runs) {
  const std::vector<NumberRun> joined = Joined(runs);
  if (joined.size() == 1 && joined.front().first == joined.front().second) {
    return std::to_string(joined.front().first);
  }
  std::string text;
  for (std::size_t i = 0; i < std::min(joined.size(), kMostRuns); ++i) {
    const auto [first, last] = joined[i];
    text += i == 0 ? "" : ",";
    text += first == last ? std::to_string(first) : fmt::format("{}..{}", first, last);
  }
  return fmt::format("{{{}{}}}", text, joined.size() > kMostRuns ? ",..." : "");
}

}  // namespace

NumberedName Numbered(std::string_view name) {
  NumberedName numbered;
  std::size_t begin = 0;
  while (begin <= name.size()) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    if (IsNumber(part)) {
      numbered.pattern += "{}";
      numbered.numbers.push_back(std::stoll(std::string(part)));
    } else {
      numbered.pattern += part;
    }
    if (end < name.size()) {
      numbered.pattern += '.';
    }
    begin = end + 1;
  }
  return numbered;
}

void TensorGroups::Add(std::string_view name) {
  const NumberedName numbered = Numbered(name);
  std::vector<std::vector<NumberRun>> numbers;
  for (const std::int64_t number : numbered.numbers) {
    numbers.push_back({{number, number}});
  }
  Add(numbered.pattern, numbers, 1);
}

void TensorGroups::Add(const std::string& pattern,
                       const std::vector<std::vector<NumberRun>>& numbers, std::int64_t count) {
  count_ += count;
  const auto [place, is_new] = groups_.try_emplace(pattern);
  if (is_new) {
    order_.push_back(pattern);
  }
  auto& places = place->second.numbers;
  places.resize(std::max(places.size(), numbers.size()));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    for (const NumberRun& run : numbers[i]) {
      // Most come one after the other.
      if (!places[i].empty() && places[i].back().second + 1 == run.first) {
        places[i].back().second = run.second;
      } else if (places[i].empty() || places[i].back() != run) {
        places[i].push_back(run);
      }
    }
  }
}

std::string TensorGroups::Listed() const {
  std::string text;
  for (std::size_t i = 0; i < std::min(order_.size(), kMostNames); ++i) {
    std::string name = EscapeForTerminal(order_[i].substr(0, kMostLength));
    for (const std::vector<NumberRun>& runs : groups_.find(order_[i])->second.numbers) {
      const std::size_t place = name.find("{}");
      if (place != std::string::npos) {
        name.replace(place, 2, Braces(runs));
      }
    }
    text += (i == 0 ? "" : ", ") + name;
  }
  if (order_.size() > kMostNames) {
    const std::size_t others = order_.size() - kMostNames;
    text += fmt::format(" and {} other name{}", others, others == 1 ? "" : "s");
  }
  return text;
}

}  // namespace fourpiles
