#include "cli/number_arguments.h"

#include "base/nearest_name.h"
#include "base/try.h"
#include "cli/command_line.h"
#include "formats/any_format.h"
#include "formats/choices.h"
#include "units/parse.h"

namespace fourpiles::cli {
namespace {

constexpr std::string_view kPolicies =
    "ieee: infinity, else NaN, else the largest; saturate: the largest; nan: NaN";

// An option whose values are the names of `choices`.
template <typename Choice>
struct Choices {
  std::string_view option;
  std::string_view kind;  // what an unknown name is an unknown one of
  std::span<const Choice> all;
  std::string_view hint;
};

template <typename Choice>
Result<Choice> ChoiceOf(const Arguments& arguments, const Choices<Choice>& choices,
                        Choice otherwise) {
  const std::string_view typed = arguments.One(choices.option, Name(otherwise));
  std::vector<std::string_view> names;
  for (const Choice choice : choices.all) {
    if (typed == Name(choice)) {
      return choice;
    }
    names.push_back(Name(choice));
  }
  return WrongUsage(
      {.where = std::string(choices.option),
       .found = "unknown " + std::string(choices.kind) + " \"" + std::string(typed) + "\"",
       .expected = DidYouMean(typed, names),
       .hint = std::string(choices.hint)});
}

}  // namespace

Result<void> RefuseIdle(const Arguments& arguments, std::string_view option, bool used,
                        std::string_view needs) {
  if (!arguments.Has(option) || used) {
    return {};
  }
  return WrongUsage({.where = std::string(option),
                     .found = "nothing goes by it",
                     .expected = "expected only with " + std::string(needs)});
}

std::vector<std::string> FormatItemsOf(const std::string& list) {
  std::vector<std::string> names;
  for (const std::string& item : ItemsOf(list)) {
    names.emplace_back();
    for (std::size_t begin = 0; begin <= item.size();) {
      const std::size_t end = std::min(item.find(',', begin), item.size());
      const std::string piece = item.substr(begin, end - begin);
      const std::string joined = names.back() + "," + piece;
      const bool is_choice = !names.back().empty() && FindAnyFormat(joined).has_value();
      const bool is_name = FindAnyFormat(piece.substr(0, piece.find(':'))).has_value();
      if (names.back().empty()) {
        names.back() = piece;
      } else if (is_name && !is_choice) {
        names.push_back(piece);
      } else {
        names.back() = joined;
      }
      begin = end + 1;
    }
  }
  return names;
}

Result<NamedFormats> AnyFormatsOf(const Arguments& arguments, std::string_view option) {
  NamedFormats formats;
  for (const std::string& list : arguments.All(option)) {
    for (const std::string& name : FormatItemsOf(list)) {  // NAME may be a list as well as --to
      TRY(const AnyFormat format, FindAnyFormat(name, option));
      if (const auto* block = std::get_if<BlockFormat>(&format)) {
        formats.blocks.push_back(*block);
      } else {
        formats.numbers.push_back(std::get<NumberFormat>(format));
      }
    }
  }
  return formats;
}

Result<std::vector<NumberFormat>> FormatsOf(const Arguments& arguments, std::string_view option) {
  TRY(NamedFormats formats, AnyFormatsOf(arguments, option));
  if (!formats.blocks.empty()) {
    return NotOfOneValue(formats.blocks.front().name, option);
  }
  return std::move(formats.numbers);
}

Result<std::vector<TypedNumber>> NumbersOf(const Arguments& arguments, std::string_view option) {
  std::vector<TypedNumber> numbers;
  for (const std::string& text : arguments.All(option)) {
    TRY(TypedNumber number, ParseNumber(text, option));
    numbers.push_back(std::move(number));
  }
  return numbers;
}

Result<Overflow> OverflowOf(const Arguments& arguments, Overflow otherwise) {
  return ChoiceOf<Overflow>(arguments, {"--overflow", "policy", kOverflows, kPolicies}, otherwise);
}

Result<TypedConversion> TypedConversionOf(const Arguments& arguments) {
  TypedConversion how;
  Conversion& conversion = how.conversion;
  TRY(conversion.rounding,
      ChoiceOf<RoundingMode>(arguments,
                             {"--rounding", "rounding mode", kRoundingModes,
                              "nearest-even, nearest-away, toward-zero, up, down, to-odd, "
                              "stochastic"},
                             RoundingMode::kNearestEven));
  TRY(conversion.overflow, OverflowOf(arguments));
  TRY(conversion.infinities,
      ChoiceOf<Overflow>(arguments, {"--infinities", "policy", kOverflows, kPolicies},
                         conversion.overflow));
  TRY(conversion.subnormals,
      ChoiceOf<Subnormals>(arguments,
                           {"--subnormals", "choice", kSubnormals,
                            "keep, flush-input (of the format of --from), flush-output"},
                           Subnormals::kKept));
  TRY_VOID(RefuseIdle(arguments, "--from", conversion.subnormals == Subnormals::kFlushedOnInput,
                      "--subnormals flush-input"));
  TRY_VOID(RefuseIdle(arguments, "--seed", conversion.rounding == RoundingMode::kStochastic,
                      "--rounding stochastic"));
  if (arguments.Has("--from")) {
    TRY(how.from, FindFormat(arguments.One("--from"), "--from"));
  }
  TRY(const std::int64_t seed, ParseCount(arguments.One("--seed", "0"), "--seed"));
  conversion.seed = static_cast<std::uint64_t>(seed);
  return how;
}

}  // namespace fourpiles::cli
