#pragma once

// The page of accuracy in Markdown: by what was measured and who measured it, beside other
// planners, then every row (docs/ACCURACY.md is one).

#include <string>

#include "plan/accuracy.h"

namespace fourpiles {

std::string AccuracyMarkdown(const Validation& validation, const Accuracy& accuracy);

}  // namespace fourpiles
