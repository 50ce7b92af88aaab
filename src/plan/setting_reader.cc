#include "plan/setting_reader.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/nearest_name.h"
#include "base/try.h"
#include "units/parse.h"

namespace fourpiles {

const SetValue* SettingReader::Find(std::string_view name) const {
  const auto found = settings_.find(name);
  return found == settings_.end() ? nullptr : &found->second;
}

Result<std::optional<std::int64_t>> SettingReader::OptionalCount(std::string_view name,
                                                                 Range range) const {
  const SetValue* set = Find(name);
  if (set == nullptr) {
    return std::nullopt;
  }
  TRY(const std::int64_t count, ParseCount(set->text, set->where, range));
  return count;
}

Result<std::int64_t> SettingReader::Count(std::string_view name, std::int64_t otherwise,
                                          Range range) {
  TRY(const std::optional<std::int64_t> count, OptionalCount(name, range));
  if (!count) {
    NoteDefault(name, fmt::to_string(otherwise));
  }
  return count.value_or(otherwise);
}

Result<std::optional<double>> SettingReader::OptionalNumber(std::string_view name,
                                                            NumberRange range) const {
  const SetValue* set = Find(name);
  if (set == nullptr) {
    return std::nullopt;
  }
  double number = 0;
  const char* const end = set->text.data() + set->text.size();
  const auto [stopped, error] = std::from_chars(set->text.data(), end, number);
  const bool whole = error == std::errc() && stopped == end;
  if (!whole || !(number > range.least && number <= range.most)) {
    return WrongUsage(
        {.where = set->where,
         .found = fmt::format("\"{}\" is {}", set->text, whole ? "out of range" : "no number"),
         .expected = fmt::format("expected more than {} and at most {}", range.least, range.most),
         .hint = "for example 0.9"});
  }
  return number;
}

Result<NumberFormat> SettingReader::Format(std::string_view name, const NumberFormat& otherwise) {
  const SetValue* set = Find(name);
  if (set == nullptr) {
    NoteDefault(name, otherwise.name);
    return otherwise;
  }
  return FindFormat(set->text, set->where);
}

SetValue SettingReader::Text(std::string_view name, std::string_view otherwise) {
  const SetValue* set = Find(name);
  if (set == nullptr) {
    NoteDefault(name, otherwise);
    return {std::string(otherwise), "--" + std::string(name)};
  }
  return *set;
}

Result<std::size_t> SettingReader::Word(std::string_view name,
                                        std::span<const std::string_view> words,
                                        std::size_t otherwise) {
  const SetValue set = Text(name, words[otherwise]);
  const auto found = std::ranges::find(words, set.text);
  if (found == words.end()) {
    return WrongUsage({.where = set.where,
                       .found = fmt::format("unknown word \"{}\"", set.text),
                       .expected = DidYouMean(set.text, words),
                       .hint = fmt::format("one of {}", fmt::join(words, ", "))});
  }
  return static_cast<std::size_t>(found - words.begin());
}

void SettingReader::NoteDefault(std::string_view name, std::string_view value) {
  defaults_.push_back({KeyOf({.name = name}), std::string(value)});
}

}  // namespace fourpiles
