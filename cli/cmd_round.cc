// fourpiles round VALUE... --to FORMAT...

#include "base/try.h"
#include "cli/block_arguments.h"
#include "cli/commands.h"
#include "cli/number_arguments.h"
#include "report/numbers.h"

namespace fourpiles::cli {
namespace {

constexpr Option kOptions[] = {
    {.name = "VALUE",
     .value = "VALUE",
     .help = "a number: 0.1, -3, 1e-8, 0x1.8p3, inf, nan",
     .count = Count::kMany,
     .required = true},
    {.name = "--to",
     .value = "FORMAT",
     .help = "the number format to round to; of a block format the values are one row of a tensor",
     .count = Count::kMany,
     .required = true},
    kRoundingOption,
    kOverflowOption,
    kInfinitiesOption,
    kSubnormalsOption,
    kFromOption,
    kSeedOption,
};

Result<Answer> Run(const Arguments& arguments) {
  TRY(const std::vector<TypedNumber> values, NumbersOf(arguments, "VALUE"));
  TRY(const NamedFormats formats, AnyFormatsOf(arguments, "--to"));
  RoundResult result;
  TRY(result.how, TypedConversionOf(arguments));
  TRY_VOID(CheckBlocks(arguments, formats.blocks, result.how.conversion));
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (const NumberFormat& format : formats.numbers) {
      result.roundings.push_back(RoundTyped(values[i], format, result.how, i));
    }
  }
  for (const BlockFormat& format : formats.blocks) {
    TRY(BlockRounding rounding, RoundInBlocks(values, format, result.how.conversion));
    result.blocks.push_back(std::move(rounding));
  }
  Answer answer;
  answer.text = RoundText(result);
  answer.json = RoundJson(result);
  return answer;
}

}  // namespace

constexpr Command kRoundCommand = {
    .name = "round",
    .summary = "what a value becomes in a number format, and why",
    .examples =
        "fourpiles round 70000 --to float16 bfloat16\n"
        "fourpiles round 0.1 1e-8 65520 --to fp16,bf16,e4m3\n"
        "fourpiles round 500 --to e4m3 --overflow saturate\n"
        "fourpiles round 0.1 0.1 0.1 --to e2m1 --rounding stochastic --seed 1\n"
        "fourpiles round 1e-5 --to fp16 --rounding up --subnormals flush-output\n"
        "fourpiles round 0.1 -0.3 1.7 4 --to mxfp4 nvfp4 nf4 int8:tensor",
    .options = kOptions,
    .run = Run,
};

}  // namespace fourpiles::cli
