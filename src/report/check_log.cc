#include "report/check_log.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "base/terminal_text.h"
#include "report/columns.h"
#include "units/print.h"

namespace fourpiles {
namespace {

// How a figure is shown: in the unit of such logs, with as many digits as were printed.
struct Shown {
  std::string unit = {};
  double one = 1;
  int decimals = 0;
};

Shown ShownAs(const LogFigure& figure, LogEngine engine) {
  constexpr double kMib = 1024.0 * 1024.0;
  Shown shown = {.unit = figure.unit};
  if (figure.unit == "bytes" && figure.half > 0.5) {  // else whole bytes were printed
    shown = engine == LogEngine::kLlamacpp && figure.id != "file_bytes"
                ? Shown{.unit = "MiB", .one = kMib}
                : Shown{.unit = "GiB", .one = 1024.0 * kMib};
  }
  const double digit = 2 * figure.half / shown.one;
  if (digit > 0 && digit < 1) {
    constexpr int kMostDecimals = 6;
    shown.decimals = std::min(kMostDecimals, static_cast<int>(std::lround(-std::log10(digit))));
  }
  return shown;
}

std::string Number(double value, const Shown& shown) {
  const double in_unit = value / shown.one;
  return shown.decimals > 0 ? fmt::format("{:.{}f}", in_unit, shown.decimals)
                            : PrintGrouped(std::llround(in_unit));
}

std::string Difference(const LogRow& row) {
  switch (row.agreement) {
    case Agreement::kEqual:
      return "equal";
    case Agreement::kNotPredicted:
      return "";
    case Agreement::kClose:
    case Agreement::kShown:
      return fmt::format("{:+.1f} %", 100 * row.error);
    case Agreement::kOff:
      break;
  }
  return fmt::format("{:+.2f} %  off", 100 * row.error);
}

std::vector<std::string> RowText(const LogRow& row, LogEngine engine) {
  const Shown shown = ShownAs(row.logged, engine);
  return {fmt::to_string(row.logged.line),
          EscapeForTerminal(row.logged.what),
          Number(row.logged.value, shown),
          row.predicted ? Number(*row.predicted, shown) : "-",
          shown.unit,
          Difference(row)};
}

// What was set on the command line or read from the log.
std::string SettingsText(const Settings& settings) {
  std::string text;
  for (const auto& [name, value] : settings) {
    if (name == "model") {  // stands before them
      continue;
    }
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, EscapeForTerminal(value.text));
  }
  return text;
}

std::string HeadText(const LogCheckHead& head) {
  const EngineLog& log = *head.log;
  return fmt::format("{}: {}{}{}\npredicted: {}, {}\n\n", EscapeForTerminal(head.path),
                     NameOf(log.engine), log.version.empty() ? "" : " ",
                     EscapeForTerminal(log.version), EscapeForTerminal(head.job->model.name),
                     SettingsText(head.job->settings));
}

// Bytes and counts are whole; a concurrency is not.
Json Amount(double value, const LogFigure& figure) {
  return figure.unit == "x" ? Json(value) : Json(static_cast<std::int64_t>(std::llround(value)));
}

Json RowJson(const LogRow& row) {
  const bool predicted = row.predicted.has_value();
  return Json::Object{{"line", row.logged.line},
                      {"id", row.logged.id},
                      {"device", row.logged.device},
                      {"what", row.logged.what},
                      {"unit", row.logged.unit},
                      {"logged", Amount(row.logged.value, row.logged)},
                      {"half_digit", row.logged.half},
                      {"predicted", predicted ? Amount(*row.predicted, row.logged) : Json()},
                      {"error", predicted ? Json(row.error) : Json()},
                      {"agreement", std::string(Name(row.agreement))}};
}

Json SettingsJson(const Settings& settings) {
  Json::Object json;
  for (const auto& [name, value] : settings) {
    if (name == "model") {
      continue;
    }
    std::string key = name;
    std::ranges::replace(key, '-', '_');
    json.emplace_back(std::move(key), value.text);
  }
  return json;
}

}  // namespace

std::string LogCheckText(const LogCheckHead& head, const LogCheck& check) {
  std::vector<std::vector<std::string>> rows = {
      {"line", "figure", "logged", "predicted", "", "difference"}};
  for (const LogRow& row : check.rows) {
    rows.push_back(RowText(row, head.log->engine));
  }
  return HeadText(head) + InColumns(rows, {.right = {0, 2, 3}}) +
         fmt::format(
             "\n{} figures: {} equal at the digits printed, {} estimates within 8 %, {} "
             "off; {} not judged\n",
             check.rows.size(), check.equal, check.close, check.off, check.others);
}

Json::Object LogCheckJson(const LogCheckHead& head, const LogCheck& check) {
  Json::Array rows;
  for (const LogRow& row : check.rows) {
    rows.push_back(RowJson(row));
  }
  return {{"log", Json::Object{{"path", head.path},
                               {"engine", std::string(NameOf(head.log->engine))},
                               {"version", head.log->version}}},
          {"job", SettingsJson(head.job->settings)},
          {"model", Json::Object{{"name", head.job->model.name}}},
          {"rows", std::move(rows)},
          {"equal", check.equal},
          {"close", check.close},
          {"off", check.off},
          {"not_judged", check.others}};
}

}  // namespace fourpiles
