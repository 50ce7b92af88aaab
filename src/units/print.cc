#include "units/print.h"

#include <cmath>
#include <iterator>

#include <fmt/format.h>

namespace fourpiles {

std::string PrintBytes(Bytes bytes, ByteUnit unit) {
  static constexpr const char* kGibNames[] = {"bytes", "KiB", "MiB", "GiB"};
  static constexpr const char* kGbNames[] = {"bytes", "kB", "MB", "GB"};
  const double base = unit == ByteUnit::kGib ? 1024.0 : 1000.0;
  const auto value = static_cast<double>(bytes.value());
  const double magnitude = std::abs(value);
  int power = 3;
  if (magnitude < 0.1 * std::pow(base, power)) {
    power = magnitude < base ? 0 : magnitude + 0.05 * base < base * base ? 1 : 2;  // as rounded
  }
  const char* const name = (unit == ByteUnit::kGib ? kGibNames : kGbNames)[power];
  if (power == 0) {
    return fmt::format("{} {}", bytes.value(), bytes.value() == 1 ? "byte" : name);
  }
  return fmt::format("{:.{}f} {}", value / std::pow(base, power), power == 3 ? 2 : 1, name);
}

std::string PrintGrouped(std::int64_t value) {
  std::string text = fmt::to_string(value);
  const auto first = static_cast<std::ptrdiff_t>(value < 0 ? 1 : 0);
  for (auto place = std::ssize(text) - 3; place > first; place -= 3) {
    text.insert(static_cast<std::size_t>(place), ",");
  }
  return text;
}

std::string PrintCount(std::int64_t count) {
  static constexpr const char* kNames[] = {"M", "B", "T"};
  const auto value = static_cast<double>(count);
  if (std::abs(value) < 1e6) {
    return fmt::to_string(count);
  }
  double factor = 1e6;
  std::size_t step = 0;
  for (; step + 1 < std::size(kNames) && std::abs(value) >= 999.5 * factor; ++step) {
    factor *= 1000;  // 999.5 M prints as 1 B, not as 1000 M
  }
  const double scaled = value / factor;
  return std::abs(scaled) < 999.5 ? fmt::format("{:.3g} {}", scaled, kNames[step])
                                  : fmt::format("{:.0f} {}", scaled, kNames[step]);
}

}  // namespace fourpiles
