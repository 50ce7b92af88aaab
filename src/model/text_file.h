#pragma once

// The small JSON files that a user names: a model's config.json, a device or a recipe of his own.

#include <string>

#include "fourpiles/result.h"

namespace fourpiles {

// The whole text of a regular file. Errors: kInput, for one that is missing, no regular file,
// larger than 4 MiB, or not readable.
Result<std::string> ReadTextFile(const std::string& path);

}  // namespace fourpiles
