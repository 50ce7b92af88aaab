#include "cli/number_arguments.h"

#include "base/nearest_name.h"
#include "base/try.h"

namespace fourpiles::cli {

Result<std::vector<NumberFormat>> FormatsOf(const Arguments& arguments, std::string_view option) {
  std::vector<NumberFormat> formats;
  for (const std::string& name : arguments.All(option)) {
    TRY(const NumberFormat format, FindFormat(name, option));
    formats.push_back(format);
  }
  return formats;
}

Result<std::vector<TypedNumber>> NumbersOf(const Arguments& arguments, std::string_view option) {
  std::vector<TypedNumber> numbers;
  for (const std::string& text : arguments.All(option)) {
    TRY(TypedNumber number, ParseNumber(text, option));
    numbers.push_back(std::move(number));
  }
  return numbers;
}

Result<Overflow> OverflowOf(const Arguments& arguments) {
  const std::string_view typed = arguments.One("--overflow", Name(Overflow::kIeee));
  std::vector<std::string_view> names;
  for (const Overflow overflow : {Overflow::kIeee, Overflow::kSaturate, Overflow::kNan}) {
    if (typed == Name(overflow)) {
      return overflow;
    }
    names.push_back(Name(overflow));
  }
  return WrongUsage(
      {.where = "--overflow",
       .found = "unknown policy \"" + std::string(typed) + "\"",
       .expected = DidYouMean(typed, names),
       .hint = "ieee: infinity, else NaN, else the largest; saturate: the largest; nan: NaN"});
}

}  // namespace fourpiles::cli
