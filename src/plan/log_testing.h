#pragma once

// What the tests of the log readers share.

#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/testing.h"
#include "plan/engine_log.h"

namespace fourpiles {

inline EngineLog LogOf(std::string_view text) {
  Result<EngineLog> log = ReadEngineLog(text, "run.log");
  EXPECT_TRUE(log.has_value()) << ErrorLine(log);
  return log.value_or(EngineLog{});
}

// In MiB where the unit is bytes; "none" where there is no such figure: "1024.00±0.005".
inline std::string Mib(const EngineLog& log, std::string_view id, std::string_view device = "*") {
  const LogFigure* const figure = FindFigure(log, id, device);
  const double unit = 1024.0 * 1024.0;
  return figure == nullptr
             ? "none"
             : fmt::format("{:.10g}±{:.10g}", figure->value / unit, figure->half / unit);
}
inline std::string Gib(const EngineLog& log, std::string_view id, std::string_view device = "*") {
  const LogFigure* const figure = FindFigure(log, id, device);
  const double unit = 1024.0 * 1024.0 * 1024.0;
  return figure == nullptr
             ? "none"
             : fmt::format("{:.10g}±{:.10g}", figure->value / unit, figure->half / unit);
}
inline double Plain(const EngineLog& log, std::string_view id, std::string_view device = "*") {
  const LogFigure* const figure = FindFigure(log, id, device);
  return figure == nullptr ? -1 : figure->value;
}
inline std::string SettingOf(const EngineLog& log, const std::string& name) {
  return log.settings.contains(name) ? log.settings.at(name) : "none";
}
inline std::string ModelWord(const EngineLog& log, const std::string& name) {
  return log.model.contains(name) ? log.model.at(name) : "none";
}

}  // namespace fourpiles
