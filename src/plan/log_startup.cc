#include "plan/log_startup.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/checked.h"
#include "base/terminal_text.h"
#include "plan/log_settings.h"

namespace fourpiles {
namespace {

constexpr std::size_t kMostFigures = 4096;
constexpr std::size_t kMostOfOneKey = 16;
constexpr std::int64_t kMostSkipsTold = 4;

// "weights_*_bytes" on CUDA0 is "weights_device_bytes".
std::string PlacedId(std::string_view name, std::string_view device, bool is_window) {
  std::string id(is_window && !name.starts_with("swa_") ? "swa_" : "");
  id += name;
  if (const std::size_t star = id.find('*'); star != std::string::npos) {
    id.replace(star, 1, IsHostBuffer(device) ? "host" : "device");
  }
  return id;
}

bool AgreesWith(const LogFigure& a, const LogFigure& b) {
  // Two prints of one number differ by half a unit of each; a little more for the doubles.
  return std::abs(a.value - b.value) <= (a.half + b.half) * (1 + 1e-9);
}

void AddTo(LogFigure& sum, const LogFigure& part) {
  const auto largest = static_cast<double>(kLargestAmount);
  sum.value = std::min(sum.value + part.value, largest);
  sum.half = std::min(sum.half + part.half, largest);
}

std::string LastPart(std::string_view path) {
  while (path.size() > 1 && (path.back() == '/' || path.back() == '\\')) {
    path.remove_suffix(1);
  }
  const std::size_t slash = path.find_last_of("/\\");
  return EscapeForTerminal(slash == std::string_view::npos ? path : path.substr(slash + 1));
}

std::string KeyOf(const LogFigure& figure) {
  return figure.id + '\n' + figure.device;
}

std::string_view DeviceOf(const LogLine& line, const LineMatch& match) {
  const auto device = std::ranges::find(match.findings, PartKind::kDevice, &LineFinding::kind);
  return device == match.findings.end() ? line.rank : device->text;
}

}  // namespace

LogStartup::LogStartup(const EngineLines& engine) : engine_(engine) {
  now_.log.engine = engine.engine;
}

void LogStartup::Take(const LogLine& line) {
  for (const auto& [row, match] : line.matches) {
    if (!match.impossible.empty()) {
      if (now_.skipped++ < kMostSkipsTold) {
        now_.log.warnings.push_back(fmt::format("line {}: {} is impossible; the line is left out",
                                                line.number, EscapeForTerminal(match.impossible)));
      }
      return;
    }
  }
  now_.first_line = now_.first_line == 0 ? line.number : now_.first_line;
  for (const auto& [row, match] : line.matches) {
    TakeMatch(line, *row, match);
  }
}

void LogStartup::TakeMatch(const LogLine& line, const LinePattern& row, const LineMatch& match) {
  TakeRole(row.role, line.number);
  const bool is_window = row.role == LineRole::kCache && now_.is_window;
  const std::string_view device = DeviceOf(line, match);
  for (const LineFinding& finding : match.findings) {
    if (line.is_cut && finding.at_end) {
      now_.log.warnings.push_back(
          fmt::format("line {}: the file ends within \"{}\"; it is left out", line.number,
                      EscapeForTerminal(finding.text)));
      continue;
    }
    if (finding.kind != PartKind::kFigure) {
      TakeText(finding, is_window);
      continue;
    }
    LogFigure figure = {.id = PlacedId(finding.name, device, is_window),
                        .device = EscapeForTerminal(device),
                        .value = finding.amount.value,
                        .half = finding.amount.half,
                        .line = line.number,
                        .text = std::string(line.text)};
    figure.unit = KindOfFigure(figure.id).unit;
    figure.what = WhatOfFigure(figure.id, figure.device);
    TakeFigure(std::move(figure), row.role);
  }
  if (const std::size_t is = row.says.find('='); is != std::string_view::npos) {
    PutSetting(now_.log.settings, row.says.substr(0, is), row.says.substr(is + 1), false);
  }
}

void LogStartup::TakeRole(LineRole role, std::int64_t line) {
  switch (role) {
    case LineRole::kStart:
      if (!now_.log.figures.empty()) {
        BeginAnew(line);
      }
      now_.has_start = true;
      break;
    case LineRole::kModel:
      if (!now_.has_caches) {
        AgeParts();  // an attempt that failed, or one without caches
      } else if (!now_.has_start) {
        BeginAnew(line);
      } else if (now_.second_model_line == 0) {
        now_.second_model_line = line;
      }
      break;
    case LineRole::kFullCache:
    case LineRole::kWindowCache:
      now_.is_window = role == LineRole::kWindowCache;
      break;
    default:
      break;
  }
}

void LogStartup::BeginAnew(std::int64_t line) {
  now_ = {};
  now_.log.engine = engine_.engine;
  now_.first_line = line;
  ++startups_;
}

void LogStartup::AgeParts() {
  now_.old_parts.insert(now_.parts.begin(), now_.parts.end());
  now_.parts.clear();
}

bool LogStartup::WentIntoAPart(const LogFigure& figure) {
  const std::string key = KeyOf(figure);
  const std::vector<std::size_t>& same = now_.by_key[key];
  const bool is_old = now_.old_parts.erase(key) > 0;
  if (same.empty() || is_old) {
    now_.parts.push_back(key);
  }
  if (same.empty()) {
    return false;
  }
  LogFigure& part = now_.log.figures[same.front()];
  if (is_old) {
    part = figure;
  } else {
    AddTo(part, figure);
  }
  return true;
}

void LogStartup::TakeText(const LineFinding& finding, bool is_window) {
  switch (finding.kind) {
    case PartKind::kSetting:
    case PartKind::kCount:
      // What is said after the caches is of a second context, where it was said before.
      PutSetting(now_.log.settings, finding.name, finding.text, !now_.has_caches);
      break;
    case PartKind::kAnew:
      PutSetting(now_.log.settings, finding.name, finding.text, true);
      break;
    case PartKind::kModel:
    case PartKind::kRest:
      now_.log.model.try_emplace(PlacedId(finding.name, "", is_window),
                                 EscapeForTerminal(finding.text));
      break;
    case PartKind::kPath:
      now_.log.model.try_emplace("path", LastPart(finding.text));
      break;
    case PartKind::kVersion:
      now_.log.version =
          now_.log.version.empty() ? EscapeForTerminal(finding.text) : now_.log.version;
      break;
    default:
      break;
  }
}

void LogStartup::TakeFigure(LogFigure figure, LineRole role) {
  // A table of devices may also be printed to try out settings.
  now_.has_caches = now_.has_caches || (role != LineRole::kLatest && IsCacheFigure(figure.id));
  std::vector<LogFigure>& figures = now_.log.figures;
  const std::string key = KeyOf(figure);
  if (figures.size() >= kMostFigures && !now_.by_key.contains(key)) {
    ++now_.left_out;
    return;
  }
  std::vector<std::size_t>& same = now_.by_key[key];
  if (role == LineRole::kLatest && !same.empty()) {
    figures[same.front()] = std::move(figure);
    return;
  }
  if (role == LineRole::kPart && !now_.has_caches && WentIntoAPart(figure)) {
    return;
  }
  if (role != LineRole::kPool && TakeAsFiner(figure, same)) {
    return;
  }
  if (figures.size() >= kMostFigures || same.size() >= kMostOfOneKey) {
    ++now_.left_out;
    return;
  }
  if (!same.empty() && role != LineRole::kPool) {
    NoteRepeated(figure.line);
  }
  same.push_back(figures.size());
  figures.push_back(std::move(figure));
}

void LogStartup::NoteRepeated(std::int64_t line) {
  now_.repeated_line = now_.repeated++ == 0 ? line : now_.repeated_line;
}

// Of two prints that agree the finer one stays. False: none of those that are there agrees.
bool LogStartup::TakeAsFiner(LogFigure& figure, const std::vector<std::size_t>& same) {
  std::vector<LogFigure>& figures = now_.log.figures;
  const auto at =
      std::ranges::find_if(same, [&](std::size_t i) { return AgreesWith(figures[i], figure); });
  if (at == same.end()) {
    return false;
  }
  if (figure.half < figures[*at].half) {
    figures[*at] = std::move(figure);
  }
  return true;
}

bool LogStartup::IsCacheFigure(std::string_view id) const {
  const auto& ids = engine_.needs.back().ids;
  return std::ranges::find(ids, id) != ids.end();
}

bool LogStartup::HasOneOf(const NeededFigures& needed) const {
  return std::ranges::any_of(needed.ids, [this](std::string_view id) {
    return !id.empty() && FindFigure(now_.log, id) != nullptr;
  });
}

void LogStartup::AddWarnings(const EndOfLog& end) {
  std::vector<std::string>& warnings = now_.log.warnings;
  if (now_.skipped > kMostSkipsTold) {
    warnings.push_back(
        fmt::format("{} more lines hold impossible numbers", now_.skipped - kMostSkipsTold));
  }
  if (startups_ > 1) {
    warnings.insert(warnings.begin(), fmt::format("{} start-ups in the file; the last, from line "
                                                  "{}, is read",
                                                  startups_, now_.first_line));
  }
  if (now_.second_model_line > 0) {
    warnings.push_back(
        fmt::format("line {}: a second model is loaded; of figures that come twice, "
                    "the first are those of the first model",
                    now_.second_model_line));
  } else if (now_.repeated > 0) {
    warnings.push_back(
        fmt::format("line {}: a figure is printed again with another value; of "
                    "those that come twice, the first count",
                    now_.repeated_line));
  }
  if (now_.left_out > 0) {
    warnings.push_back(fmt::format("{} figures beyond the first {} are left out", now_.left_out,
                                   now_.log.figures.size()));
  }
  std::string missing;
  for (const NeededFigures& needed : engine_.needs) {
    if (!HasOneOf(needed)) {
      missing += missing.empty() ? "" : ", ";
      missing += needed.what;
    }
  }
  if (!missing.empty()) {
    warnings.push_back(fmt::format("the log ends {} line {} without {}",
                                   end.is_cut ? "within" : "after", end.last_line, missing));
  }
}

EngineLog LogStartup::Finish(const EndOfLog& end) {
  std::erase_if(now_.log.figures,
                [this](const LogFigure& figure) { return now_.old_parts.contains(KeyOf(figure)); });
  if (engine_.finish != nullptr) {
    engine_.finish(now_.log);
  }
  AddWarnings(end);
  return std::move(now_.log);
}

}  // namespace fourpiles
