#pragma once

// Characters of UTF-8 text.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace fourpiles {

struct Character {
  char32_t code = 0;
  std::size_t bytes = 0;  // 0: the text does not begin with well-formed UTF-8
};

// The first character of a text that is not empty (Unicode 15, table 3-7).
Character FirstCharacter(std::string_view text);

// How many bytes from the start are well-formed UTF-8: all, in a text that is.
std::size_t Utf8Prefix(std::string_view text);

// Appends the character of that code, which is at most 0x1FFFFF.
void AppendUtf8(std::uint32_t code, std::string& text);

}  // namespace fourpiles
