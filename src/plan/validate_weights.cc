#include "plan/validate_weights.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/ascii.h"
#include "base/try.h"
#include "model/catalogue.h"
#include "model/from_config.h"
#include "plan/validate_fields.h"

namespace fourpiles {
namespace {

// Words of a name that do not change a tensor's shape.
constexpr std::string_view kWordsDropped[] = {
    "instruct", "chat",     "it",    "base",  "hf",    "awq",   "gptq", "fp8",
    "int8",     "int4",     "w8a8",  "w4a16", "nvfp4", "mxfp4", "bf16", "fp16",
    "thinking", "openorca", "class", "2507",  "gguf",  "bnb",   "4bit"};

// Names of the same shapes.
struct Alike {
  std::string_view name;
  std::string_view shapes_of;
};
constexpr Alike kSameShapes[] = {
    {"llama-3-8b", "llama-3.1-8b"},         {"llama-3-70b", "llama-3.1-70b"},
    {"deepseek-r1", "deepseek-v3"},         {"deepseek-v3.1", "deepseek-v3"},
    {"mistral-7b-v0.2", "mistral-7b-v0.1"},
};

// A family whose network is made from the shapes of the row.
struct Family {
  std::string_view prefix;
  const char* model_type;
  const char* hidden;
  const char* layers;
  const char* heads;
  const char* intermediate;
};
constexpr Family kFamilies[] = {
    {"bert", "bert", "hidden_size", "num_hidden_layers", "num_attention_heads",
     "intermediate_size"},
    {"gpt-neox", "gpt_neox", "hidden_size", "num_hidden_layers", "num_attention_heads",
     "intermediate_size"},
    {"gpt-j", "gptj", "n_embd", "n_layer", "n_head", "n_inner"},
};

// "llama-3(.1)-8b" is "llama-3-8b" or "llama-3.1-8b".
std::vector<std::string> WithAndWithout(const std::string& name) {
  const std::size_t open = name.find('(');
  const std::size_t close = name.find(')');
  if (open == std::string::npos || close == std::string::npos || close < open) {
    return {name};
  }
  const std::string rest = name.substr(close + 1);
  return {name.substr(0, open) + name.substr(open + 1, close - open - 1) + rest,
          name.substr(0, open) + rest};
}

std::string WithoutWords(std::string_view name) {
  std::string kept;
  while (!name.empty()) {
    const std::size_t dash = name.find('-');
    const std::string_view word = name.substr(0, dash);
    name = dash == std::string_view::npos ? std::string_view() : name.substr(dash + 1);
    if (std::ranges::find(kWordsDropped, word) == std::ranges::end(kWordsDropped)) {
      kept += (kept.empty() ? "" : "-") + std::string(word);
    }
  }
  return kept;
}

std::optional<Network> NetworkInCatalogue(std::string_view name) {
  const auto same = std::ranges::find(kSameShapes, name, &Alike::name);
  const std::string_view sought = same == std::ranges::end(kSameShapes) ? name : same->shapes_of;
  if (sought.empty() || sought.ends_with(".json")) {
    return std::nullopt;  // a row names no file
  }
  auto model = FindModel(sought);
  return model ? std::optional(std::move(model->network)) : std::nullopt;
}

// `name` in small letters.
std::optional<Network> NetworkOfName(std::string_view name) {
  name = name.substr(name.rfind('/') + 1);  // npos + 1 is 0
  if (name.starts_with("meta-llama")) {
    name.remove_prefix(std::string_view("meta-").size());
  }
  if (auto network = NetworkInCatalogue(name)) {
    return network;
  }
  return NetworkInCatalogue(WithoutWords(name));
}

Result<Network> NetworkOfShapes(const Fields& row, const Family& family) {
  constexpr std::int64_t kUsualHeadSize = 64;
  TRY(const std::int64_t hidden, NeededCount(row, {"n_embd"}));
  TRY(const std::int64_t layers, NeededCount(row, {"n_layer"}));
  TRY(const std::int64_t intermediate, NeededCount(row, {"n_ff"}));
  TRY(const std::int64_t vocabulary, NeededCount(row, {"n_vocab"}));
  // The number of heads changes no matrix of multi-head attention.
  const std::int64_t heads =
      CountOr(row, {"n_head"}, std::max<std::int64_t>(1, hidden / kUsualHeadSize));
  const Json config = Json::Object{{"model_type", family.model_type},
                                   {family.hidden, hidden},
                                   {family.layers, layers},
                                   {family.heads, heads},
                                   {family.intermediate, intermediate},
                                   {"vocab_size", vocabulary},
                                   {"max_position_embeddings", CountOr(row, {"n_pos"}, 512)}};
  return NetworkFromConfig(config, "arch");
}

std::int64_t GroupOf(const std::string& words) {
  constexpr std::int64_t kUsualGroup = 128;
  for (std::size_t i = words.find('g'); i != std::string::npos; i = words.find('g', i + 1)) {
    std::int64_t group = 0;
    for (std::size_t j = i + 1; j < words.size() && j < i + 6 && '0' <= words[j] && words[j] <= '9';
         ++j) {
      group = 10 * group + (words[j] - '0');
    }
    if (group > 0) {
      return group;
    }
  }
  return kUsualGroup;
}

Prediction BytesOf(Checked bytes) {
  return {.value = static_cast<double>(OrLargest(bytes)), .unit = "bytes"};
}

}  // namespace

Result<Network> NetworkOfRun(const Fields& row) {
  const std::string typed = RunText(row, "model");
  const std::string lower = LowerCase(typed);
  const std::string name = lower.substr(0, lower.find(' '));
  for (const std::string& candidate : WithAndWithout(name)) {
    if (auto network = NetworkOfName(candidate)) {
      return *std::move(network);
    }
  }
  for (const Family& family : kFamilies) {
    if (name.starts_with(family.prefix)) {
      return NetworkOfShapes(row, family);
    }
  }
  return NotExpressible("no model \"" + typed + "\" in the catalogue");
}

Result<WeightScheme> SchemeOfRun(const Fields& row) {
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"awq", "awq"},           {"gptq", "gptq"},         {"mxfp4", "mxfp4"},
      {"nvfp4", "nvfp4"},       {"nf4", "nf4"},           {"4-bit", "nf4"},
      {"fp4", "nf4"},           {"bnb int8", "bnb-int8"}, {"w8a8", "int8"},
      {"fp8", "fp8"},           {"int8", "int8"},         {"bf16", "bfloat16"},
      {"bfloat16", "bfloat16"}, {"fp16", "float16"},      {"float16", "float16"},
      {"fp32", "float32"},      {"float32", "float32"},
  };
  const std::string words = LowerCase(RunText(row, "dtype_quant"));
  for (const auto& [word, name] : kWords) {
    if (words.find(word) != std::string::npos) {
      TRY(WeightScheme scheme, FindWeightScheme(name, "dtype_quant"));
      scheme.group_size = GroupOf(words);
      return scheme;
    }
  }
  return NotExpressible(words.empty() ? "no field dtype_quant"
                                      : "unknown weight format \"" + words + "\"");
}

