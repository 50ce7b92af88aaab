#include "formats/any_format.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "base/ascii.h"
#include "base/nearest_name.h"

namespace fourpiles {
namespace {

tl::unexpected<Error> NoChoices(const NumberFormat& format, std::string_view choices,
                                std::string_view where) {
  const std::string name(format.name);
  return WrongUsage({.where = std::string(where),
                     .found = "\"" + name + "\" has no choice \"" + std::string(choices) + "\"",
                     .hint = name + " has no choices"});
}

constexpr std::size_t kMostMeant = 4;  // more than so many do not help

tl::unexpected<Error> NotOfKind(std::string_view name, std::string_view where,
                                std::string_view kind, std::string_view wanted) {
  return WrongUsage({.where = std::string(where),
                     .found = "\"" + std::string(name) + "\" is a " + std::string(kind),
                     .expected = "expected a " + std::string(wanted),
                     .hint = "\"fourpiles formats\" lists both"});
}

}  // namespace

tl::unexpected<Error> NotOfOneValue(std::string_view name, std::string_view where) {
  return NotOfKind(name, where, "block format", "format of one value");
}

tl::unexpected<Error> NotOfBlocks(std::string_view name, std::string_view where) {
  return NotOfKind(name, where, "format of one value", "block format");
}

std::string FormatMeant(std::string_view name, std::span<const std::string_view> names) {
  const std::string beginning = LowerCase(name) + "_";
  std::vector<std::string_view> begun;
  std::ranges::copy_if(names, std::back_inserter(begun),
                       [&](std::string_view known) { return known.starts_with(beginning); });
  if (begun.empty() || begun.size() > kMostMeant) {
    return DidYouMean(name, names);
  }
  std::string text = "did you mean ";
  for (const std::string_view& known : begun) {
    const bool last = &known == &begun.back();
    text += (&known == &begun.front() ? "\""
             : last                   ? " or \""
                                      : ", \"") +
            std::string(known) + "\"";
  }
  return text + "?";
}

Result<AnyFormat> FindAnyFormat(std::string_view name, std::string_view where) {
  const std::string_view base = name.substr(0, name.find(':'));
  const std::vector<std::string_view> blocks = BlockFormatNames();
  if (std::ranges::count(blocks, LowerCase(base)) != 0) {
    return FindBlockFormat(name, where).map([](BlockFormat format) { return AnyFormat(format); });
  }
  Result<NumberFormat> format = FindFormat(base, where, blocks);
  if (format) {
    return base == name ? Result<AnyFormat>(*format)
                        : NoChoices(*format, name.substr(base.size() + 1), where);
  }
  return tl::make_unexpected(std::move(format).error());
}

std::vector<std::string_view> AliasesOf(const BlockFormat& format) {
  return WordsOf(format.aliases);
}

std::vector<std::string_view> BlockFormatNames() {
  std::vector<std::string_view> names;
  for (const BlockFormat& format : BlockFormats()) {
    names.push_back(format.name);
    std::ranges::copy(AliasesOf(format), std::back_inserter(names));
  }
  return names;
}

}  // namespace fourpiles
