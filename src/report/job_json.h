#pragma once

// A job as JSON: every setting of its command with the defaults filled in, null where there is
// none.

#include "base/json.h"
#include "plan/job.h"

namespace fourpiles {

// Reads back as a job file (SettingsFromJson).
Json::Object JobJson(const Job& job);

}  // namespace fourpiles
