#pragma once

// Tables in Markdown.

#include <string>
#include <string_view>
#include <vector>

namespace fourpiles {

// A cell may not end the row: "|" is escaped.
std::string MarkdownCell(std::string_view text);

// The first row names the columns; those of `right` are set to the right, from 0.
std::string MarkdownRows(const std::vector<std::vector<std::string>>& rows,
                         const std::vector<std::size_t>& right);

}  // namespace fourpiles
