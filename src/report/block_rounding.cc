// round: what became of numbers in block formats, and the scales that they share.

#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "report/columns.h"
#include "report/numbers.h"

namespace fourpiles {
namespace {

std::string CodeText(std::uint64_t code, int bits) {
  return fmt::format("0x{:0{}x}", code, (bits + 3) / 4);
}

std::string Hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    text += fmt::format("{:02x}", std::to_integer<int>(byte));
  }
  return text;
}

std::string ElementCode(const BlockElement& element, const BlockFormat& format) {
  return element.code ? CodeText(*element.code, format.element_bits) : "";
}

std::string ErrorWords(const BlockElement& element) {
  if (element.status == RoundingStatus::kOverflow) {
    return "element × scale is past the largest float32";
  }
  return element.error && *element.error != 0 ? fmt::format("error {:+.3g}", *element.error) : "";
}

// "values 1 to 32".
std::string ValuesText(const BlockScale& scale) {
  return scale.count == 1
             ? fmt::format("value {}", scale.first + 1)
             : fmt::format("values {} to {}", scale.first + 1, scale.first + scale.count);
}

// 0.25 as "0.25 = 2^-2" where the scale is a power of two.
std::string ScaleValueText(double value, const BlockFormat& format) {
  if (format.kind != BlockKind::kMicroscaling || std::isnan(value)) {
    return NumberText(value);
  }
  return fmt::format("{} = 2^{}", NumberText(value), std::ilogb(value));
}

std::vector<std::string> ScaleRow(const BlockScale& scale, const BlockFormat& format) {
  if (!scale.value) {
    return {ValuesText(scale), "block", Hex(scale.bytes)};
  }
  std::vector<std::string> row = {ValuesText(scale), "scale", ScaleValueText(*scale.value, format)};
  if (scale.code) {
    row.push_back(CodeText(*scale.code, 8));
  }
  if (scale.zero_point) {
    row.push_back(fmt::format("zero point {}", *scale.zero_point));
  }
  return row;
}

std::vector<std::vector<std::string>> ScaleRows(const BlockRounding& rounding) {
  const BlockTensor& tensor = rounding.tensor;
  std::vector<std::vector<std::string>> rows;
  for (const BlockScale& scale : rounding.scales) {
    rows.push_back(ScaleRow(scale, tensor.format));
  }
  if (tensor.format.kind == BlockKind::kTwoLevel) {
    rows.push_back({"the tensor", std::string(Name(tensor.format.tensor_scale)),
                    NumberText(static_cast<double>(tensor.tensor_scale))});
  }
  if (tensor.format.double_quantized) {
    rows.push_back(
        {"the tensor", "mean of scales", NumberText(static_cast<double>(tensor.scale_offset))});
  }
  return rows;
}

template <class T>
Json OptionalJson(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json CodeJson(const std::optional<std::uint64_t>& code, int bits) {
  return code ? Json(CodeText(*code, bits)) : Json();
}

Json ElementJson(const BlockElement& element, const BlockFormat& format) {
  return Json::Object{{"input", element.input.nearest},
                      {"value", element.value},
                      {"code", CodeJson(element.code, format.element_bits)},
                      {"status", Name(element.status)},
                      {"error", OptionalJson(element.error)}};
}

Json ScaleJson(const BlockScale& scale) {
  return Json::Object{{"first", static_cast<std::int64_t>(scale.first)},
                      {"count", static_cast<std::int64_t>(scale.count)},
                      {"value", OptionalJson(scale.value)},
                      {"code", CodeJson(scale.code, 8)},
                      {"zero_point", OptionalJson(scale.zero_point)},
                      {"bytes", scale.bytes.empty() ? Json() : Json(Hex(scale.bytes))}};
}

Json BlockRoundingJson(const BlockRounding& rounding) {
  const BlockTensor& tensor = rounding.tensor;
  Json::Array values;
  for (const BlockElement& element : rounding.elements) {
    values.push_back(ElementJson(element, tensor.format));
  }
  Json::Array scales;
  for (const BlockScale& scale : rounding.scales) {
    scales.push_back(ScaleJson(scale));
  }
  const bool two_level = tensor.format.kind == BlockKind::kTwoLevel;
  const bool twice = tensor.format.double_quantized;
  return Json::Object{
      {"format", FullName(tensor.format)},
      {"values", std::move(values)},
      {"scales", std::move(scales)},
      {"tensor_scale", two_level ? Json(static_cast<double>(tensor.tensor_scale)) : Json()},
      {"scale_offset", twice ? Json(static_cast<double>(tensor.scale_offset)) : Json()},
      {"zeros", rounding.zeros}};
}

}  // namespace

std::string BlockRoundingText(const BlockRounding& rounding) {
  const BlockFormat& format = rounding.tensor.format;
  std::vector<std::vector<std::string>> rows;
  for (const BlockElement& element : rounding.elements) {
    rows.push_back({element.input.text, std::string(format.name), NumberText(element.value),
                    ElementCode(element, format), std::string(Name(element.status)),
                    ErrorWords(element)});
  }
  std::string text = InColumns(rows, {}) + FullName(format) + "\n" +
                     InColumns(ScaleRows(rounding), {.indent = "  "});
  if (rounding.zeros > 0) {
    text += fmt::format("  {} zeros fill the last block of {}\n", rounding.zeros,
                        format.block_elements);
  }
  return text;
}

Json BlockRoundingsJson(std::span<const BlockRounding> roundings) {
  Json::Array array;
  for (const BlockRounding& rounding : roundings) {
    array.push_back(BlockRoundingJson(rounding));
  }
  return array;
}

}  // namespace fourpiles
