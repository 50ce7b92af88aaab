#include "plan/declared_scheme.h"

#include <algorithm>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include "base/ascii.h"
#include "base/try.h"
#include "formats/storage.h"

namespace fourpiles {
namespace {

// A group of -1 or 0 is a row, which no matrix has longer (weight_scheme.cc, WithNumbers).
constexpr std::int64_t kWholeRow = std::int64_t{1} << 20;

std::string InGroups(std::string_view word, const DeclaredWeights& weights,
                     std::int64_t otherwise) {
  return fmt::format("{}:{}:{}", word, weights.bits == 0 ? 4 : weights.bits,
                     weights.group_size == 0 ? otherwise : weights.group_size);
}

// compressed-tensors: its formats are "pack-quantized", "int-quantized", "float-quantized",
// "naive-quantized" and "nvfp4-pack-quantized" (compressed_tensors/config/base.py).
std::string CompressedWord(const DeclaredQuantisation& declared, const DeclaredWeights& weights) {
  if (declared.format == "pack-quantized") {
    return InGroups("packed", weights, kWholeRow);
  }
  if (declared.format == "nvfp4-pack-quantized") {
    return "nvfp4";
  }
  if (weights.bits != 8) {
    return {};
  }
  return weights.type == "float" ? "fp8-channel" : "int8";
}

std::string ModelOptWord(const DeclaredQuantisation& declared) {
  const std::string algo = LowerCase(declared.algo);
  return algo == "nvfp4" || algo == "fp8" ? algo : std::string();
}

std::string BitsandbytesWord(const DeclaredQuantisation& declared) {
  if (!declared.four_bits) {
    return "bnb-int8";
  }
  return declared.double_scales ? "nf4-double" : "nf4";
}

// Empty: not known here.
std::string WordOf(const DeclaredQuantisation& declared) {
  const DeclaredWeights weights =
      declared.weights.empty() ? DeclaredWeights() : declared.weights.front();
  const std::string& method = declared.method;
  if (method == "fp8") {
    return declared.block_rows > 0 ? "fp8-block" : "fp8";
  }
  if (method == "gptq") {
    return InGroups(method, weights, kWholeRow);
  }
  if (method == "awq") {
    return InGroups(method, weights, 128);  // llm-awq's own
  }
  if (method == "bitsandbytes") {
    return BitsandbytesWord(declared);
  }
  if (method == "compressed-tensors") {
    return CompressedWord(declared, weights);
  }
  if (method == "modelopt") {
    return ModelOptWord(declared);
  }
  return method == "mxfp4" ? method : std::string();
}

struct PlainModule {
  std::string path = {};  // below its layer; empty: none that can be told
  bool of_one_layer = false;
};

bool IsNumber(std::string_view part) {
  return !part.empty() && std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
}

// "self_attn" of "model.layers.*.self_attn" and of "re:.*self_attn.*", "mlp.gate" of
// "model.layers.7.mlp.gate". Alternatives of a regular expression are not told apart.
PlainModule PlainModuleOf(std::string_view entry) {
  if (entry.find_first_of("|[(") != std::string_view::npos) {
    return {};
  }
  if (entry.starts_with("re:")) {
    entry.remove_prefix(3);
  }
  PlainModule module;
  bool below = false;  // its layer
  while (!entry.empty()) {
    const std::size_t dot = std::min(entry.find('.'), entry.size());
    std::string part(entry.substr(0, dot));
    entry.remove_prefix(std::min(dot + 1, entry.size()));
    std::erase_if(part, [](char c) { return c == '*' || c == '^' || c == '$' || c == '\\'; });
    const bool number = IsNumber(part);
    if (!below && (number || part.empty())) {
      module = {.of_one_layer = number};
      below = true;
    } else if (!part.empty()) {
      module.path += (module.path.empty() ? "" : ".") + (number ? "{}" : part);
    }
  }
  return module;
}

std::vector<std::string> PlainModulesOf(const std::vector<std::string>& entries,
                                        std::int64_t layers) {
  std::map<std::string, std::int64_t> named;  // in how many layers
  for (const std::string& entry : entries) {
    const PlainModule module = PlainModuleOf(entry);
    if (!module.path.empty()) {
      named[module.path] += module.of_one_layer ? 1 : layers;
    }
  }
  std::vector<std::string> modules;
  for (const auto& [path, times] : named) {
    if (2 * times > layers) {
      modules.push_back(path);
    }
  }
  return modules;
}

}  // namespace

std::optional<DeclaredScheme> SchemeDeclaredBy(const DeclaredQuantisation& declared,
                                               const NumberFormat& plain, std::int64_t layers) {
  const std::string word = WordOf(declared);
  if (word.empty()) {
    return std::nullopt;
  }
  Result<WeightScheme> scheme = FindWeightScheme(word, declared.source);
  if (!scheme) {  // bits or groups that no checkpoint has
    return std::nullopt;
  }
  scheme->plain = plain;
  scheme->plain_modules = PlainModulesOf(declared.plain, layers);
  return DeclaredScheme{.name = word, .scheme = *std::move(scheme)};
}

Result<ServedFormat> OwnFormatOf(const Model& model, bool llamacpp) {
  if (model.checkpoint && (!llamacpp || model.checkpoint->gguf)) {
    return ServedFormat{.name = "stored", .as_stored = true};
  }
  TRY(const NumberFormat bfloat16, FindFormat("bfloat16"));
  const NumberFormat own = model.network.stored_format.value_or(bfloat16);
  const std::optional<DeclaredScheme> declared =
      SchemeDeclaredBy(model.quantisation, StorageBits(own) < 16 ? bfloat16 : own,
                       model.network.num_hidden_layers.value_or(1));
  if (declared && !llamacpp) {
    return ServedFormat{.name = declared->name, .why = "of its config", .scheme = declared->scheme};
  }
  if (declared && declared->scheme.coding == WeightCoding::kMxfp4) {
    TRY(ServedFormat format, FindServedFormat("mxfp4_moe", "config.json", llamacpp));
    format.why = "of its config";
    return format;
  }
  return FindServedFormat(own.name, "config.json", llamacpp);
}

Result<ServedFormat> FindServedFormat(std::string_view word, std::string_view where,
                                      bool llamacpp) {
  const auto plain = FindFormat(word);  // "bf16" and the other words that people type
  if (auto mixture = FindMixture(plain ? plain->name : word, where)) {
    if (llamacpp || !plain) {  // BF16 is both
      return ServedFormat{.name = std::string(plain ? plain->name : mixture->name),
                          .mixture = *std::move(mixture)};
    }
  }
  TRY(const WeightScheme scheme, FindWeightScheme(word, where));
  const bool is_format = scheme.coding == WeightCoding::kPlain;
  return ServedFormat{.name = std::string(is_format ? scheme.plain.name : word), .scheme = scheme};
}

}  // namespace fourpiles
