#pragma once

// Names and words from files, made safe and short.

#include <cstddef>
#include <string>
#include <string_view>

namespace fourpiles {

// Escaped for a terminal, and cut where it is longer than so many bytes, with "…" behind.
std::string Shown(std::string_view text, std::size_t longest);

// The name of a tensor or file; of an empty one "\"\"".
std::string ShownName(std::string_view name);

// The same in at most so many characters: what a long one has in front is left out.
// "…31.mlp.down_proj.weight"
std::string ShortName(std::string_view name, std::size_t most);

// A cell of comma-separated values (RFC 4180). One that a spreadsheet would run as a formula gets
// an apostrophe.
std::string CsvCell(std::string_view text);

}  // namespace fourpiles
