#pragma once

// A line on the terminal that says how far long work is.

#include <chrono>
#include <cstdint>
#include <string>

namespace fourpiles::cli {

// Of `done` of `total` bytes after so many seconds: "45 %, 12.1 of 26.9 GiB, 1.2 GiB/s, 0:12 left".
// Without the time left before anything is done.
std::string ProgressText(std::int64_t done, std::int64_t total, double seconds);

// Shows it on the standard error while that is a terminal, from the first second on, five times a
// second at most; the line is gone when this ends.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void Show(std::int64_t done, std::int64_t total);

 private:
  using Clock = std::chrono::steady_clock;

  bool on_terminal_ = false;
  bool shown_ = false;
  Clock::time_point start_ = {};
  Clock::time_point last_ = {};
};

}  // namespace fourpiles::cli
