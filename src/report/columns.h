#pragma once

// Plain text in columns.

#include <string>
#include <string_view>
#include <vector>

namespace fourpiles {

// One line a row, each cell padded to its column's width with two spaces between; nothing at the
// end of a line. Widths count characters (UTF-8), not bytes. Columns of numbers are set to the
// right.
struct Columns {
  std::string indent = {};
  std::vector<std::size_t> right = {};  // the columns set to the right, from 0
};
std::string InColumns(const std::vector<std::vector<std::string>>& rows, const Columns& columns);

// A sentence in lines of at most 100 characters, broken between words: `first` stands before the
// first line, as many spaces and two more before the others.
std::string InLines(std::string_view text, std::string_view first);

}  // namespace fourpiles
