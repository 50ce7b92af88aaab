#pragma once

// Letters without regard to their case, in ASCII only: the names of formats, units and records.

#include <string>
#include <string_view>

namespace fourpiles {

constexpr char LowerCase(char c) {
  return 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

inline std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    c = LowerCase(c);
  }
  return lower;
}

}  // namespace fourpiles
