// formats --markdown: the tables of docs/FORMATS.md.

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "formats/any_format.h"
#include "formats/choices.h"
#include "fourpiles/arithmetic.h"
#include "report/block_words.h"
#include "report/markdown.h"
#include "report/numbers.h"

namespace fourpiles {
namespace {

using Rows = std::vector<std::vector<std::string>>;

// "2^−14"; every smallest value and every step is a power of two.
std::string PowerText(double value) {
  const int exponent = std::ilogb(value);
  return fmt::format("2^{}{}", exponent < 0 ? "−" : "", std::abs(exponent));
}

std::string SubnormalText(const NumberFormat& format) {
  const bool any = format.has_subnormals && format.fraction_bits > 0;
  return any ? PowerText(SmallestPositive(format)) : "none";
}

// "65504"; where that has more digits than a table needs, "3.3895314e+38".
std::string LargestText(const NumberFormat& format) {
  return fmt::format("{:.8g}", Largest(format));
}

std::string ThresholdText(const NumberFormat& format) {
  const double threshold = OverflowThreshold(format);
  return (ThresholdOverflows(format) ? "from " : "above ") +
         (std::isinf(threshold) ? "2^1024 − 2^970" : fmt::format("{:.8g}", threshold));
}

std::string SpecialsText(const NumberFormat& format) {
  std::vector<std::string> words;
  if (const std::uint64_t infinities = Infinities(format); infinities > 0) {
    words.push_back(fmt::format("{} infinit{}", infinities, infinities == 1 ? "y" : "ies"));
  }
  if (const std::uint64_t nans = Nans(format); nans > 0) {
    // Beyond a few, the count says nothing that "many" does not.
    words.push_back(nans > 1000 ? "NaNs" : fmt::format("{} NaN{}", nans, nans == 1 ? "" : "s"));
  }
  if (!format.has_sign) {
    words.emplace_back("no sign");
  } else if (format.specials == Specials::kNanAtZero || format.source.starts_with("IEEE P3109")) {
    words.emplace_back("no −0");
  }
  return words.empty() ? "none" : fmt::format("{}", fmt::join(words, ", "));
}

std::string Joined(const std::vector<std::string_view>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string NumberFormatRows(std::span<const NumberFormat> formats) {
  Rows rows = {{"format", "bits", "exponent", "fraction", "bias", "specials", "largest",
                "smallest normal", "smallest subnormal", "step near 1", "past the largest"}};
  const bool named = !formats.front().aliases.empty();
  if (named) {
    rows.front().emplace_back("also called");
  }
  for (const NumberFormat& f : formats) {
    rows.push_back({std::string(f.name), fmt::to_string(Bits(f)), fmt::to_string(f.exponent_bits),
                    fmt::to_string(f.fraction_bits), fmt::to_string(f.bias), SpecialsText(f),
                    LargestText(f), PowerText(SmallestNormal(f)), SubnormalText(f),
                    PowerText(StepNearOne(f)), ThresholdText(f)});
    if (named) {
      rows.back().push_back(Joined(AliasesOf(f)));
    }
  }
  return MarkdownRows(rows, {1, 2, 3, 4, 6});
}

template <class Format>
std::string SourceList(std::span<const Format> formats) {
  Rows rows = {{"source", "formats"}};
  for (const Format& format : formats) {
    const auto same = std::find_if(rows.begin() + 1, rows.end(),
                                   [&](const auto& row) { return row[0] == format.source; });
    if (same != rows.end()) {
      (*same)[1] += ", " + std::string(format.name);
    } else {
      rows.push_back({std::string(format.source), std::string(format.name)});
    }
  }
  return MarkdownRows(rows, {});
}

bool IsGgml(const BlockFormat& format) {
  return format.kind == BlockKind::kGgml;
}

std::string BlockRows() {
  Rows rows = {{"format", "element", "share a scale", "scale", "is chosen as", "bits an element",
                "codes lie", "NaN, infinity", "choices", "also called"}};
  for (const BlockFormat& f : BlockFormats()) {
    if (!IsGgml(f)) {
      rows.push_back({std::string(f.name), ElementText(f), SharedText(f), ScaleText(f), RuleText(f),
                      BitsText(f), PackingText(f), NanText(f), ChoicesText(f),
                      Joined(AliasesOf(f))});
    }
  }
  return MarkdownRows(rows, {5});
}

std::string GgmlRows() {
  Rows rows = {{"format", "elements", "bits an element", "value", "a block", "encoded"}};
  for (const BlockFormat& f : BlockFormats()) {
    if (IsGgml(f)) {
      rows.push_back({std::string(f.name), fmt::to_string(f.block_elements), BitsText(f),
                      ElementText(f), PackingText(f), CanEncode(f) ? "yes" : "no"});
    }
  }
  return MarkdownRows(rows, {1, 2});
}

std::string_view Meaning(RoundingMode mode) {
  switch (mode) {
    case RoundingMode::kNearestEven:
      return "the nearer of the two values around it; a tie to the even code";
    case RoundingMode::kNearestAway:
      return "the nearer one; a tie away from zero";
    case RoundingMode::kTowardZero:
      return "the smaller magnitude: truncation";
    case RoundingMode::kUp:
      return "toward +infinity";
    case RoundingMode::kDown:
      return "toward −infinity";
    case RoundingMode::kToOdd:
      return "the odd code of the two, if it is not exact: rounding again, to at least two bits "
             "fewer, is then as good as rounding once";
    case RoundingMode::kStochastic:
      break;
  }
  return "away from zero with the chance that is the fraction cut off, by the random bits of seed "
         "and place";
}

std::string_view Meaning(Overflow overflow) {
  switch (overflow) {
    case Overflow::kIeee:
      return "infinity; NaN where there is none; the largest where there is neither";
    case Overflow::kSaturate:
      return "the largest";
    case Overflow::kNan:
      break;
  }
  return "NaN; the largest where there is none";
}

std::string_view Meaning(Subnormals subnormals) {
  switch (subnormals) {
    case Subnormals::kKept:
      return "as any value";
    case Subnormals::kFlushedOnInput:
      return "a value that is subnormal where it comes from is zero, with its sign";
    case Subnormals::kFlushedOnOutput:
      break;
  }
  return "a result that is subnormal, after rounding, is zero, with its sign";
}

template <class Choices>
void AddChoices(std::string_view option, const Choices& choices, Rows& rows) {
  for (const auto choice : choices) {
    rows.push_back({fmt::format("`{} {}`", option, Name(choice)), std::string(Meaning(choice))});
  }
}

std::string ConversionRows() {
  Rows rows = {{"option", "what becomes of a value"}};
  AddChoices("--rounding", kRoundingModes, rows);
  AddChoices("--overflow", kOverflows, rows);
  AddChoices("--subnormals", kSubnormals, rows);
  return MarkdownRows(rows, {});
}

std::string ProductsText(const Accumulator& a) {
  if (a.aligned) {
    return fmt::format("{} at once, each cut to {} fraction bits of the largest",
                       a.aligned->products, a.aligned->fraction_bits);
  }
  return a.rounds_products ? "one by one, rounded, then added"
                           : "one by one, by a fused multiply-add";
}

std::string AccumulatorRows() {
  Rows rows = {{"accumulator", "running sum", "rounded", "products", "promoted", "source"}};
  for (const Accumulator& a : Accumulators()) {
    rows.push_back(
        {std::string(a.name), std::string(a.format.name), std::string(Name(a.conversion.rounding)),
         ProductsText(a),
         a.promotion ? fmt::format("to {} every {}", a.promotion->format.name, a.promotion->every)
                     : "",
         std::string(a.source)});
  }
  return MarkdownRows(rows, {});
}

}  // namespace

std::string FormatsMarkdown() {
  return "## Formats of one value\n\n" + NumberFormatRows(Formats()) + "\n" +
         SourceList(Formats()) + "\n## IEEE P3109, 8 bits\n\n" + NumberFormatRows(P3109Formats()) +
         "\n## Block formats\n\n" + BlockRows() + "\n" +
         SourceList(BlockFormats().first(static_cast<std::size_t>(
             std::ranges::find_if(BlockFormats(), IsGgml) - BlockFormats().begin()))) +
         "\n## Blocks of ggml\n\n" + GgmlRows() + "\n## Rounding and policies\n\n" +
         ConversionRows() + "\n## Accumulators\n\n" + AccumulatorRows();
}

}  // namespace fourpiles
