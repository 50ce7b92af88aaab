// The names of block formats and the choices behind their colon: "int4:group=128,asymmetric".

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "base/nearest_name.h"
#include "base/try.h"
#include "formats/any_format.h"
#include "fourpiles/block_format.h"

namespace fourpiles {
namespace {

constexpr ScaleRule kScaleRules[] = {ScaleRule::kFloor, ScaleRule::kEven, ScaleRule::kCeil,
                                     ScaleRule::kRceil};
constexpr TensorScale kTensorScales[] = {TensorScale::kMultiplier, TensorScale::kDivisor};
constexpr int kLargestGroup = 1 << 20;

// Cuts the text at the first separator: returns what stands before it and leaves what follows.
std::string_view TakeUntil(std::string_view& rest, char separator) {
  const std::size_t end = std::min(rest.find(separator), rest.size());
  const std::string_view taken = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return taken;
}

// Sets what the choice chooses; false: the format cannot have that value.
using Choose = bool (*)(std::string_view value, BlockFormat& format);

struct Choice {
  std::string_view key;
  std::string_view values;  // as a message lists them; empty: the key stands alone
  Choose choose;
  std::string_view decides = key;  // what only one choice of a name may decide
};

// The one of `all` that is named so.
template <class Enum>
bool ChooseNamed(std::string_view value, std::span<const Enum> all, Enum& chosen) {
  const auto found = std::ranges::find_if(all, [&](Enum one) { return Name(one) == value; });
  if (found == all.end()) {
    return false;
  }
  chosen = *found;
  return true;
}

bool ChooseCount(std::string_view value, int largest, int& chosen) {
  int count = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), count);
  if (error != std::errc() || end != value.data() + value.size() || count < 1 || count > largest) {
    return false;
  }
  chosen = count;
  return true;
}

bool ChooseScaleRule(std::string_view value, BlockFormat& format) {
  return ChooseNamed<ScaleRule>(value, kScaleRules, format.scale_rule);
}

bool ChooseTensorScale(std::string_view value, BlockFormat& format) {
  return ChooseNamed<TensorScale>(value, kTensorScales, format.tensor_scale);
}

// The sizes bitsandbytes has kernels for; af4 has values for one.
bool ChooseBlock(std::string_view value, BlockFormat& format) {
  int block = 0;
  const bool power = ChooseCount(value, 4096, block) && block >= 32 && (block & (block - 1)) == 0;
  if (!power || (format.name == "af4" && block != 64)) {
    return false;
  }
  format.block_elements = block;
  return true;
}

bool ChooseDouble(std::string_view /*value*/, BlockFormat& format) {
  format.double_quantized = true;
  format.scale_bits = 8;
  return true;
}

bool ChooseGroup(std::string_view value, BlockFormat& format) {
  format.granularity = Granularity::kGroup;
  return ChooseCount(value, kLargestGroup, format.block_elements);
}

template <Granularity granularity>
bool ChooseWhole(std::string_view /*value*/, BlockFormat& format) {
  format.granularity = granularity;
  format.block_elements = 0;
  return true;
}

template <bool asymmetric>
bool ChooseSymmetry(std::string_view /*value*/, BlockFormat& format) {
  format.asymmetric = asymmetric;
  format.scale_bits = asymmetric ? 40 : 32;
  return true;
}

constexpr Choice kMicroscalingChoices[] = {
    {"scale", "floor, even, ceil or rceil", ChooseScaleRule}};
constexpr Choice kTwoLevelChoices[] = {
    {"tensor-scale", "multiplier or divisor", ChooseTensorScale}};
constexpr Choice kTableChoices[] = {
    {"block", "32, 64, 128, 256, 512, 1024, 2048 or 4096", ChooseBlock},
    {"double", "", ChooseDouble}};
constexpr Choice kAf4Choices[] = {{"block", "64", ChooseBlock}, {"double", "", ChooseDouble}};
constexpr Choice kIntegerChoices[] = {
    {"group", "a count from 1 to 1048576", ChooseGroup, "granularity"},
    {"channel", "", ChooseWhole<Granularity::kChannel>, "granularity"},
    {"tensor", "", ChooseWhole<Granularity::kTensor>, "granularity"},
    {"symmetric", "", ChooseSymmetry<false>, "symmetry"},
    {"asymmetric", "", ChooseSymmetry<true>, "symmetry"}};

