// Any text as the log of an engine: what is read lies within the limits that the header states,
// and is printable.

#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/checked.h"
#include "base/terminal_text.h"
#include "plan/engine_log.h"
#include "plan/log_engine.h"

namespace fourpiles {
namespace {

bool IsPrintable(const std::string& text) {
  return EscapeForTerminal(text) == text;
}

void CheckFigure(const LogFigure& figure) {
  CHECK(figure.value >= 0 && figure.value <= static_cast<double>(kLargestAmount));
  CHECK(figure.half > 0 && figure.half <= static_cast<double>(kLargestAmount));
  CHECK(figure.line >= 1 && figure.text.size() <= 200);
  CHECK(KindOfFigure(figure.id).unit == figure.unit);
  CHECK(IsPrintable(figure.text) && IsPrintable(figure.device));
}

void CheckLog(const EngineLog& log) {
  CHECK(log.figures.size() <= 4096 && log.warnings.size() <= 64);
  for (const LogFigure& figure : log.figures) {
    CheckFigure(figure);
  }
  for (const auto* const facts : {&log.settings, &log.model}) {
    for (const auto& [name, value] : *facts) {
      CHECK(IsPrintable(value));
    }
  }
  for (const std::string& warning : log.warnings) {
    CHECK(IsPrintable(warning));
  }
}

}  // namespace
}  // namespace fourpiles

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto log = fourpiles::ReadEngineLog(text, "run.log")) {
    fourpiles::CheckLog(*log);
  }
  return 0;
}
