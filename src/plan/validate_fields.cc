#include "plan/validate_fields.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/ascii.h"
#include "base/try.h"

namespace fourpiles {
namespace {

constexpr double kLargestRunNumber = 1e15;

std::optional<double> OwnNumber(const Fields& fields, std::string_view name) {
  const auto number = fields.OptionalNumber(name, {-kLargestRunNumber, kLargestRunNumber});
  return number ? *number : std::nullopt;
}

std::optional<Fields> Shapes(const Fields& row) {
  const auto shapes = row.OptionalObject("arch");
  return shapes ? *shapes : std::nullopt;
}

}  // namespace

double HalfUnit(double value, int least_decimals) {
  // Twelve decimals are more than any log prints.
  std::string text = fmt::format("{:.12f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  const std::string shortest = fmt::format("{}", value);
  if (shortest.find('e') == std::string::npos) {
    text = shortest.ends_with(".0") ? shortest.substr(0, shortest.size() - 1) : shortest;
  }
  const std::size_t point = text.find('.');
  const int decimals = point == std::string::npos ? 0 : static_cast<int>(text.size() - point - 1);
  return 0.5 * std::pow(10.0, -std::max(decimals, least_decimals));
}

std::optional<double> RunNumber(const Fields& row, std::initializer_list<std::string_view> names) {
  const std::optional<Fields> shapes = Shapes(row);
  for (const std::string_view name : names) {
    if (const auto own = OwnNumber(row, name)) {
      return own;
    }
    if (const auto shape = shapes ? OwnNumber(*shapes, name) : std::nullopt) {
      return shape;
    }
  }
  return std::nullopt;
}

tl::unexpected<Error> NotExpressible(std::string reason) {
  return BadInput({.found = std::move(reason)});
}

Result<double> NeededNumber(const Fields& row, std::initializer_list<std::string_view> names) {
  if (const auto number = RunNumber(row, names)) {
    return *number;
  }
  return NotExpressible("no field " + std::string(*names.begin()));
}

Result<std::int64_t> NeededCount(const Fields& row, std::initializer_list<std::string_view> names) {
  TRY(const double number, NeededNumber(row, names));
  if (number < 1 || number != std::floor(number)) {
    return NotExpressible(
        fmt::format("{} is {}, not a whole number from 1", *names.begin(), number));
  }
  return static_cast<std::int64_t>(number);
}

std::int64_t CountOr(const Fields& row, std::initializer_list<std::string_view> names,
                     std::int64_t otherwise) {
  return NeededCount(row, names).value_or(otherwise);
}

std::optional<Printed> PrintedGib(const Fields& row,
                                  std::initializer_list<std::string_view> names) {
  const auto number = RunNumber(row, names);
  if (!number) {
    return std::nullopt;
  }
  return Printed{*number, HalfUnit(*number, 2)};
}

Result<Printed> NeededGib(const Fields& row, std::initializer_list<std::string_view> names) {
  TRY(const double number, NeededNumber(row, names));
  return Printed{number, HalfUnit(number, 2)};
}

std::string RunText(const Fields& row, std::string_view name) {
  const auto text = row.OptionalText(name);
  return text && *text ? std::string(**text) : std::string();
}

Result<int> CacheBits(const Fields& row) {
  const std::string word = LowerCase(RunText(row, "kv_dtype_k"));
  for (const std::string_view plain : {"", "auto", "bf16", "bfloat16", "fp16", "f16", "float16"}) {
    if (word == plain) {
      return 16;
    }
  }
  if (word == "fp32" || word == "f32" || word == "float32") {
    return 32;
  }
  // vLLM: fp8, fp8_e4m3, fp8_e5m2. DeepSeek's fp8_ds_mla mixes formats.
  if (word == "int8" || word == "fp8" || word.starts_with("fp8_e") || word.starts_with("float8")) {
    return 8;
  }
  return NotExpressible("unknown cache format \"" + word + "\"");
}

Result<PagedLayer> LayerOfRun(const Fields& row) {
  PagedLayer layer = {.tensor_parallel = CountOr(row, {"tp"}, 1)};
  TRY(layer.bits, CacheBits(row));
  if (RunNumber(row, {"kv_lora_rank"})) {
    TRY(const std::int64_t rank, NeededCount(row, {"kv_lora_rank"}));
    TRY(const std::int64_t rope, NeededCount(row, {"qk_rope", "qk_rope_head_dim"}));
    layer.elements_per_head = rank + rope;
    return layer;
  }
  TRY(layer.heads, NeededCount(row, {"n_kv_heads", "n_head_kv"}));
  TRY(const std::int64_t head_size, NeededCount(row, {"head_dim"}));
  layer.elements_per_head = head_size + CountOr(row, {"v_head", "v_head_dim"}, head_size);
  return layer;
}

Result<double> TokenBytesOfRun(const Fields& row) {
  if (const auto given = RunNumber(row, {"kv_bytes_per_token_per_gpu", "bytes_per_token"})) {
    return *given;
  }
  TRY(const PagedLayer layer, LayerOfRun(row));
  TRY(const std::int64_t layers, NeededCount(row, {"kv_layers", "full_layers", "n_layer"}));
  const Checked stages = DivideRoundingUp(Checked(layers), CountOr(row, {"pp"}, 1));
  const Checked bytes = TokenBytes(layer) * stages;
  if (!bytes.ok()) {
    return NotExpressible("shapes past 2^53 bytes");
  }
  return static_cast<double>(bytes.value());
}

}  // namespace fourpiles
