#include "base/terminal_text.h"

#include <algorithm>

#include <fmt/format.h>

namespace fourpiles {
namespace {

struct Character {
  char32_t code = 0;
  std::size_t bytes = 0;  // 0: the text does not begin with well-formed UTF-8
};

// The first character of a text that is not empty (Unicode 15, table 3-7).
Character FirstCharacter(std::string_view text) {
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) {
    return {lead, 1};
  }
  const std::size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < bytes) {
    return {};
  }
  char32_t code = lead & (0x7FU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) {
      return {};
    }
    code = code << 6 | (byte(i) & 0x3FU);
  }
  const bool overlong = (bytes == 3 && code < 0x800) || (bytes == 4 && code < 0x10000);
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  return overlong || surrogate || code > 0x10FFFF ? Character{} : Character{code, bytes};
}

// First and last of each run of characters that are written out.
constexpr struct {
  char32_t first;
  char32_t last;
} kUnsafe[] = {
    {0x00, 0x1F},        // C0 controls
    {0x7F, 0x9F},        // delete, C1 controls
    {0x061C, 0x061C},    // Arabic letter mark
    {0x200B, 0x200F},    // zero-width characters, direction marks
    {0x2028, 0x202E},    // line separators, direction embeddings and overrides
    {0x2060, 0x206F},    // invisible operators, direction isolates
    {0xFEFF, 0xFEFF},    // byte order mark
    {0xFFF9, 0xFFFB},    // annotations
    {0xE0000, 0xE007F},  // tags
};

std::string Escape(char32_t code) {
  if (code == '\n') {
    return "\\n";
  }
  if (code == '\t') {
    return "\\t";
  }
  const auto value = static_cast<std::uint32_t>(code);
  return code < 0x80 ? fmt::format("\\x{:02x}", value) : fmt::format("\\u{:04x}", value);
}

}  // namespace

std::string EscapeForTerminal(std::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  while (!text.empty()) {
    const auto [code, bytes] = FirstCharacter(text);
    const bool unsafe =
        std::any_of(std::begin(kUnsafe), std::end(kUnsafe),
                    [code = code](auto run) { return run.first <= code && code <= run.last; });
    if (bytes == 0) {
      safe += fmt::format("\\x{:02x}", static_cast<unsigned char>(text.front()));
    } else if (unsafe) {
      safe += Escape(code);
    } else {
      safe += text.substr(0, bytes);
    }
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  return safe;
}

}  // namespace fourpiles
