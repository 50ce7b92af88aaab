#pragma once

// The settings of a job: one row each. Command line options, keys of a job file, help and the
// refusal of what is not built yet are all made from these rows.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "fourpiles/result.h"

namespace fourpiles {

enum class JobKind { kTrain, kFinetune, kServe };
std::string_view Name(JobKind kind);  // "train"

// Which commands have a setting: bits of JobKind.
inline constexpr unsigned kTraining =
    1U << static_cast<unsigned>(JobKind::kTrain) | 1U << static_cast<unsigned>(JobKind::kFinetune);
inline constexpr unsigned kServing = 1U << static_cast<unsigned>(JobKind::kServe);

struct Setting {
  std::string_view name = {};        // as an option, without dashes: "micro-batch-size"
  std::string_view short_name = {};  // "b", or empty
  std::string_view value = {};       // "N"; empty for a flag
  std::string_view help = {};
  std::string_view group = {};
  unsigned commands = kTraining | kServing;
  // False: known, but refused with "not in this version".
  bool built = true;
};

// The settings of one command, in the order of the help.
std::vector<Setting> SettingsOf(JobKind kind);

// The key of a setting in a job file and in JSON: "micro_batch_size".
std::string KeyOf(const Setting& setting);

// What was set, by the setting's name, as typed, and where: "--zero" or "job.json: zero".
struct SetValue {
  std::string text;
  std::string where;
};
using Settings = std::map<std::string, SetValue, std::less<>>;

// Settings as they would be typed: {{"recipe", "fp32"}, …}.
Settings TypedSettings(const std::map<std::string, std::string>& typed);

// Reads a job file's object: keys are those of the settings of this command, and "model"; values
// are strings or numbers, and true or false for a flag. Errors: unknown keys, other values.
Result<Settings> SettingsFromJson(const Json& job, JobKind kind, std::string_view where);

// Refuses what is set and not built.
Result<void> RefuseUnbuilt(const Settings& settings, JobKind kind);

}  // namespace fourpiles
