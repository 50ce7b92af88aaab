// formats: the facts of block formats.

#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "formats/any_format.h"
#include "formats/block_facts.h"
#include "report/block_words.h"
#include "report/columns.h"
#include "report/numbers.h"
#include "units/print.h"

namespace fourpiles {
namespace {

constexpr TensorShape kMillion = {1, 1'000'000};
constexpr double kLargestFloat = std::numeric_limits<float>::max();
constexpr int kListedBits = 4;  // all values of elements of so many bits are told

struct BlockFact {
  const char* name;
  std::string (*text)(const BlockFormat&);
};

std::string AliasText(const BlockFormat& format) {
  const std::string text = fmt::format("{}", fmt::join(AliasesOf(format), ", "));
  return text.empty() ? "-" : text;
}

// Empty where the scale is a float32: its range is that of the values.
std::string LimitsText(const BlockFormat& format) {
  const std::optional<BlockLimits> limits = LimitsOf(format);
  if (!limits) {
    return "";
  }
  const bool wide = limits->largest > kLargestFloat;
  return fmt::format("{} to {}{}{}", NumberText(limits->smallest), NumberText(limits->largest),
                     wide ? ", from 2^128 on infinite as float32" : "",
                     format.kind == BlockKind::kTwoLevel ? " with a tensor scale of 1" : "");
}

constexpr BlockFact kBlockFacts[] = {
    {"also called", AliasText},
    {"element", [](const BlockFormat& f) { return f.element.empty() ? "" : ElementText(f); }},
    {"a value is", ValueText},
    {"share a scale", SharedText},
    {"scale", ScaleText},
    {"is chosen as", RuleText},
    {"positive values", LimitsText},
    {"bits an element", BitsText},
    {"bytes of 1,000,000",
     [](const BlockFormat& f) { return PrintGrouped(StorageBytes(kMillion, f)); }},
    {"codes lie", PackingText},
    {"NaN, infinity", NanText},
    {"choices", ChoicesText},
    {"source", [](const BlockFormat& f) { return std::string(f.source); }},
};

// "-6": the values of tables are float32, and as short as they read back.
std::string EntryText(float value) {
  return fmt::format("{}", value);
}

// All values of an element in rows of eight, those of 4 bits.
std::string CodesText(const BlockFormat& format) {
  constexpr std::size_t kRow = 8;
  const std::vector<float> values = ElementValues(format);
  if (format.element_bits != kListedBits) {
    return "";
  }
  std::vector<std::vector<std::string>> rows;
  for (std::size_t first = 0; first < values.size(); first += kRow) {
    rows.push_back({fmt::format("codes {} to {}", first, first + kRow - 1)});
    for (std::size_t code = first; code < first + kRow; ++code) {
      rows.back().push_back(EntryText(values[code]));
    }
  }
  return InColumns(rows, {.indent = "  ", .right = {1, 2, 3, 4, 5, 6, 7, 8}});
}

std::string OneBlockFormat(const BlockFormat& format) {
  std::vector<std::vector<std::string>> rows;
  for (const BlockFact& fact : kBlockFacts) {
    if (std::string text = fact.text(format); !text.empty()) {
      rows.push_back({fact.name, std::move(text)});
    }
  }
  return FullName(format) + "\n" + InColumns(rows, {.indent = "  "}) + CodesText(format);
}

Json OrNull(std::string_view text) {
  return text.empty() ? Json() : Json(text);
}

Json OrNull(int count) {
  return count == 0 ? Json() : Json(count);
}

std::string_view SharedBy(const BlockFormat& format) {
  if (format.block_elements != 0) {
    return "block";
  }
  return format.granularity == Granularity::kChannel ? "row" : "tensor";
}

Json ValuesJson(const BlockFormat& format) {
  if (format.element_bits != kListedBits) {
    return {};
  }
  Json::Array array;
  for (const float value : ElementValues(format)) {
    array.emplace_back(static_cast<double>(value));
  }
  return array;
}

Json BlockFormatJson(const BlockFormat& format) {
  const std::vector<std::string_view> names = AliasesOf(format);
  const std::optional<BlockLimits> limits = LimitsOf(format);
  const bool microscaling = format.kind == BlockKind::kMicroscaling;
  const bool two_level = format.kind == BlockKind::kTwoLevel;
  return Json::Object{
      {"name", format.name},
      {"full_name", FullName(format)},
      {"aliases", Json::Array(names.begin(), names.end())},
      {"element", OrNull(format.element)},
      {"element_bits", OrNull(format.element_bits)},
      {"value", ValueText(format)},
      {"shared_by", SharedBy(format)},
      {"block_elements", OrNull(format.block_elements)},
      {"block_bytes", OrNull(format.block_bits / 8)},
      {"scale", OrNull(ScaleFormatName(format))},
      {"scale_bits", OrNull(format.scale_bits)},
      {"scale_rule", microscaling ? Json(Name(format.scale_rule)) : Json()},
      {"tensor_scale", two_level ? Json(Name(format.tensor_scale)) : Json()},
      {"asymmetric", format.asymmetric},
      {"double_quantized", format.double_quantized},
      {"bits_per_element", BitsPerElement(format)},
      {"bytes_of_million", StorageBytes(kMillion, format)},
      {"values", ValuesJson(format)},
      {"largest", limits ? Json(limits->largest) : Json()},
      {"smallest", limits ? Json(limits->smallest) : Json()},
      {"packing", PackingText(format)},
      {"encoded", CanEncode(format)},
      {"choices", TextsJson(ChoicesOf(format))},
      {"source", format.source},
  };
}

}  // namespace

std::string BlockFormatListText(std::span<const BlockFormat> formats) {
  std::vector<std::vector<std::string>> rows = {{"block format", "bits an element", "element",
                                                 "share a scale", "scale", "also called",
                                                 "source"}};
  for (const BlockFormat& f : formats) {
    rows.push_back({std::string(f.name), BitsText(f), ElementText(f), SharedText(f), ScaleText(f),
                    AliasText(f), std::string(f.source)});
  }
  return InColumns(rows, {.right = {1}}) +
         "Choices stand behind a colon: mxfp4:scale=rceil, nf4:block=128,double, "
         "int4:group=32,asymmetric.\n";
}

std::string BlockFormatFactsText(std::span<const BlockFormat> formats) {
  std::string text;
  for (const BlockFormat& format : formats) {
    text += (text.empty() ? "" : "\n") + OneBlockFormat(format);
  }
  return text;
}

Json BlockFormatsJson(std::span<const BlockFormat> formats) {
  Json::Array array;
  for (const BlockFormat& format : formats) {
    array.push_back(BlockFormatJson(format));
  }
  return array;
}

}  // namespace fourpiles
