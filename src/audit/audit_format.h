#pragma once

// What a checkpoint is audited for: a format, and whether values are scaled into it.

#include <string>
#include <string_view>

#include "formats/any_format.h"

namespace fourpiles {

struct AuditFormat {
  std::string name = {};  // "float16", "float8_e4m3fn:scaled", "mxfp4:scale=floor"
  AnyFormat format = {};
  // Each tensor is multiplied by largest value ÷ its largest magnitude first, and divided by it
  // afterwards: what a float8 checkpoint with one scale a tensor does.
  bool scaled = false;
};

// "float16", "e4m3:scaled", or a block format with its choices. Errors as FindAnyFormat.
Result<AuditFormat> FindAuditFormat(std::string_view name, std::string_view where = "--to");

}  // namespace fourpiles
