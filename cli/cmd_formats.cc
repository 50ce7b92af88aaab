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
     .help = "a format to describe, of one value or of blocks; several are compared",
     .count = Count::kMany},
    {.name = "--markdown",
     .help = "the whole catalogue as Markdown, as docs/FORMATS.md has it",
     .count = Count::kFlag},
};

// The two tables and what else there is, or the facts of those that were named.
std::string TextOf(const NamedFormats& named) {
  const bool both = !named.numbers.empty() && !named.blocks.empty();
  return (named.numbers.empty() ? "" : FormatFactsText(named.numbers)) + (both ? "\n" : "") +
         BlockFormatFactsText(named.blocks);
}

Result<Answer> Run(const Arguments& arguments) {
  TRY(const NamedFormats named, AnyFormatsOf(arguments, "NAME"));
  const bool all = !arguments.Has("NAME");
  if (arguments.Has("--markdown") && !all) {
    return WrongUsage({.where = "--markdown",
                       .found = "the page has every format",
                       .expected = "expected without NAME"});
  }
  const std::span<const NumberFormat> numbers = all ? Formats() : named.numbers;
  const std::span<const BlockFormat> blocks = all ? BlockFormats() : named.blocks;
  Answer answer;
  if (arguments.Has("--markdown")) {
    answer.text = FormatsMarkdown();
  } else {
    answer.text =
        all ? FormatListText(numbers) + "\n" + BlockFormatListText(blocks) : TextOf(named);
  }
  answer.json = {{"formats", FormatsJson(numbers)}, {"block_formats", BlockFormatsJson(blocks)}};
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
        "fourpiles formats e6m9\n"
        "fourpiles formats mxfp4 nf4 int4:group=32,asymmetric q4_k",
    .options = kOptions,
    .run = Run,
};

}  // namespace fourpiles::cli
