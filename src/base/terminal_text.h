#pragma once

// Text from files and command lines, made safe to print.

#include <string>
#include <string_view>

namespace fourpiles {

// `text` with everything that could steer a terminal or hide what is there written out: control
// characters, marks that reorder or are invisible, and bytes that are no UTF-8, as \n, \x1b,
// \u202e, \xff. Backslashes of the text stay as they are.
std::string EscapeForTerminal(std::string_view text);

}  // namespace fourpiles