bool IsUnsigned(const BlockFormat& format) {
  return format.element.starts_with('u');
}

std::span<const Choice> ChoiceRows(const BlockFormat& format) {
  switch (format.kind) {
    case BlockKind::kMicroscaling:
      return kMicroscalingChoices;
    case BlockKind::kTwoLevel:
      return kTwoLevelChoices;
    case BlockKind::kCodeBook:
      return format.name == "af4" ? std::span<const Choice>(kAf4Choices) : kTableChoices;
    case BlockKind::kInteger:  // unsigned codes always have a zero point
      return std::span(kIntegerChoices).first(IsUnsigned(format) ? 3 : 5);
    case BlockKind::kGgml:
      break;
  }
  return {};
}

bool IsNamed(const BlockFormat& format, std::string_view lower) {
  return format.name == lower || std::ranges::count(WordsOf(format.aliases), lower) != 0;
}

tl::unexpected<Error> UnknownFormat(std::string_view name, std::string_view where) {
  if (FindFormat(name)) {
    return NotOfBlocks(name, where);
  }
  return WrongUsage({.where = std::string(where),
                     .found = "unknown block format \"" + std::string(name) + "\"",
                     .expected = FormatMeant(name, BlockFormatNames()),
                     .hint = "\"fourpiles formats\" lists them all"});
}

std::string Quoted(std::string_view text) {
  return "\"" + std::string(text) + "\"";
}

// "nf4 has block=…, double".
std::string ChoicesHint(const BlockFormat& format) {
  std::string all;
  for (const Choice& choice : ChoiceRows(format)) {
    all += (all.empty() ? " has " : ", ") + std::string(choice.key) +
           (choice.values.empty() ? "" : "=…");
  }
  return std::string(format.name) + (all.empty() ? " has no choices" : all);
}

// One choice of a name: "double" of "nf4:block=64,double".
struct TypedChoice {
  std::string_view text = {};  // a part of the name
  std::string_view name = {};
  std::string_view where = {};

  std::string_view Key() const { return text.substr(0, text.find('=')); }
  std::string_view Before() const {  // without the colon or the comma
    return name.substr(0, static_cast<std::size_t>(text.data() - name.data()) - 1);
  }
};

// "nf4:block=128" for "nf4:128": the key whose value was typed.
std::string WithKey(const TypedChoice& typed, BlockFormat format) {
  for (const Choice& choice : ChoiceRows(format)) {
    if (!choice.values.empty() && choice.choose(typed.text, format)) {
      return std::string(typed.Before()) +
             (typed.Before().find(':') == std::string_view::npos ? ":" : ",") +
             std::string(choice.key) + "=" + std::string(typed.text);
    }
  }
  return "";
}

bool NamesFormat(const TypedChoice& typed) {
  const bool is_key = typed.text == "double";  // float64 is called so too
  return !is_key && FindAnyFormat(typed.text.substr(0, typed.text.find(':'))).has_value();
}

tl::unexpected<Error> UnknownChoice(const TypedChoice& typed, const BlockFormat& format) {
  if (NamesFormat(typed)) {
    const std::string_view rest = typed.name.substr(typed.Before().size() + 1);
    return WrongUsage(
        {.where = std::string(typed.where),
         .found = Quoted(typed.text) + " is a format, no choice of " + Quoted(format.name),
         .hint = "behind a colon a space separates formats: " + std::string(typed.Before()) + " " +
                 std::string(rest)});
  }
  std::vector<std::string_view> keys;
  for (const Choice& choice : ChoiceRows(format)) {
    keys.push_back(choice.key);
  }
  const std::string meant = WithKey(typed, format);
  return WrongUsage({.where = std::string(typed.where),
                     .found = Quoted(format.name) + " has no choice " + Quoted(typed.Key()),
                     .expected = meant.empty() ? DidYouMean(typed.Key(), keys)
                                               : "did you mean " + Quoted(meant) + "?",
                     .hint = ChoicesHint(format)});
}

