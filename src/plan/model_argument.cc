#include "plan/model_argument.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/try.h"
#include "model/open_model.h"
#include "units/parse.h"

namespace fourpiles {
namespace {

constexpr std::string_view kWhere = "MODEL";

// Files of weights, which are known by their ending.
constexpr std::array<std::string_view, 6> kWeightEndings = {".safetensors", ".gguf", ".pt",
                                                            ".pth",         ".bin",  ".onnx"};

bool EndsInAny(std::string_view text, std::span<const std::string_view> endings) {
  return std::ranges::any_of(endings, [&](std::string_view end) { return text.ends_with(end); });
}

tl::unexpected<Error> NotInThisVersion(std::string_view text, std::string hint) {
  return WrongUsage({.where = std::string(kWhere),
                     .found = "\"" + std::string(text) + "\": not in this version",
                     .hint = std::move(hint)});
}

Result<ModelArgument> FromPath(std::string_view text) {
  TRY(Model model, OpenModel(std::string(text)));
  const bool tensors_alone = model.tensors_alone;
  return ModelArgument{.model = std::move(model), .bare_count = tensors_alone, .from_file = true};
}

Result<ModelArgument> FromCount(std::string_view text, const CountShape& shape) {
  TRY(const std::int64_t parameters, ParseCount(text, kWhere, {.least = 1}));
  TRY(Network network, NetworkFromCount({.parameters = parameters,
                                         .num_hidden_layers = shape.layers,
                                         .hidden_size = shape.width}));
  return ModelArgument{
      .model = {.name = std::string(text), .source = "parameter count", .network = network},
      .bare_count = true};
}

Result<ModelArgument> Open(std::string_view text, const CountShape& shape) {
  std::error_code error;
  if (std::filesystem::exists(text, error)) {
    return FromPath(text);
  }
  if (error && error != std::errc::filename_too_long) {
    return BadInput({.where = std::string(text),
                     .found = error.message(),
                     .expected = "expected a file or a folder that can be read"});
  }
  if (text.starts_with("http://") || text.starts_with("https://")) {
    return NotInThisVersion(text, "download its config.json and give that");
  }
  const bool is_path = text.starts_with("./") || text.starts_with("../") || text.starts_with("/");
  if (is_path || EndsInAny(text, kWeightEndings) || text.ends_with(".json")) {
    return BadInput({.where = std::string(text),
                     .found = "no such file",
                     .expected = "expected a file or a folder"});
  }
  if (LooksLikeAmount(text)) {
    return FromCount(text, shape);
  }
  TRY(Model model, FindModel(text, kWhere));
  return ModelArgument{.model = std::move(model)};
}

}  // namespace

Result<ModelArgument> OpenModelArgument(std::string_view text, const CountShape& shape) {
  TRY(ModelArgument argument, Open(text, shape));
  if ((!argument.bare_count || argument.from_file) && (shape.layers || shape.width)) {
    return WrongUsage({.where = shape.layers ? "--layers" : "--width",
                       .found = "set for " + argument.model.name,
                       .expected = "expected only with a bare parameter count",
                       .hint = argument.from_file && argument.bare_count
                                   ? "put the model's config.json beside its tensors"
                                   : "leave it out: the model has its own"});
  }
  if (argument.bare_count && shape.layers.has_value() != shape.width.has_value()) {
    return WrongUsage({.where = shape.layers ? "--width" : "--layers",
                       .found = "missing",
                       .expected = "expected --layers and --width together",
                       .hint = "activations need both"});
  }
  return argument;
}

}  // namespace fourpiles
