#pragma once

// Letters without regard to their case, in ASCII only, and parts of names: those of formats, units,
// records and tensors.

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

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

// Whether the text begins so; what it begins with is then taken off.
constexpr bool TakePrefix(std::string_view& text, std::string_view prefix) {
  const bool has = text.starts_with(prefix);
  text.remove_prefix(has ? prefix.size() : 0);
  return has;
}

// The words of a text in which one space stands between two: "fp16 half" is "fp16", "half".
inline std::vector<std::string_view> WordsOf(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

}  // namespace fourpiles