// Sets one "key=value" or "key", and gives its row.
Result<const Choice*> ApplyChoice(const TypedChoice& typed, BlockFormat& format) {
  if (typed.text.empty()) {
    return WrongUsage({.where = std::string(typed.where),
                       .found = Quoted(typed.name) + " has an empty choice",
                       .expected = "expected one behind each colon and comma",
                       .hint = ChoicesHint(format)});
  }
  const std::string_view key = typed.Key();
  const std::span<const Choice> choices = ChoiceRows(format);
  const auto choice = std::ranges::find(choices, key, &Choice::key);
  if (choice == choices.end()) {
    return UnknownChoice(typed, format);
  }
  const bool has_value = key.size() < typed.text.size();
  const std::string_view value = typed.text.substr(has_value ? key.size() + 1 : key.size());
  if (has_value == choice->values.empty() || !choice->choose(value, format)) {
    return WrongUsage({.where = std::string(typed.where),
                       .found = Quoted(typed.text) + " of " + Quoted(format.name),
                       .expected = choice->values.empty() ? "expected no value"
                                                          : "expected " + std::string(key) + "=" +
                                                                std::string(choice->values)});
  }
  return &*choice;
}

// Sets all of "key=value,key"; no two of them decide the same.
Result<void> ApplyChoices(std::string_view choices, TypedChoice typed, BlockFormat& format) {
  std::vector<std::pair<std::string_view, std::string_view>> made;  // what it decides, as typed
  for (bool more = true; more;) {
    more = choices.find(',') != std::string_view::npos;
    typed.text = TakeUntil(choices, ',');
    TRY(const Choice* const choice, ApplyChoice(typed, format));
    for (const auto& [decides, earlier] : made) {
      if (decides == choice->decides) {
        return WrongUsage(
            {.where = std::string(typed.where),
             .found = Quoted(earlier) + " and " + Quoted(typed.text) + " of " + Quoted(format.name),
             .expected = "expected one of them"});
      }
    }
    made.emplace_back(choice->decides, typed.text);
  }
  return {};
}

std::string IntegerChoices(const BlockFormat& format) {
  std::string text = "channel";
  if (format.granularity == Granularity::kGroup) {
    text = "group=" + std::to_string(format.block_elements);
  } else if (format.granularity == Granularity::kTensor) {
    text = "tensor";
  }
  if (!IsUnsigned(format)) {
    text += format.asymmetric ? ",asymmetric" : ",symmetric";
  }
  return text;
}

}  // namespace

Result<BlockFormat> FindBlockFormat(std::string_view name, std::string_view where) {
  const std::string lower = LowerCase(name);
  std::string_view choices = lower;
  const std::string_view base = TakeUntil(choices, ':');
  const auto found = std::ranges::find_if(
      BlockFormats(), [&](const BlockFormat& format) { return IsNamed(format, base); });
  if (found == BlockFormats().end()) {
    return UnknownFormat(name.substr(0, base.size()), where);
  }
  BlockFormat format = *found;
  if (base.size() < lower.size()) {
    TRY_VOID(ApplyChoices(choices, {.name = lower, .where = where}, format));
  }
  return format;
}

std::vector<std::string> ChoicesOf(const BlockFormat& format) {
  std::vector<std::string> choices;
  for (const Choice& choice : ChoiceRows(format)) {
    choices.push_back(std::string(choice.key) +
                      (choice.values.empty() ? "" : "=" + std::string(choice.values)));
  }
  return choices;
}

std::string FullName(const BlockFormat& format) {
  std::string name(format.name);
  switch (format.kind) {
    case BlockKind::kMicroscaling:
      return name + ":scale=" + std::string(Name(format.scale_rule));
    case BlockKind::kTwoLevel:
      return name + ":tensor-scale=" + std::string(Name(format.tensor_scale));
    case BlockKind::kCodeBook:
      return name + ":block=" + std::to_string(format.block_elements) +
             (format.double_quantized ? ",double" : "");
    case BlockKind::kInteger:
      return name + ":" + IntegerChoices(format);
    case BlockKind::kGgml:
      break;
  }
  return name;
}

std::string_view Name(ScaleRule rule) {
  switch (rule) {
    case ScaleRule::kFloor:
      return "floor";
    case ScaleRule::kEven:
      return "even";
    case ScaleRule::kCeil:
      return "ceil";
    case ScaleRule::kRceil:
      break;
  }
  return "rceil";
}

std::string_view Name(TensorScale tensor_scale) {
  return tensor_scale == TensorScale::kMultiplier ? "multiplier" : "divisor";
}

}  // namespace fourpiles