Result<Prediction> PredictSafetensorsTotal(const Fields& row) {
  return PredictEngineWeights(row);
}

Result<Prediction> PredictEngineWeights(const Fields& row) {
  TRY(const WeightScheme scheme, SchemeOfRun(row));
  TRY(const Network network, NetworkOfRun(row));
  return BytesOf(WeightBytes(network, scheme, CountOr(row, {"tp"}, 1)).bytes);
}

Result<Prediction> PredictHfLoad(const Fields& row) {
  if (RunText(row, "engine") != "accelerate") {
    return PredictEngineWeights(row);
  }
  // accelerate's estimator multiplies all parameters, without scales (commands/estimate.py).
  constexpr std::pair<std::string_view, int> kBits[] = {
      {"float32", 32}, {"float16", 16}, {"bfloat16", 16}, {"int8", 8}, {"int4", 4}};
  const std::string format = LowerCase(RunText(row, "dtype_quant"));
  const auto bits =
      std::ranges::find(kBits, std::string_view(format), &std::pair<std::string_view, int>::first);
  if (bits == std::ranges::end(kBits)) {
    return NotExpressible("unknown format \"" + format + "\"");
  }
  TRY(const Network network, NetworkOfRun(row));
  return BytesOf(DivideRoundingUp(Checked(ParameterCount(network)) * bits->second, 8));
}

Result<Prediction> PredictDiffusers(const Fields& row) {
  TRY(const double parameters, NeededNumber(row, {"params"}));
  const std::string words = LowerCase(RunText(row, "dtype_quant"));
  // bitsandbytes keeps a float32 each 64 weights of 4 bits.
  constexpr std::pair<std::string_view, double> kBytesOfWeight[] = {
      {"bf16", 2}, {"fp16", 2}, {"fp32", 4}, {"nf4", 0.5 + 4.0 / 64}, {"int8", 1}};
  for (const auto& [word, bytes] : kBytesOfWeight) {
    if (words.find(word) != std::string::npos) {
      return Prediction{.value = parameters * bytes, .unit = "bytes"};
    }
  }
  return NotExpressible("unknown weight format \"" + words + "\"");
}

}  // namespace fourpiles
