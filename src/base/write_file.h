#pragma once

// Writing a file whole or not at all.

#include <string>
#include <string_view>

#include "fourpiles/result.h"

namespace fourpiles {

// Writes `contents` beside `path`, makes sure they are on the disk, and renames them to `path`: who
// reads it finds the old contents or the new, even after a crash. On failure nothing is left
// behind. A file that is there keeps its permissions, and a link to a file stays a link. What is no
// regular file (a folder, /dev/stdout) is refused. Errors are of kind kUsage: the request names a
// place that cannot take the file.
Result<void> WriteFileAtomically(const std::string& path, std::string_view contents);

}  // namespace fourpiles
