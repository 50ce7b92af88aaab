#pragma once

// What a serving job makes of measured requests, as text and as JSON (docs/json.md).

#include <string>

#include "base/json.h"
#include "plan/request_answer.h"

namespace fourpiles {

std::string RequestAnswerText(const RequestLengths& lengths, const RequestAnswer& answer);
Json RequestAnswerJson(const RequestLengths& lengths, const RequestAnswer& answer);

}  // namespace fourpiles
