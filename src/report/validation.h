#pragma once

// Predictions beside measured runs: a table by kind, then the rows that are off, and those that
// could not be compared.

#include <string>

#include "base/json.h"
#include "plan/validate.h"

namespace fourpiles {

std::string ValidationText(const Validation& validation);
Json::Object ValidationJson(const Validation& validation);

}  // namespace fourpiles
