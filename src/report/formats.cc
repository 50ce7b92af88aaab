// formats: the facts of number formats, and how their bits lie.

#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "report/columns.h"
#include "report/numbers.h"

namespace fourpiles {
namespace {

struct Fact {
  const char* name;
  std::string (*text)(const NumberFormat&);
};

std::string AliasText(const NumberFormat& format) {
  const std::string text = fmt::format("{}", fmt::join(AliasesOf(format), ", "));
  return text.empty() ? "-" : text;
}

std::string ThresholdText(const NumberFormat& format) {
  const double threshold = OverflowThreshold(format);
  if (std::isinf(threshold)) {
    return "half a step past it";  // of float64: no double holds that
  }
  return (ThresholdOverflows(format) ? "from " : "above ") + NumberText(threshold);
}

std::string PastLargest(const NumberFormat& format) {
  switch (format.specials) {
    case Specials::kIeee:
    case Specials::kP3109Extended:
      return "infinity";
    case Specials::kNanAtTop:
    case Specials::kNanAtZero:
      return "NaN";
    case Specials::kNone:
      break;
  }
  return "the largest";
}

constexpr Fact kFacts[] = {
    {"also called", AliasText},
    {"bits", [](const NumberFormat& f) { return fmt::to_string(Bits(f)); }},
    {"sign bits", [](const NumberFormat& f) { return std::string(f.has_sign ? "1" : "0"); }},
    {"exponent bits", [](const NumberFormat& f) { return fmt::to_string(f.exponent_bits); }},
    {"fraction bits", [](const NumberFormat& f) { return fmt::to_string(f.fraction_bits); }},
    {"exponent bias", [](const NumberFormat& f) { return fmt::to_string(f.bias); }},
    {"largest", [](const NumberFormat& f) { return NumberText(Largest(f)); }},
    {"smallest normal", [](const NumberFormat& f) { return NumberText(SmallestNormal(f)); }},
    {"smallest positive", [](const NumberFormat& f) { return NumberText(SmallestPositive(f)); }},
    {"step near 1.0", [](const NumberFormat& f) { return NumberText(StepNearOne(f)); }},
    {"decimal digits",
     [](const NumberFormat& f) { return fmt::format("{:.1f}", DecimalDigits(f)); }},
    {"rounds past the largest", ThresholdText},
    {"past the largest comes", PastLargest},
    {"infinities", [](const NumberFormat& f) { return fmt::to_string(Infinities(f)); }},
    {"NaN codes", [](const NumberFormat& f) { return fmt::to_string(Nans(f)); }},
    {"source", [](const NumberFormat& f) { return std::string(f.source); }},
};

// The bits of a code, its fields apart: "0 10001 0110100000".
std::string Fields(std::uint64_t code, const NumberFormat& format) {
  std::string text;
  for (int bit = Bits(format) - 1; bit >= 0; --bit) {
    text += ((code >> bit) & 1) != 0 ? '1' : '0';
    if (bit == format.exponent_bits + format.fraction_bits ||
        (bit == format.fraction_bits && bit != 0)) {
      text += ' ';
    }
  }
  return text;
}

// "s eeeee ffffffffff"
std::string Layout(const NumberFormat& format) {
  const auto run = [](int count, char letter) {
    return std::string(static_cast<std::size_t>(count), letter);
  };
  return (format.has_sign ? "s " : "") + run(format.exponent_bits, 'e') +
         (format.fraction_bits > 0 ? " " + run(format.fraction_bits, 'f') : "");
}

std::string LayoutText(const NumberFormat& format) {
  const int digits = (Bits(format) + 3) / 4;
  std::vector<std::vector<std::string>> rows = {
      {fmt::format("bits {} to 0", Bits(format) - 1), Layout(format)}};
  const auto row = [&](const std::string& name, double value) {
    const std::uint64_t code = Encode(value, format).code;
    rows.push_back({name, Fields(code, format), fmt::format("0x{:0{}x}", code, digits)});
  };
  row("1.0", 1.0);
  row("largest", Largest(format));
  row("smallest positive", SmallestPositive(format));
  return fmt::format("{}\n{}", format.name, InColumns(rows, {.indent = "  "}));
}

Json FormatJson(const NumberFormat& format) {
  const std::vector<std::string_view> names = AliasesOf(format);
  Json::Array aliases(names.begin(), names.end());
  const bool subnormals = format.has_subnormals && format.fraction_bits > 0;
  return Json::Object{
      {"name", format.name},
      {"aliases", std::move(aliases)},
      {"bits", Bits(format)},
      {"sign_bits", format.has_sign ? 1 : 0},
      {"exponent_bits", format.exponent_bits},
      {"fraction_bits", format.fraction_bits},
      {"bias", format.bias},
      {"layout", Layout(format)},
      {"largest", Largest(format)},
      {"smallest_normal", SmallestNormal(format)},
      {"smallest_subnormal", subnormals ? Json(SmallestPositive(format)) : Json()},
      {"step_near_one", StepNearOne(format)},
      {"decimal_digits", DecimalDigits(format)},
      {"overflow_threshold", OverflowThreshold(format)},
      {"threshold_overflows", ThresholdOverflows(format)},
      {"infinities", static_cast<std::int64_t>(Infinities(format))},
      {"nans", static_cast<std::int64_t>(Nans(format))},
      {"source", format.source},
  };
}

}  // namespace

std::string NumberText(double value) {
  return fmt::format("{}", value);
}

std::string FormatListText(std::span<const NumberFormat> formats) {
  std::vector<std::vector<std::string>> rows = {{"format", "bits", "exponent", "fraction",
                                                 "largest", "smallest positive", "step near 1.0",
                                                 "also called"}};
  for (const NumberFormat& f : formats) {
    rows.push_back({std::string(f.name), fmt::to_string(Bits(f)), fmt::to_string(f.exponent_bits),
                    fmt::to_string(f.fraction_bits), fmt::format("{:.6g}", Largest(f)),
                    fmt::format("{:.3g}", SmallestPositive(f)),
                    fmt::format("{:.3g}", StepNearOne(f)), AliasText(f)});
  }
  return InColumns(rows, {.right = {1, 2, 3, 4, 5, 6}}) +
         "Any pair of exponent and fraction bits is a format too: e6m9 (IEEE-like), e3m3fn (no "
         "infinity).\n"
         "So are the 8-bit formats of the IEEE P3109 draft: binary8p1se to binary8p8uf.\n";
}

std::string FormatFactsText(std::span<const NumberFormat> formats) {
  std::vector<std::vector<std::string>> rows = {{""}};
  for (const NumberFormat& format : formats) {
    rows.front().emplace_back(format.name);
  }
  for (const Fact& fact : kFacts) {
    rows.push_back({fact.name});
    for (const NumberFormat& format : formats) {
      rows.back().push_back(fact.text(format));
    }
  }
  std::string text = InColumns(rows, {});
  for (const NumberFormat& format : formats) {
    text += "\n" + LayoutText(format);
  }
  return text;
}

Json FormatsJson(std::span<const NumberFormat> formats) {
  Json::Array array;
  for (const NumberFormat& format : formats) {
    array.push_back(FormatJson(format));
  }
  return array;
}

}  // namespace fourpiles
