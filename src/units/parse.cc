#include "units/parse.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>

#include "base/ascii.h"
#include "base/checked.h"

namespace fourpiles {
namespace {

__extension__ using Wide = unsigned __int128;

struct Suffix {
  std::string_view name;  // in lower case
  std::int64_t factor;
};

constexpr std::int64_t kThousand = 1000;
constexpr std::int64_t kKibi = 1024;
constexpr Suffix kByteSuffixes[] = {
    {"", 1},
    {"b", 1},
    {"byte", 1},
    {"bytes", 1},
    {"k", kThousand},
    {"kb", kThousand},
    {"m", kThousand* kThousand},
    {"mb", kThousand* kThousand},
    {"g", kThousand* kThousand* kThousand},
    {"gb", kThousand* kThousand* kThousand},
    {"t", kThousand* kThousand* kThousand* kThousand},
    {"tb", kThousand* kThousand* kThousand* kThousand},
    {"pb", kThousand* kThousand* kThousand* kThousand* kThousand},
    {"kib", kKibi},
    {"mib", kKibi* kKibi},
    {"gib", kKibi* kKibi* kKibi},
    {"tib", kKibi* kKibi* kKibi* kKibi},
    {"pib", kKibi* kKibi* kKibi* kKibi* kKibi},
};
constexpr Suffix kCountSuffixes[] = {
    {"", 1},
    {"k", kThousand},
    {"m", kThousand* kThousand},
    {"b", kThousand* kThousand* kThousand},
    {"t", kThousand* kThousand* kThousand* kThousand},
};

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

// digits × 10^exponent.
struct Number {
  std::int64_t digits = 0;
  int exponent = 0;
  bool too_long = false;
};

// Takes digits with at most one point; nothing when there is no digit.
std::optional<Number> TakeDigits(std::string_view& text) {
  constexpr std::int64_t kMostDigits =
      1'000'000'000'000'000'000;  // 18 of them, leading zeros aside
  Number number;
  bool any = false;
  bool point = false;
  for (; !text.empty() && (IsDigit(text.front()) || (text.front() == '.' && !point));
       text.remove_prefix(1)) {
    if (text.front() == '.') {
      point = true;
      continue;
    }
    any = true;
    number.too_long = number.too_long || number.digits >= kMostDigits / 10;
    if (!number.too_long) {
      number.digits = number.digits * 10 + (text.front() - '0');
      number.exponent -= point ? 1 : 0;
    }
  }
  return any ? std::optional(number) : std::nullopt;
}

// Takes "e9", "e+9" or "e-9" where a digit follows.
void TakeExponent(std::string_view& text, Number& number) {
  constexpr int kFarAway = 1000;  // more decides nothing
  std::string_view rest = text;
  if (rest.empty() || (rest.front() != 'e' && rest.front() != 'E')) {
    return;
  }
  rest.remove_prefix(1);
  const bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+')) {
    rest.remove_prefix(1);
  }
  if (rest.empty() || !IsDigit(rest.front())) {
    return;
  }
  int exponent = 0;
  for (; !rest.empty() && IsDigit(rest.front()); rest.remove_prefix(1)) {
    exponent = std::min(kFarAway, exponent * 10 + (rest.front() - '0'));
  }
  number.exponent += negative ? -exponent : exponent;
  text = rest;
}

std::optional<std::int64_t> FactorOf(std::string_view text, std::span<const Suffix> suffixes) {
  if (text.starts_with(' ')) {
    text.remove_prefix(1);
    if (text.empty()) {
      return std::nullopt;
    }
  }
  const std::string lower = LowerCase(text);
  for (const Suffix& suffix : suffixes) {
    if (lower == suffix.name) {
      return suffix.factor;
    }
  }
  return std::nullopt;
}

struct Amount10 {
  std::int64_t whole = 0;  // rounded to nearest, ties up
  bool exact = true;       // nothing was rounded away
  bool too_large = false;  // past 2^53
  bool has_unit = false;
};

Amount10 Evaluate(const Number& number, std::int64_t factor) {
  Wide value = static_cast<Wide>(number.digits) * static_cast<Wide>(factor);  // below 2^120
  const auto limit = static_cast<Wide>(kLargestAmount);
  for (int i = 0; i < number.exponent && value != 0; ++i) {
    value *= 10;
    if (value > limit) {
      return {.too_large = true};
    }
  }
  bool exact = true;
  bool half = false;  // the digit cut off last says whether to round up
  for (int i = number.exponent; i < 0; ++i) {
    const auto digit = static_cast<int>(value % 10);
    exact = exact && digit == 0;
    half = digit >= 5;
    value /= 10;
  }
  value += half ? 1 : 0;
  if (value > limit) {
    return {.too_large = true};
  }
  return {.whole = static_cast<std::int64_t>(value), .exact = exact};
}

// The sentences of one kind of amount.
struct Wording {
  std::string_view what;
  std::string_view expected;
  std::string_view hint;
};
constexpr Wording kBytesWording = {"a size", "expected one such as 80GB, 79.6GiB or 4096",
                                   "GB is 10^9 bytes, GiB is 2^30"};
constexpr Wording kCountWording = {"a count", "expected one such as 4096, 1.5B, 70b or 1e12",
                                   "k, M, B and T are 10^3, 10^6, 10^9 and 10^12"};

// Mixtral-8x7B has 46,702,792,704 parameters.
constexpr Wording kExpertsWording = {
    "a count", "expected the parameters in all, 46.7B for Mixtral-8x7B",
    "experts share the rest of the network; or give the model's name or config.json"};

tl::unexpected<Error> Refused(std::string_view text, std::string_view where, std::string_view why,
                              const Wording& wording) {
  const std::string shown(text.substr(0, 40));
  return WrongUsage(
      {.where = std::string(where),
       .found = "\"" + shown + (shown.size() < text.size() ? "…" : "") + "\" " + std::string(why),
       .expected = std::string(wording.expected),
       .hint = std::string(wording.hint)});
}

// "8x7B", a mixture of experts; but not "0x10".
bool IsExpertCount(std::string_view text) {
  const std::size_t x = text.find_first_not_of("0123456789");
  return !text.starts_with('0') && x != 0 && x < text.size() &&
         (text[x] == 'x' || text[x] == 'X') && x + 1 < text.size() && IsDigit(text[x + 1]);
}

Result<Amount10> Parse(std::string_view text, std::string_view where,
                       std::span<const Suffix> suffixes, const Wording& wording) {
  std::string_view rest = text;
  std::optional<Number> number = TakeDigits(rest);
  if (!number) {
    return Refused(text, where, "is not " + std::string(wording.what), wording);
  }
  TakeExponent(rest, *number);
  const std::optional<std::int64_t> factor = FactorOf(rest, suffixes);
  if (!factor) {
    return Refused(text, where, "is not " + std::string(wording.what), wording);
  }
  if (number->too_long) {
    return Refused(text, where, "has more than 18 digits", wording);
  }
  Amount10 amount = Evaluate(*number, *factor);
  if (amount.too_large) {
    return Refused(text, where, "is more than 2^53", wording);
  }
  amount.has_unit = *factor > 1;
  return amount;
}

}  // namespace

