#include "plan/run_settings.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/try.h"
#include "plan/validate_fields.h"

namespace fourpiles {
namespace {

constexpr Range kDevices = {1, std::int64_t{1} << 20};
constexpr std::string_view kCount = "{}";

// A count as it is written.
std::optional<std::string> CountOf(const Fields& members, std::string_view key) {
  const auto count = members.OptionalInteger(key, kDevices);
  return count && *count ? std::optional(fmt::format("{}", **count)) : std::nullopt;
}

Result<void> AddCount(RunSettings& typed, std::string_view field, std::string_view key,
                      const std::string& count) {
  const RunWord* word = FindRunWord(field, key);
  if (word == nullptr) {
    return NotExpressible(fmt::format("{}.{} is not in the vocabulary", field, key));
  }
  if (!word->why_not.empty()) {
    return NotExpressible(std::string(word->why_not));
  }
  if (word->means.find(kCount) == std::string_view::npos) {
    return NotExpressible(fmt::format("{}.{}: {} is no word of it", field, key, count));
  }
  AddSettings(typed, word->means, count);
  return {};
}

// "key=value"; a key of which no value can be expressed has its reason.
Result<void> AddValue(RunSettings& typed, std::string_view field, std::string_view key,
                      std::string_view value) {
  const RunWord* of_key = FindRunWord(field, key);
  const std::string word = fmt::format("{}={}", key, value);
  if (FindRunWord(field, word) == nullptr && of_key != nullptr && !of_key->why_not.empty()) {
    return NotExpressible(std::string(of_key->why_not));
  }
  return AddWord(typed, field, word);
}

Result<void> AddMember(RunSettings& typed, std::string_view field, const Fields& members,
                       std::string_view key) {
  if (const auto count = CountOf(members, key)) {
    return AddCount(typed, field, key, *count);
  }
  if (const auto flag = members.OptionalBool(key); flag && *flag) {
    const bool has_opposite = !**flag &&
                              FindRunWord(field, fmt::format("{}=true", key)) != nullptr &&
                              FindRunWord(field, fmt::format("{}=false", key)) == nullptr;
    return has_opposite ? Result<void>() : AddValue(typed, field, key, **flag ? "true" : "false");
  }
  if (const auto text = members.OptionalText(key); text && *text) {
    return AddValue(typed, field, key, **text);
  }
  return NotExpressible(fmt::format("{}.{}: neither a count nor a word", field, key));
}

}  // namespace

void AddSettings(RunSettings& typed, std::string_view means, std::string_view count) {
  while (!means.empty()) {
    const std::size_t end = std::min(means.find(' '), means.size());
    const std::string_view piece = means.substr(0, end);
    const std::size_t equals = piece.find('=');
    std::string value(piece.substr(equals + 1));
    if (const std::size_t at = value.find(kCount); at != std::string::npos) {
      value.replace(at, kCount.size(), count);
    }
    typed.insert_or_assign(std::string(piece.substr(0, equals)), std::move(value));
    means.remove_prefix(std::min(end + 1, means.size()));
  }
}

std::string TakeOr(RunSettings& typed, const std::string& key, std::string otherwise) {
  const auto found = typed.find(key);
  if (found == typed.end()) {
    return otherwise;
  }
  std::string value = std::move(found->second);
  typed.erase(found);
  return value;
}

Result<void> AddWord(RunSettings& typed, std::string_view field, std::string_view text) {
  const RunWord* word = FindRunWord(field, text);
  if (word == nullptr) {
    return NotExpressible(
        fmt::format("{}: \"{}\" is not in the vocabulary", field, PlainWord(text)));
  }
  if (!word->why_not.empty()) {
    return NotExpressible(std::string(word->why_not));
  }
  AddSettings(typed, word->means);
  return {};
}

void AddPhrase(RunSettings& typed, std::string_view field, std::string_view text) {
  if (const RunWord* word = FindRunPhrase(field, text)) {
    AddSettings(typed, word->means);
  }
}

Result<void> AddMembers(RunSettings& typed, std::string_view field, const Fields& members) {
  for (const auto& [key, value] : members.Members()) {
    if (!value.IsNull()) {
      TRY_VOID(AddMember(typed, field, members, key));
    }
  }
  return {};
}

Result<void> AddLayout(RunSettings& typed, const Fields& row) {
  const auto devices = row.OptionalInteger("devices", kDevices);
  if (!devices || !*devices) {
    return NotExpressible("no device count is given");
  }
  typed.insert_or_assign("devices", fmt::format("{}", **devices));
  const auto members = row.OptionalObject("parallel");
  if (!members) {
    return NotExpressible("parallel: not an object");
  }
  if (!*members) {
    return **devices == 1 ? Result<void>() : NotExpressible("no field parallel");
  }
  return AddMembers(typed, "parallel", **members);
}

}  // namespace fourpiles
