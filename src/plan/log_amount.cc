#include "plan/log_amount.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

#include "base/checked.h"

namespace fourpiles {
namespace {

struct ByteName {
  std::string_view name;
  double bytes;
};

// The engines divide by 2^20 and 2^30 whatever they call it.
constexpr ByteName kByteNames[] = {
    {"bytes", 1},
    {"KiB", 1024.0},
    {"KB", 1024.0},
    {"MiB", 1024.0 * 1024.0},
    {"MB", 1024.0 * 1024.0},
    {"GiB", kGib},
    {"GB", kGib},
    {"TiB", 1024.0 * kGib},
    {"TB", 1024.0 * kGib},
    {"B", 1},
};

constexpr std::size_t kMostDigits = 64;

bool IsDigit(std::string_view text, std::size_t at) {
  return at < text.size() && text[at] >= '0' && text[at] <= '9';
}

std::size_t DigitsFrom(std::string_view text, std::size_t at) {
  std::size_t end = at;
  while (end - at <= kMostDigits && IsDigit(text, end)) {
    ++end;
  }
  return end - at;
}

// The digits of a number without what only helps the eye.
struct Digits {
  std::string text = {};  // for from_chars
  int decimals = 0;
  int exponent = 0;
  std::size_t end = 0;
};

// Digits with commas between thousands; the end is where another character stands.
void ReadWhole(std::string_view text, Digits& digits) {
  std::size_t run = DigitsFrom(text, digits.end);
  const bool may_group = run > 0 && run <= 3;
  digits.text += text.substr(digits.end, run);
  digits.end += run;
  while (may_group && digits.end < text.size() && text[digits.end] == ',' &&
         DigitsFrom(text, digits.end + 1) == 3 && digits.text.size() <= kMostDigits) {
    digits.text += text.substr(digits.end + 1, 3);
    digits.end += 4;
  }
}

void ReadDecimals(std::string_view text, Digits& digits) {
  if (digits.end >= text.size() || (text[digits.end] != '.' && text[digits.end] != ',')) {
    return;
  }
  const std::size_t run = DigitsFrom(text, digits.end + 1);
  if (run == 0 || (text[digits.end] == ',' && run != 2)) {
    return;
  }
  digits.text += '.';
  digits.text += text.substr(digits.end + 1, run);
  digits.decimals = static_cast<int>(run);
  digits.end += 1 + run;
}

void ReadExponent(std::string_view text, Digits& digits) {
  std::size_t at = digits.end;
  if (at >= text.size() || (text[at] != 'e' && text[at] != 'E')) {
    return;
  }
  ++at;
  const bool is_negative = at < text.size() && text[at] == '-';
  at += is_negative || (at < text.size() && text[at] == '+') ? 1 : 0;
  const std::size_t run = DigitsFrom(text, at);
  if (run == 0) {
    return;
  }
  int exponent = 0;
  const std::string_view shown = text.substr(at, std::min<std::size_t>(run, 6));
  std::from_chars(shown.data(), shown.data() + shown.size(), exponent);
  digits.exponent = is_negative ? -exponent : exponent;
  digits.text += 'e';
  digits.text += std::to_string(digits.exponent);
  digits.end = at + run;
}

// How many bytes the unit at `at` stands for, and its end; 0 where there is none.
double ReadByteUnit(std::string_view text, std::size_t at, std::size_t& end) {
  while (at < text.size() && text[at] == ' ') {
    ++at;
  }
  for (const ByteName& unit : kByteNames) {
    if (text.substr(at).starts_with(unit.name)) {
      end = at + unit.name.size();
      return unit.bytes;
    }
  }
  return 0;
}

double BytesOf(std::string_view unit) {
  const auto* const found = std::ranges::find(kByteNames, unit, &ByteName::name);
  return found == std::end(kByteNames) ? 0 : found->bytes;
}

}  // namespace

LoggedAmount ReadAmount(std::string_view text, std::size_t at, std::string_view unit) {
  while (at < text.size() && text[at] == ' ') {
    ++at;
  }
  const bool is_negative = at < text.size() && text[at] == '-';
  Digits digits = {.end = at + (is_negative ? 1 : 0)};
  ReadWhole(text, digits);
  if (digits.text.empty()) {
    return {};
  }
  ReadDecimals(text, digits);
  ReadExponent(text, digits);
  LoggedAmount read = {.state = LoggedAmount::State::kFound, .end = digits.end};
  double factor = 1;
  if (!unit.empty()) {
    factor = ReadByteUnit(text, digits.end, read.end);
    factor = factor > 0 ? factor : BytesOf(unit);
    if (factor <= 0) {
      return {};
    }
  }
  double value = 0;
  const char* const last = digits.text.data() + digits.text.size();
  const auto [end, fault] = std::from_chars(digits.text.data(), last, value);
  const double half = 0.5 * std::pow(10.0, digits.exponent - digits.decimals);
  read.amount = {.value = value * factor, .half = half * factor};
  const bool fits = fault == std::errc() && end == last && digits.text.size() <= kMostDigits &&
                    read.amount.value <= static_cast<double>(kLargestAmount) &&
                    read.amount.half > 0 &&  // digits beyond what a double holds: no amount
                    read.amount.half <= static_cast<double>(kLargestAmount);
  if (!fits || (is_negative && value > 0)) {
    read.state = LoggedAmount::State::kImpossible;
  }
  return read;
}

}  // namespace fourpiles
