#include "report/columns.h"

#include <algorithm>
#include <string_view>

namespace fourpiles {
namespace {

std::size_t Width(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::vector<std::size_t> Widths(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], Width(row[i]));
    }
  }
  return widths;
}

}  // namespace

std::string InColumns(const std::vector<std::vector<std::string>>& rows, const Columns& columns) {
  const std::vector<std::size_t> widths = Widths(rows);
  std::string text;
  for (const auto& row : rows) {
    std::string line = columns.indent;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - Width(row[i]), ' ');
      const bool right = std::ranges::count(columns.right, i) != 0;
      line += (i == 0 ? "" : "  ") + (right ? padding + row[i] : row[i] + padding);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string InLines(std::string_view text, std::string_view first) {
  constexpr std::size_t kLineWidth = 100;
  std::string lines(first);
  std::size_t width = Width(first);
  bool line_is_new = true;
  while (!text.empty()) {
    const std::size_t space = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, space);
    text.remove_prefix(std::min(space + 1, text.size()));
    if (!line_is_new && width + 1 + Width(word) > kLineWidth) {
      width = Width(first) + 2;
      lines += "\n" + std::string(width, ' ');
      line_is_new = true;
    }
    lines += (line_is_new ? "" : " ") + std::string(word);
    width += (line_is_new ? 0 : 1) + Width(word);
    line_is_new = false;
  }
  return lines + "\n";
}

}  // namespace fourpiles
