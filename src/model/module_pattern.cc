#include "model/module_pattern.h"

#include <cstddef>

#include "tensors/name_pattern.h"

namespace fourpiles {
namespace {

bool IsMatch(std::string_view pattern, std::string_view name) {
  const bool is_name = pattern.find_first_of("*?") == std::string_view::npos;
  return is_name ? pattern == name : Matches(name, pattern);
}

}  // namespace

bool NamesModule(std::string_view pattern, std::string_view module) {
  while (!IsMatch(pattern, module)) {
    const std::size_t dot = module.find('.');
    if (dot == std::string_view::npos) {
      return false;
    }
    module.remove_prefix(dot + 1);
  }
  return true;
}

bool NamesPart(std::string_view pattern, std::string_view parameter) {
  while (!NamesModule(pattern, parameter)) {
    const std::size_t dot = parameter.rfind('.');
    if (dot == std::string_view::npos) {
      return false;
    }
    parameter = parameter.substr(0, dot);
  }
  return true;
}

}  // namespace fourpiles
