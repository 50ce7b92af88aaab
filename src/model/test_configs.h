#pragma once

// Small config.json texts and their refusals, for tests.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error_text.h"
#include "model/from_config.h"

namespace fourpiles {

inline std::string Message(const Error& error) {
  std::string text = ErrorMessage(error);
  text.pop_back();  // the end of the last line
  return text;
}

inline Result<Network> FromText(std::string_view text) {
  const Result<Json> json = ReadJson(text, "config.json");
  return json ? NetworkFromConfig(*json, "config.json")
              : Result<Network>(tl::make_unexpected(json.error()));
}

// A small Llama, with one member in place of another, or added.
inline std::string Llama(const std::string& key = "", const std::string& value = "") {
  std::vector<std::pair<std::string, std::string>> members = {
      {"model_type", "\"llama\""},  {"hidden_size", "64"},        {"num_hidden_layers", "2"},
      {"num_attention_heads", "4"}, {"num_key_value_heads", "2"}, {"intermediate_size", "128"},
      {"vocab_size", "100"},
  };
  bool replaced = false;
  std::string text;
  for (auto& [name, old] : members) {
    if (name == key) {
      replaced = true;
      if (value.empty()) {
        continue;
      }
      old = value;
    }
    text += (text.empty() ? "{\"" : ", \"") + name + "\": " + old;
  }
  return text + (replaced || key.empty() ? "" : ", \"" + key + "\": " + value) + "}";
}

// Models as LitGPT describes them (litgpt/config.py).
inline constexpr const char* kLitGptLlama7B =
    R"({"model_type": "litgpt", "n_layer": 32, "n_embd": 4096,
    "n_head": 32, "intermediate_size": 11008, "padded_vocab_size": 32000, "bias": false,
    "rotary_percentage": 1.0, "parallel_residual": false, "norm_class_name": "RMSNorm",
    "mlp_class_name": "LLaMAMLP"})";
inline constexpr const char* kLitGptPhi15 =
    R"({"model_type": "litgpt", "n_layer": 24, "n_embd": 2048,
    "n_head": 32, "intermediate_size": 8192, "padded_vocab_size": 51200, "bias": true,
    "rotary_percentage": 0.5, "parallel_residual": true, "shared_attention_norm": true, "lm_head_bias": true,
    "norm_class_name": "LayerNorm", "mlp_class_name": "GptNeoxMLP"})";
inline constexpr const char* kLitGptStableLm3B =
    R"({"model_type": "litgpt", "n_layer": 16, "n_embd": 4096,
    "n_head": 32, "intermediate_size": 16384, "padded_vocab_size": 50688, "bias": true,
    "rotary_percentage": 0.25, "parallel_residual": true, "norm_class_name": "LayerNorm",
    "mlp_class_name": "GptNeoxMLP"})";

inline std::string RefusalOf(const std::string& text) {
  const Result<Network> network = FromText(text);
  if (network) {
    return "accepted";
  }
  return network.error().kind == ErrorKind::kInput ? Message(network.error()) : "not of kInput";
}

}  // namespace fourpiles
