#pragma once

// The grammar of a number in JSON.

#include <string_view>

namespace fourpiles {

// RFC 8259, section 6: -? (0 | [1-9][0-9]*) (\.[0-9]+)? ([eE][+-]?[0-9]+)?
bool IsJsonNumber(std::string_view text);

}  // namespace fourpiles
