#pragma once

// What the commands that convert to block formats refuse.

#include <span>

#include "cli/command.h"
#include "fourpiles/block_format.h"

namespace fourpiles::cli {

// Error: one of the formats cannot be encoded, or not as --rounding, --subnormals, --overflow,
// --infinities or --from ask.
Result<void> CheckBlocks(const Arguments& arguments, std::span<const BlockFormat> formats,
                         const Conversion& conversion);

}  // namespace fourpiles::cli
