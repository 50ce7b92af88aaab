// fourpiles round VALUE... --to FORMAT...

#include "base/try.h"
#include "cli/commands.h"
#include "cli/number_arguments.h"
#include "report/block_words.h"
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

// What only formats of one value go by, and why blocks do not.
struct OfOneValue {
  std::string_view option;
  std::string_view why;
};
constexpr OfOneValue kOfOneValue[] = {
    {"--overflow", "whose elements saturate"},
    {"--infinities", "where an infinity decides over its whole block"},
    {"--from", "whose values come from float32"},
};

Result<void> RefuseOfBlocks(const Arguments& arguments, const BlockFormat& format,
                            const Conversion& conversion) {
  for (const auto& [option, why] : kOfOneValue) {
    const bool as_ever = option == "--overflow" && conversion.overflow == Overflow::kSaturate;
    if (arguments.Has(option) && !as_ever) {
      return WrongUsage({.where = std::string(option),
                         .found = "\"" + std::string(format.name) + "\" is a block format",
                         .expected = std::string(why),
                         .hint = "round to formats of one value in a command of their own"});
    }
  }
  return {};
}

// Tables have one way to round, types of ggml their own.
Result<void> RefuseRounding(const BlockFormat& format, const Conversion& conversion) {
  const bool ggml = format.kind == BlockKind::kGgml;
  const bool rounds = conversion.rounding != RoundingMode::kNearestEven;
  const bool flushes = conversion.subnormals != Subnormals::kKept;
  if (!(rounds && (ggml || format.kind == BlockKind::kCodeBook)) && !(flushes && ggml)) {
    return {};
  }
  const std::string name(format.name);
  return WrongUsage(
      {.where = rounds ? "--rounding" : "--subnormals",
       .found = "\"" + name + (ggml ? "\" is a type of ggml" : "\" is a table of values"),
       .expected = ggml ? "which is rounded as ggml does" : "of which the nearest is taken",
       .hint = "round to " + name + " in a command of its own, without it"});
}

// Some types of ggml can only be read.
Result<void> RefuseToEncode(const BlockFormat& format) {
  if (CanEncode(format)) {
    return {};
  }
  return WrongUsage({.where = "--to",
                     .found = "\"" + std::string(format.name) + "\" can only be decoded",
                     .expected = "ggml finds its codes by a search, or keeps activations in it",
                     .hint = "q4_0, q4_1, q5_0, q5_1 and q8_0 have a formula"});
}

Result<void> CheckBlocks(const Arguments& arguments, std::span<const BlockFormat> formats,
                         const Conversion& conversion) {
  for (const BlockFormat& format : formats) {
    TRY_VOID(RefuseToEncode(format));
    TRY_VOID(RefuseOfBlocks(arguments, format, conversion));
    TRY_VOID(RefuseRounding(format, conversion));
  }
  return {};
}

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
