#pragma once

// What an engine printed at its start beside what is predicted of the same job, figure by figure.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fourpiles/result.h"
#include "plan/engine_log.h"
#include "plan/job.h"

namespace fourpiles {

enum class Agreement {
  kEqual,         // at the digits that were printed
  kClose,         // an estimate, within 8 %
  kOff,           // neither
  kShown,         // not judged: no closed form, or more than the file tells goes into it
  kNotPredicted,  // a figure that nothing is predicted of
};
std::string_view Name(Agreement agreement);  // "equal"

struct LogRow {
  LogFigure logged = {};
  std::optional<double> predicted = {};  // in the logged unit
  double error = 0;                      // predicted ÷ logged − 1
  Agreement agreement = Agreement::kNotPredicted;
};

struct LogCheck {
  std::vector<LogRow> rows = {};           // in the order of the log
  std::vector<std::string> warnings = {};  // of the log, and where the model is another
  std::int64_t equal = 0;
  std::int64_t close = 0;
  std::int64_t off = 0;
  std::int64_t others = 0;  // shown, or not predicted
};

// The tokens, blocks and requests of a pool are predicted from the bytes that the log gives it, so
// that they tell of the cache alone; with what the digits printed allow. `job` is JobOfLog's.
Result<LogCheck> CheckLog(const EngineLog& log, const Job& job);

}  // namespace fourpiles
