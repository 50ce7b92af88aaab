#pragma once

// Where and why a text is no JSON. It is asked only after the fast reader has refused the text: the
// fast reader does not say where.

#include <cstddef>
#include <string>
#include <string_view>

namespace fourpiles {

struct JsonFault {
  std::size_t byte = 0;  // offset of the first byte that cannot stand there; the size if cut short
  std::string found = {};     // "unexpected ']'", "invalid literal"
  std::string expected = {};  // "expected '}'"; may be empty
};

JsonFault FirstJsonFault(std::string_view text);

}  // namespace fourpiles
