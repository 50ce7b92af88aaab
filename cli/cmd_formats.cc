// fourpiles formats [NAME...]

#include "base/try.h"
#include "cli/commands.h"
#include "cli/number_arguments.h"
#include "report/numbers.h"

namespace fourpiles::cli {
namespace {

constexpr Option kOptions[] = {
    {.name = "NAME",
     .value = "NAME",
     .help = "a format to describe; several are compared",
     .count = Count::kMany},
};

Result<Answer> Run(const Arguments& arguments) {
  TRY(const std::vector<NumberFormat> named, FormatsOf(arguments, "NAME"));
  const bool all = named.empty();
  const std::span<const NumberFormat> formats = all ? Formats() : named;
  Answer answer;
  answer.text = all ? FormatListText(formats) : FormatFactsText(formats);
  answer.json = FormatsJson(formats);
  return answer;
}

}  // namespace

constexpr Command kFormatsCommand = {
    .name = "formats",
    .summary = "facts and bit layout of number formats",
    .examples =
        "fourpiles formats\n"
        "fourpiles formats bfloat16\n"
        "fourpiles formats fp16 bf16 e4m3\n"
        "fourpiles formats e6m9",
    .options = kOptions,
    .run = Run,
};

}  // namespace fourpiles::cli
