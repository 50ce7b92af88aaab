// fourpiles scale VALUE... --by S --in FORMAT...

#include <cmath>

#include "base/try.h"
#include "cli/commands.h"
#include "cli/number_arguments.h"
#include "report/numbers.h"

namespace fourpiles::cli {
namespace {

constexpr Option kOptions[] = {
    {.name = "VALUE",
     .value = "VALUE",
     .help = "a number, such as a gradient",
     .count = Count::kMany,
     .required = true},
    {.name = "--by", .value = "S", .help = "the loss scale", .required = true},
    {.name = "--in",
     .value = "FORMAT",
     .help = "the number format that stores the scaled value",
     .count = Count::kMany,
     .required = true},
    kOverflowOption,
};

Result<TypedNumber> ScaleOf(const Arguments& arguments) {
  TRY(TypedNumber scale, ParseFiniteNumber(arguments.One("--by"), "--by"));
  if (scale.nearest == 0 || std::isinf(scale.nearest)) {  // 1e-400 and 1e400 are no doubles
    return WrongUsage({.where = "--by",
                       .found = "a scale of \"" + scale.text + "\"",
                       .expected = "expected one that a value can be divided by",
                       .hint = "loss scales are powers of two such as 1024"});
  }
  return scale;
}

Result<Answer> Run(const Arguments& arguments) {
  std::vector<TypedNumber> values;
  for (const std::string& text : arguments.All("VALUE")) {
    TRY(TypedNumber value, ParseFiniteNumber(text, "VALUE"));
    values.push_back(std::move(value));
  }
  TRY(const TypedNumber scale, ScaleOf(arguments));
  TRY(const std::vector<NumberFormat> formats, FormatsOf(arguments, "--in"));
  TRY(const Overflow overflow, OverflowOf(arguments));
  std::vector<ScaleResult> results;
  for (const TypedNumber& value : values) {
    for (const NumberFormat& format : formats) {
      results.push_back({value, scale, format, Scale(value, scale, format, overflow)});
    }
  }
  Answer answer;
  answer.text = ScaleText(results, overflow);
  answer.json = ScaleJson(results, overflow);
  return answer;
}

}  // namespace

constexpr Command kScaleCommand = {
    .name = "scale",
    .summary = "loss scaling of a value: multiplied, stored, divided",
    .examples =
        "fourpiles scale 1e-8 --by 1024 --in float16\n"
        "fourpiles scale 1e-8 3e-6 --by 65536 --in fp16 bf16",
    .options = kOptions,
    .run = Run,
};

}  // namespace fourpiles::cli
