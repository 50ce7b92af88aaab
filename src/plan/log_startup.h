#pragma once

// Gathers what the lines of one engine say, start-up by start-up; the last one stays.

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plan/engine_log.h"
#include "plan/log_engine.h"

namespace fourpiles {

// A line in which rows were found.
struct LogLine {
  std::int64_t number = 0;
  std::string_view text = {};  // as it is shown
  std::string_view rank = {};
  bool is_cut = false;  // no end of line follows: a number at its end may lack digits
  std::vector<std::pair<const LinePattern*, LineMatch>> matches = {};
};

struct EndOfLog {
  std::int64_t last_line = 0;
  bool is_cut = false;
};

class LogStartup {
 public:
  explicit LogStartup(const EngineLines& engine);

  void Take(const LogLine& line);
  EngineLog Finish(const EndOfLog& end);

 private:
  // What is gathered of one start-up.
  struct Gathered {
    EngineLog log = {};
    // Places in log.figures by id and device.
    std::map<std::string, std::vector<std::size_t>> by_key = {};
    std::vector<std::string> parts = {};   // the keys of figures that add up
    std::set<std::string> old_parts = {};  // … of an earlier load, to be replaced or dropped
    bool has_start = false;                // its first line is known
    bool has_caches = false;               // what follows is of a second context
    bool is_window = false;
    std::int64_t first_line = 0;
    std::int64_t second_model_line = 0;
    std::int64_t repeated_line = 0;
    std::int64_t repeated = 0;
    std::int64_t skipped = 0;
    std::int64_t left_out = 0;
  };

  void TakeRole(LineRole role, std::int64_t line);
  void TakeMatch(const LogLine& line, const LinePattern& row, const LineMatch& match);
  void TakeText(const LineFinding& finding, bool is_window);
  void TakeFigure(LogFigure figure, LineRole role);
  // True when the figure went into one that there is.
  bool WentIntoAPart(const LogFigure& figure);
  void BeginAnew(std::int64_t line);
  void AgeParts();
  void NoteRepeated(std::int64_t line);
  bool TakeAsFiner(LogFigure& figure, const std::vector<std::size_t>& same);
  bool IsCacheFigure(std::string_view id) const;
  bool HasOneOf(const NeededFigures& needed) const;
  void AddWarnings(const EndOfLog& end);

  EngineLines engine_;
  Gathered now_;
  std::int64_t startups_ = 1;
};

}  // namespace fourpiles