Result<Bytes> ParseBytes(std::string_view text, std::string_view where) {
  const Result<Amount10> amount = Parse(text, where, kByteSuffixes, kBytesWording);
  if (!amount) {
    return tl::make_unexpected(amount.error());
  }
  if (!amount->exact && !amount->has_unit) {
    return Refused(text, where, "is not a whole number of bytes", kBytesWording);
  }
  return Bytes(amount->whole);
}

Result<std::int64_t> ParseCount(std::string_view text, std::string_view where, Range range) {
  if (IsExpertCount(text)) {
    return Refused(text, where, "is not a count", kExpertsWording);
  }
  const Result<Amount10> amount = Parse(text, where, kCountSuffixes, kCountWording);
  if (!amount) {
    return tl::make_unexpected(amount.error());
  }
  if (!amount->exact) {
    return Refused(text, where, "is not a whole number", kCountWording);
  }
  if (!range.Holds(amount->whole)) {
    return Refused(text, where, "is out of range", {"", ExpectedWholeNumber(range), ""});
  }
  return amount->whole;
}

bool LooksLikeAmount(std::string_view text) {
  if (text.starts_with('.')) {
    text.remove_prefix(1);
  }
  return !text.empty() && IsDigit(text.front());
}

}  // namespace fourpiles
