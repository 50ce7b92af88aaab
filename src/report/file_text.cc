#include "report/file_text.h"

#include "base/terminal_text.h"

namespace fourpiles {
namespace {

constexpr std::size_t kLongestName = 100;

bool InsideCharacter(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

}  // namespace

// Cut before it is escaped, so that a name of 100 MB costs nothing.
std::string Shown(std::string_view text, std::size_t longest) {
  if (text.size() <= longest) {
    return EscapeForTerminal(text);
  }
  std::size_t end = longest;
  while (end > 0 && InsideCharacter(text[end])) {
    --end;
  }
  return EscapeForTerminal(text.substr(0, end)) + "…";
}

std::string ShownName(std::string_view name) {
  return name.empty() ? "\"\"" : Shown(name, kLongestName);
}

std::string ShortName(std::string_view name, std::size_t most) {
  std::string shown = ShownName(name);
  if (shown.size() <= most) {
    return shown;
  }
  std::size_t begin = shown.size() - (most - 1);
  while (begin < shown.size() && InsideCharacter(shown[begin])) {
    ++begin;
  }
  return "…" + shown.substr(begin);
}

std::string CsvCell(std::string_view text) {
  std::string cell = EscapeForTerminal(text);
  if (!cell.empty() && std::string_view("=+-@\t\r").find(cell.front()) != std::string_view::npos) {
    cell.insert(cell.begin(), '\'');
  }
  if (cell.find_first_of(",\"\r\n") == std::string::npos) {
    return cell;
  }
  std::string quoted = "\"";
  for (const char c : cell) {
    quoted += c == '"' ? "\"\"" : std::string(1, c);
  }
  return quoted + "\"";
}

}  // namespace fourpiles
