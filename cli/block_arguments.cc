#include "cli/block_arguments.h"

#include <string>
#include <string_view>

#include "base/try.h"
#include "report/block_words.h"

namespace fourpiles::cli {
namespace {

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

}  // namespace

Result<void> CheckBlocks(const Arguments& arguments, std::span<const BlockFormat> formats,
                         const Conversion& conversion) {
  for (const BlockFormat& format : formats) {
    TRY_VOID(RefuseToEncode(format));
    TRY_VOID(RefuseOfBlocks(arguments, format, conversion));
    TRY_VOID(RefuseRounding(format, conversion));
  }
  return {};
}

}  // namespace fourpiles::cli
