// Any text as a size and as a count: what is accepted lies within the limits, is what floating
// point makes of the same text, and reads back from its digits.

#include <cctype>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/checked.h"
#include "units/parse.h"
#include "units/print.h"

namespace fourpiles {
namespace {

// The number that `text` begins with times the power of `base` that its unit's first letter means.
long double Approximate(const std::string& text, bool is_count) {
  char* end = nullptr;
  const long double number = std::strtold(text.c_str(), &end);
  std::string unit(end);
  unit.erase(0, unit.find_first_not_of(' '));
  if (unit.empty() || (!is_count && std::tolower(unit.front()) == 'b')) {
    return number;
  }
  const std::string_view letters = is_count ? "kmbt" : "kmgtp";
  const std::size_t power = letters.find(static_cast<char>(std::tolower(unit.front()))) + 1;
  CHECK(power > 0);
  const bool is_binary = unit.size() > 1 && std::tolower(unit[1]) == 'i';
  return number * std::pow(is_binary ? 1024.0L : 1000.0L, static_cast<long double>(power));
}

void CheckAmount(std::int64_t amount, long double approximate) {
  CHECK(amount >= 0 && amount <= kLargestAmount);
  const auto value = static_cast<long double>(amount);
  CHECK(std::abs(value - approximate) <= 0.5L + approximate * 1e-17L);
}

void CheckText(const std::string& text) {
  if (const Result<Bytes> bytes = ParseBytes(text, "x")) {
    CheckAmount(bytes->value(), Approximate(text, false));
    CHECK(ParseBytes(std::to_string(bytes->value()), "x").value() == *bytes);
    CHECK(ParseBytes(PrintBytes(*bytes), "x").has_value());
  }
  if (const Result<std::int64_t> count = ParseCount(text, "x")) {
    CheckAmount(*count, Approximate(text, true));
    CHECK(ParseCount(std::to_string(*count), "x").value() == *count);
  }
}

}  // namespace
}  // namespace fourpiles

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fourpiles::CheckText({reinterpret_cast<const char*>(data), size});
  return 0;
}
