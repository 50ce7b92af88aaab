#pragma once

// Names where formats of one value and block formats are both understood.

#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "fourpiles/formats.h"

namespace fourpiles {

using AnyFormat = std::variant<NumberFormat, BlockFormat>;

// The format of that name, whichever kind has it. Error: as FindFormat and FindBlockFormat, the
// nearest known name being one of either kind.
Result<AnyFormat> FindAnyFormat(std::string_view name, std::string_view where = "format");

// The errors of a format of the other kind than is understood.
tl::unexpected<Error> NotOfOneValue(std::string_view name, std::string_view where);
tl::unexpected<Error> NotOfBlocks(std::string_view name, std::string_view where);

// What an unknown name may stand for, as the expected part of an error: those of `names` that begin
// with it ("mxfp6": mxfp6_e2m3 or mxfp6_e3m2), else the nearest, else "".
std::string FormatMeant(std::string_view name, std::span<const std::string_view> names);

// FindFormat, whose error may name one of `others` as the nearest.
Result<NumberFormat> FindFormat(std::string_view name, std::string_view where,
                                std::span<const std::string_view> others);

// Every name and alias.
std::vector<std::string_view> FormatNames();
std::vector<std::string_view> BlockFormatNames();

// What may stand behind the colon: "scale=floor, even, ceil or rceil", "double".
std::vector<std::string> ChoicesOf(const BlockFormat& format);

// The other names of a block format, one by one.
std::vector<std::string_view> AliasesOf(const BlockFormat& format);

}  // namespace fourpiles
