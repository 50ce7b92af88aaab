#pragma once

// The serving job that an engine's start-up log tells of.

#include <string>
#include <string_view>
#include <vector>

#include "fourpiles/result.h"
#include "plan/engine_log.h"
#include "plan/job.h"

namespace fourpiles {

// The device of llama.cpp's buffer: "Metal" of "Metal_Mapped".
std::string_view DeviceOfBuffer(std::string_view buffer);
// Those that are not the host, in the order of their numbers: device 0, 1 …
std::vector<std::string> LlamacppDevices(const EngineLog& log);

// What the log says it ran with, by the names of serve's settings. Left out is what serve takes by
// another name or not at all. `where` names the log.
Settings SettingsOfLog(const EngineLog& log, std::string_view where);

// The job of that model; what was typed goes before what the log says. Without --device the device
// is the log's, of which no more is known than its memory and kind. Errors: those of MakeJob, and
// another engine than the log's.
Result<Job> JobOfLog(const EngineLog& log, std::string_view where, std::string_view model,
                     const Settings& typed);

}  // namespace fourpiles
