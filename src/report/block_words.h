#pragma once

// What a block format is, in words: the same in the table of all, the facts of one and the page.

#include <string>
#include <string_view>

#include "fourpiles/block_format.h"

namespace fourpiles {

// "float4_e2m1fn"; of ggml's what a value is: "(q − 8) × d".
std::string ElementText(const BlockFormat& format);
// What a code comes back as: "element × scale".
std::string ValueText(const BlockFormat& format);
// Which elements share a scale: "32 of a row", "64 of the tensor", "a row", "the tensor".
std::string SharedText(const BlockFormat& format);
// "float8_e8m0fnu", "float32 and zero point", "8 bits of dynamic8"; ggml's: "in the block".
std::string ScaleText(const BlockFormat& format);
// How the scale follows from the values: "2^k, k = floor(log2 largest) − 2".
std::string RuleText(const BlockFormat& format);
// How codes lie in bytes.
std::string PackingText(const BlockFormat& format);
// What becomes of a block with a NaN or an infinity.
std::string NanText(const BlockFormat& format);
// "scale=floor, even, ceil or rceil"; "none".
std::string ChoicesText(const BlockFormat& format);
// "4.25".
std::string BitsText(const BlockFormat& format);

// Whether values can be encoded; some of ggml's types are only decoded.
bool CanEncode(const BlockFormat& format);

}  // namespace fourpiles
