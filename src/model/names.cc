#include "model/names.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/ascii.h"
#include "base/nearest_name.h"

namespace fourpiles {
namespace {

std::string_view LastPart(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

bool Means(const Names& record, std::string_view name) {
  return SameName(record.id, name) || std::any_of(record.aliases.begin(), record.aliases.end(),
                                                  [name](const std::string& alias) {
                                                    return SameName(alias, name) ||
                                                           SameName(LastPart(alias), name);
                                                  });
}

}  // namespace

bool SameName(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return LowerCase(x) == LowerCase(y); });
}

bool HoldsName(std::string_view text, std::string_view name) {
  const auto same = [](char x, char y) { return LowerCase(x) == LowerCase(y); };
  return std::search(text.begin(), text.end(), name.begin(), name.end(), same) != text.end();
}

Result<std::size_t> FindName(std::string_view name, std::span<const Names> records,
                             const Sought& sought) {
  const auto found = std::find_if(records.begin(), records.end(),
                                  [name](const Names& record) { return Means(record, name); });
  if (found != records.end()) {
    return static_cast<std::size_t>(found - records.begin());
  }
  std::vector<std::string_view> known;
  for (const Names& record : records) {
    known.push_back(record.id);
    for (const std::string_view alias : record.aliases) {
      known.push_back(LastPart(alias));
    }
  }
  return WrongUsage({.where = std::string(sought.where),
                     .found = fmt::format("unknown {} \"{}\"", sought.kind, name),
                     .expected = DidYouMean(name, known),
                     .hint = std::string(sought.hint)});
}

}  // namespace fourpiles
