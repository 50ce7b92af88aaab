#include "cli/command.h"

namespace fourpiles::cli {

bool Arguments::Has(std::string_view name) const {
  return values_.find(name) != values_.end();
}

std::span<const std::string> Arguments::All(std::string_view name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::span<const std::string>() : found->second;
}

std::string_view Arguments::One(std::string_view name, std::string_view otherwise) const {
  const std::span<const std::string> all = All(name);
  return all.empty() ? otherwise : std::string_view(all.front());
}

}  // namespace fourpiles::cli
