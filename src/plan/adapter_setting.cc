#include "plan/adapter_setting.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/nearest_name.h"
#include "base/try.h"
#include "units/parse.h"

namespace fourpiles {
namespace {

constexpr std::string_view kKind = "lora";
constexpr std::string_view kAllLinear = "all-linear";
constexpr std::string_view kExample = "lora:rank=16,targets=all-linear,dropout=0.05";
constexpr std::array<std::string_view, 4> kKeys = {"rank", "targets", "dropout", "alpha"};
constexpr Range kRanks = {1, 1 << 20};  // no layer is wider

std::vector<std::string_view> SplitAt(char separator, std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::size_t end = text.find(separator); end != std::string_view::npos;
       end = text.find(separator)) {
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  parts.push_back(text);
  return parts;
}

// One KEY=VALUE and where it stands.
struct KeyValue {
  std::string_view key;
  std::string_view value;
  std::string where;
};

Result<KeyValue> ReadKeyValue(std::string_view text, const std::string& where) {
  const std::size_t equals = text.find('=');
  const std::string_view key = text.substr(0, equals);
  if (std::ranges::find(kKeys, key) == kKeys.end()) {
    return WrongUsage({.where = where,
                       .found = fmt::format("unknown key \"{}\"", key),
                       .expected = DidYouMean(key, kKeys),
                       .hint = fmt::format("known: {}", fmt::join(kKeys, ", "))});
  }
  if (equals == std::string_view::npos || equals + 1 == text.size()) {
    return WrongUsage({.where = where,
                       .found = fmt::format("{} has no value", key),
                       .expected = fmt::format("expected {}=VALUE", key),
                       .hint = fmt::format("as in {}", kExample)});
  }
  return KeyValue{key, text.substr(equals + 1), fmt::format("{}: {}", where, key)};
}

Result<double> ReadNumber(const KeyValue& part, std::string_view expected) {
  double number = 0;
  const char* const end = part.value.data() + part.value.size();
  const auto [stopped, error] = std::from_chars(part.value.data(), end, number);
  const bool is_number = error == std::errc() && stopped == end;
  const bool is_in_range = number >= 0 && (part.key != "dropout" || number < 1);
  if (!is_number || !is_in_range) {  // a NaN compares false
    return WrongUsage(
        {.where = part.where,
         .found = fmt::format("\"{}\" is {}", part.value, is_number ? "out of range" : "no number"),
         .expected = std::string(expected),
         .hint = fmt::format("as in {}", kExample)});
  }
  return number;
}

Result<std::vector<std::string>> ReadTargets(const KeyValue& part) {
  std::vector<std::string> targets;
  if (part.value == kAllLinear) {
    return targets;
  }
  for (const std::string_view name : SplitAt('+', part.value)) {
    if (name.empty()) {
      return WrongUsage({.where = part.where,
                         .found = fmt::format("an empty name in \"{}\"", part.value),
                         .expected = "expected all-linear or names joined by +",
                         .hint = "as in targets=q_proj+v_proj"});
    }
    targets.emplace_back(name);
  }
  return targets;
}

Result<void> ReadInto(LoraAdapter& adapter, const KeyValue& part) {
  if (part.key == "rank") {
    TRY(adapter.rank, ParseCount(part.value, part.where, kRanks));
  } else if (part.key == "targets") {
    TRY(adapter.targets, ReadTargets(part));
  } else if (part.key == "dropout") {
    TRY(adapter.dropout, ReadNumber(part, "expected a probability from 0 to below 1"));
  } else {
    TRY(const double alpha, ReadNumber(part, "expected a number of at least 0"));
    static_cast<void>(alpha);
  }
  return {};
}

}  // namespace

Result<std::optional<LoraAdapter>> ReadAdapter(const SettingReader& reader) {
  const SetValue* set = reader.Find(kAdapterSetting);
  if (set == nullptr) {
    return std::nullopt;
  }
  const std::string_view text = set->text;
  const std::size_t colon = text.find(':');
  if (text.substr(0, colon) != kKind) {
    return WrongUsage({.where = set->where,
                       .found = fmt::format("unknown adapter \"{}\"", text.substr(0, colon)),
                       .expected = "expected lora",
                       .hint = fmt::format("as in {}", kExample)});
  }
  // LitGPT's adapters have the format of the weights (litgpt/lora.py).
  const SetValue* implementation = reader.Find("implementation");
  LoraAdapter adapter = {.float32 = implementation == nullptr || implementation->text != "litgpt"};
  if (colon == std::string_view::npos) {
    return adapter;
  }
  std::vector<std::string_view> seen;
  for (const std::string_view piece : SplitAt(',', text.substr(colon + 1))) {
    TRY(const KeyValue part, ReadKeyValue(piece, set->where));
    if (std::ranges::find(seen, part.key) != seen.end()) {
      return WrongUsage({.where = set->where,
                         .found = fmt::format("{} stands twice", part.key),
                         .expected = "expected it once",
                         .hint = "leave one out"});
    }
    seen.push_back(part.key);
    TRY_VOID(ReadInto(adapter, part));
  }
  return adapter;
}

std::string AdapterSpec(const LoraAdapter& adapter) {
  std::string spec =
      fmt::format("lora:rank={},targets={}", adapter.rank,
                  adapter.targets.empty() ? std::string(kAllLinear)
                                          : fmt::format("{}", fmt::join(adapter.targets, "+")));
  return adapter.dropout == 0 ? spec : spec + fmt::format(",dropout={}", adapter.dropout);
}

}  // namespace fourpiles
