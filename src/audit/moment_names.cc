#include "audit/moment_names.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace fourpiles {
namespace {

constexpr std::string_view kPlaceholder = "{name}";
constexpr std::size_t kMostDropped = 8;  // parts at the beginning of a name

constexpr std::array kContainers = std::to_array<std::string_view>(
    {"model", "model_state_dict", "module", "net", "network", "params", "state_dict", "weights"});

struct Word {
  std::string_view text;
  StatePart part;
};
// PyTorch and Megatron; the JAX and TensorFlow of T5 and BERT; optax; TensorFlow's slots.
constexpr std::array kWords = std::to_array<Word>({
    {"exp_avg", StatePart::kFirst},
    {"exp_avg_sq", StatePart::kSecond},
    {"adam_m", StatePart::kFirst},
    {"adam_v", StatePart::kSecond},
    {"mu", StatePart::kFirst},
    {"nu", StatePart::kSecond},
    {"Adam", StatePart::kFirst},
    {"Adam_1", StatePart::kSecond},
});
constexpr std::array kShortWords = std::to_array<Word>({
    {"m", StatePart::kFirst},
    {"v", StatePart::kSecond},
});

template <class Words>
std::optional<StatePart> Find(std::string_view word, const Words& words) {
  const auto* const found = std::ranges::find(words, word, &Word::text);
  return found == words.end() ? std::nullopt : std::optional(found->part);
}

std::string Joined(const std::vector<std::string_view>& parts, std::size_t first) {
  std::string text;
  for (std::size_t i = first; i < parts.size(); ++i) {
    text += text.empty() ? "" : ".";
    text += parts[i];
  }
  return text;
}

bool HasOnePlaceholder(std::string_view pattern) {
  const std::size_t place = pattern.find(kPlaceholder);
  return place != std::string_view::npos &&
         pattern.find(kPlaceholder, place + 1) == std::string_view::npos &&
         pattern.size() > kPlaceholder.size();
}

}  // namespace

Result<MomentPatterns> ParseMomentPatterns(std::string_view text, std::string_view where) {
  const std::size_t comma = text.find(',');
  const std::string_view first = text.substr(0, comma);
  const std::string_view second =
      comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
  if (!HasOnePlaceholder(first) || !HasOnePlaceholder(second) || first == second) {
    return WrongUsage({.where = std::string(where),
                       .found = "\"" + std::string(text) + "\"",
                       .expected = "expected the names of both moments, each with one \"{name}\"",
                       .hint = "such as \"opt.m.{name},opt.v.{name}\""});
  }
  return MomentPatterns{.first = std::string(first), .second = std::string(second)};
}

std::optional<std::string_view> NameWithin(std::string_view pattern, std::string_view name) {
  const std::size_t place = pattern.find(kPlaceholder);
  const std::string_view before = pattern.substr(0, place);
  const std::string_view behind = pattern.substr(place + kPlaceholder.size());
  if (name.size() <= before.size() + behind.size() || !name.starts_with(before) ||
      !name.ends_with(behind)) {
    return std::nullopt;
  }
  return name.substr(before.size(), name.size() - before.size() - behind.size());
}

std::optional<StatePart> StatePartOf(std::string_view word, bool is_optimizers) {
  const auto part = Find(word, kWords);
  return part || !is_optimizers ? part : Find(word, kShortWords);
}

std::vector<std::string_view> NameParts(std::string_view name) {
  std::vector<std::string_view> parts;
  parts.reserve(static_cast<std::size_t>(std::ranges::count(name, '.')) + 1);
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find_first_of("./", begin), name.size());
    if (end > begin) {
      parts.push_back(name.substr(begin, end - begin));
    }
    begin = end + 1;
  }
  return parts;
}

std::optional<MomentName> MomentNameOf(std::string_view name, bool is_optimizers) {
  const std::vector<std::string_view> parts = NameParts(name);
  for (auto part = parts.begin(); part != parts.end(); ++part) {
    if (const auto word = StatePartOf(*part, is_optimizers)) {
      return MomentName{
          .part = *word, .behind = {std::next(part), parts.end()}, .before = {parts.begin(), part}};
    }
  }
  return std::nullopt;
}

void WeightNames::Add(std::string_view name, std::int32_t weight) {
  const std::vector<std::string_view> parts = NameParts(name);
  by_name_.try_emplace(Joined(parts, 0), weight);
  if (parts.size() > 1 && std::ranges::count(kContainers, parts.front()) > 0) {
    by_name_.try_emplace(Joined(parts, 1), weight);
  }
}

std::int32_t WeightNames::Find(const std::vector<std::string_view>& parts) const {
  for (std::size_t first = 0; first < std::min(parts.size(), kMostDropped + 1); ++first) {
    if (const auto found = by_name_.find(Joined(parts, first)); found != by_name_.end()) {
      return found->second;
    }
  }
  return -1;
}

std::int32_t WeightNames::Find(const MomentName& moment) const {
  const std::int32_t behind = Find(moment.behind);
  return behind >= 0 ? behind : Find(moment.before);
}

}  // namespace fourpiles
