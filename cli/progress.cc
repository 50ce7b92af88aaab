#include "cli/progress.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include <fmt/format.h>
#include <unistd.h>

#include "units/print.h"

namespace fourpiles::cli {
namespace {

// "0:12", "1:02:03".
std::string TimeText(double seconds) {
  constexpr double kLongest = 1e7;  // four months: longer is not known
  const std::int64_t whole = std::llround(std::min(seconds, kLongest));
  const std::int64_t minutes = whole / 60;
  return minutes < 60 ? fmt::format("{}:{:02}", minutes, whole % 60)
                      : fmt::format("{}:{:02}:{:02}", minutes / 60, minutes % 60, whole % 60);
}

void Put(std::string_view text) {
  // What a terminal does not take is not missed.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace

std::string ProgressText(std::int64_t done, std::int64_t total, double seconds) {
  const double share =
      total <= 0 ? 1 : std::clamp(static_cast<double>(done) / static_cast<double>(total), 0.0, 1.0);
  std::string text = fmt::format("{:.0f} %, {} of {}", 100 * share, PrintBytes(Bytes(done)),
                                 PrintBytes(Bytes(total)));
  if (done > 0 && seconds > 0) {
    const double rate = static_cast<double>(done) / seconds;
    text +=
        fmt::format(", {}/s, {} left", PrintBytes(Bytes(static_cast<std::int64_t>(rate))),
                    TimeText(static_cast<double>(std::max<std::int64_t>(total - done, 0)) / rate));
  }
  return text;
}

ProgressLine::ProgressLine()
    : on_terminal_(isatty(STDERR_FILENO) != 0), start_(Clock::now()), last_(start_) {}

ProgressLine::~ProgressLine() {
  if (shown_) {
    Put("\r\x1b[K");
  }
}

void ProgressLine::Show(std::int64_t done, std::int64_t total) {
  if (!on_terminal_) {
    return;
  }
  const Clock::time_point now = Clock::now();
  const auto since_last = now - last_;
  if (now - start_ < std::chrono::seconds(1) ||
      (shown_ && since_last < std::chrono::milliseconds(200))) {
    return;
  }
  const std::chrono::duration<double> elapsed = now - start_;
  Put("\r\x1b[K" + ProgressText(done, total, elapsed.count()));
  last_ = now;
  shown_ = true;
}

}  // namespace fourpiles::cli
