#include "units/print.h"

#include <cmath>
#include <iterator>

#include <fmt/format.h>

namespace fourpiles {
std::string PrintBytes(Bytes bytes, ByteUnit unit) {
  static constexpr const char* kGibNames[] = {"bytes", "KiB", "MiB", "GiB"};
  static constexpr const char* kGbNames[] = {"bytes", "kB", "MB", "GB"};
  const double base = unit == ByteUnit::kGib ? 1024.0 : 1000.0;
  const double magnitude = std::abs(static_cast<double>(bytes.value()));
  int power = 3;
  double factor = base * base * base;
  if (magnitude < 0.1 * factor) {
    power = magnitude >= base * base ? 2 : magnitude >= base ? 1 : 0;
    factor = std::pow(base, power);
  }
  const char* const name = (unit == ByteUnit::kGib ? kGibNames : kGbNames)[power];
  if (power == 0) {
    return fmt::format("{} {}", bytes.value(), name);
  }
  const double value = static_cast<double>(bytes.value()) / factor;
  return power == 3 ? fmt::format("{:.2f} {}", value, name) : fmt::format("{:.1f} {}", value, name);
}

std::string PrintGrouped(std::int64_t value) {
  std::string text = fmt::to_string(value);
  const auto first = static_cast<std::ptrdiff_t>(value < 0 ? 1 : 0);
  for (auto place = std::ssize(text) - 3; place > first; place -= 3) {
    text.insert(static_cast<std::size_t>(place), ",");
  }
  return text;
}

std::string PrintCount(std::int64_t value) {
  struct Step {
    double from;
    const char* name;
  };
  static constexpr Step kSteps[] = {{1e12, "T"}, {1e9, "B"}, {1e6, "M"}};
  for (const Step& step : kSteps) {
    if (static_cast<double>(value) >= step.from) {
      return fmt::format("{:.3g} {}", static_cast<double>(value) / step.from, step.name);
    }
  }
  return fmt::to_string(value);
}

}  // namespace fourpiles
