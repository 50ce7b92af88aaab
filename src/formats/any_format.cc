#include "formats/any_format.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "base/ascii.h"

namespace fourpiles {
namespace {

tl::unexpected<Error> NoChoices(const NumberFormat& format, std::string_view choices,
                                std::string_view where) {
  const std::string name(format.name);
  return WrongUsage({.where = std::string(where),
                     .found = "\"" + name + "\" has no choice \"" + std::string(choices) + "\"",
                     .hint = name + " has no choices"});
}

}  // namespace

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
