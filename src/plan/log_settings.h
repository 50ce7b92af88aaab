#pragma once

// What a log calls a setting, as serve's options call it.

#include <map>
#include <string>
#include <string_view>

namespace fourpiles {

// Puts the value under the name, in one spelling: "1", "enabled", "True" become "true" where yes
// or no is asked, "8,192" becomes "8192"; "kv-format" is that of keys and of values. A value that
// says nothing ("None", "-1") or is none of the setting's is left out. `replaces`: an earlier one.
void PutSetting(std::map<std::string, std::string>& settings, std::string_view name,
                std::string_view value, bool replaces);

}  // namespace fourpiles
