#include "base/terminal_text.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/utf8.h"

namespace fourpiles {
namespace {

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
