#include "report/markdown.h"

#include <algorithm>

namespace fourpiles {
namespace {

std::string Row(const std::vector<std::string>& cells) {
  std::string row = "|";
  for (const std::string& cell : cells) {
    row += " " + MarkdownCell(cell) + " |";
  }
  return row + "\n";
}

}  // namespace

std::string MarkdownCell(std::string_view text) {
  std::string cell;
  for (const char c : text) {
    if (c == '|') {
      cell += '\\';
    }
    cell += c;
  }
  return cell;
}

std::string MarkdownRows(const std::vector<std::vector<std::string>>& rows,
                         const std::vector<std::size_t>& right) {
  std::string text = Row(rows.front()) + "|";
  for (std::size_t column = 0; column < rows.front().size(); ++column) {
    text += std::ranges::count(right, column) != 0 ? "---:|" : "---|";
  }
  text += "\n";
  for (std::size_t row = 1; row < rows.size(); ++row) {
    text += Row(rows[row]);
  }
  return text;
}

}  // namespace fourpiles
