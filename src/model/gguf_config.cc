// Which of a GGUF's keys is which of a config.json's.
//
// Keys: ggml-org/llama.cpp, gguf-py/gguf/constants.py; what an absent one means:
// src/models/NAME.cpp, load_arch_hparams; how the converter fills them: convert_hf_to_gguf.py and
// conversion/.

#include "model/gguf_config.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/try.h"
#include "model/gguf_families.h"
#include "model/gguf_source.h"

namespace fourpiles {
namespace {

void Nothing(GgufSource& /*gguf*/) {}

enum class Heads {
  kEven,
  kUneven,  // layers have key-value heads and widths of their own, which `read` reads
  kNone,    // no attention; a file may say 0
};

struct Row {
  std::string_view architecture;
  std::string_view model_type;
  void (*read)(GgufSource& gguf);
  Heads heads = Heads::kEven;
};

// Sorted by name.
constexpr Row kRows[] = {
    {"bert", "bert", ReadBert},
    {"bloom", "bloom", ReadBloom},
    {"cohere2", "cohere2", Nothing},
    {"command-r", "cohere", ReadCohere},
    {"deci", "nemotron-nas", ReadDeci, Heads::kUneven},
    {"deepseek2", "deepseek_v3", ReadDeepseek},
    {"deepseek32", "deepseek_v32", ReadDeepseekIndexed},
    {"ernie4_5", "ernie4_5", Nothing},
    {"exaone4", "exaone4", Nothing},
    {"falcon", "falcon", ReadFalcon},
    {"falcon-h1", "falcon_h1", ReadFalconH1},
    {"gemma", "gemma", Nothing},
    {"gemma2", "gemma2", Nothing},
    {"gemma3", "gemma3_text", Nothing},
    {"gemma4", "gemma4_text", ReadGemma4, Heads::kUneven},
    {"glm-dsa", "glm_moe_dsa", ReadDeepseekIndexed},
    {"glm4", "glm4", ReadGlm4},
    {"gpt-oss", "gpt_oss", ReadGptOss},
    {"gpt2", "gpt2", ReadGpt2},
    {"gptneox", "gpt_neox", ReadGptNeox},
    {"granite", "granite", PutBiases},
    {"granitehybrid", "granitemoehybrid", ReadGraniteHybrid},
    {"granitemoe", "granitemoe", ReadGraniteExperts},
    {"hunyuan-dense", "hunyuan_v1_dense", PutBiases},
    {"jamba", "jamba", ReadJamba},
    {"kimi-linear", "kimi_linear", ReadKimiLinear},
    {"lfm2", "lfm2", ReadLfm2},
    {"llama", "llama", ReadLlama},
    {"llama4", "llama4_text", ReadLlama4},
    {"mamba", "mamba", ReadMamba, Heads::kNone},
    {"mamba2", "mamba2", ReadMamba2, Heads::kNone},
    {"mimo2", "mimo_v2_flash", ReadMimo2, Heads::kUneven},
    {"minimax-m2", "minimax_m2", ReadMinimaxM2},
    {"mistral3", "ministral3", Nothing},
    {"nemotron", "nemotron", ReadGlm4},
    {"nemotron_h", "nemotron_h", ReadNemotronH},
    {"nemotron_h_moe", "nemotron_h", ReadNemotronH},
    {"olmo2", "olmo2", ReadOlmo2},
    {"phi2", "phi", ReadPhi2},
    {"phi3", "phi3", ReadRotatedShare},
    {"qwen", "qwen", Nothing},
    {"qwen2", "qwen2", Nothing},
    {"qwen2moe", "qwen2_moe", ReadQwenExperts},
    {"qwen2vl", "qwen2", Nothing},
    {"qwen3", "qwen3", ReadQwen3},
    {"qwen35", "qwen3_5_text", ReadQwenLinear},
    {"qwen35moe", "qwen3_5_moe_text", ReadQwenLinearExperts},
    {"qwen3moe", "qwen3_moe", ReadQwen3Experts},
    {"qwen3next", "qwen3_next", ReadQwenLinearExperts},
    {"qwen3vl", "qwen3_vl_text", ReadQwen3},
    {"qwen3vlmoe", "qwen3_vl_moe_text", ReadQwen3Experts},
    {"seed_oss", "seed_oss", ReadSeedOss},
    {"smollm3", "smollm3", PutBiases},
    {"stablelm", "stablelm", ReadStableLm},
    {"starcoder", "gpt_bigcode", ReadStarcoder},
    {"starcoder2", "starcoder2", ReadStarcoder2},
};

// The rows of the embedding: vocabularies are padded, and some files have no tokenizer.
std::optional<std::int64_t> VocabularyOf(GgufSource& gguf,
                                         const std::vector<MetadataEntry>& metadata) {
  const FileTensor* words = gguf.Tensor("token_embd.weight");
  if (words != nullptr && words->shape.size() == 2) {
    return words->shape.front();
  }
  if (const auto size = gguf.OptionalCount("vocab_size")) {
    return size;
  }
  const MetadataEntry* tokens = FindEntry(metadata, "tokenizer.ggml.tokens");
  return tokens == nullptr ? std::nullopt : std::optional(tokens->array_length);
}

void PutAttention(GgufSource& gguf, const Row& row, std::int64_t hidden_size) {
  const std::int64_t heads = gguf.OfAllLayers("attention.head_count").value_or(0);
  if (heads == 0) {
    gguf.Count("attention.head_count");  // refused for what it is
  }
  gguf.Put("num_attention_heads", heads);
  if (row.heads == Heads::kEven) {
    const auto key_value = gguf.OfAllLayers("attention.head_count_kv");
    if (!key_value && gguf.Has("attention.head_count_kv")) {
      gguf.Count("attention.head_count_kv");  // refused for what it is
    }
    gguf.PutIfKnown("num_key_value_heads", key_value);
    gguf.PutIfKnown("intermediate_size", gguf.OfAllLayers("feed_forward_length"));
  } else if (const auto widths = gguf.PerLayer("feed_forward_length"); !widths.empty()) {
    gguf.Put("intermediate_size", std::ranges::max(widths));
  }
  if (const auto head_dim = gguf.OptionalCount("attention.key_length")) {
    gguf.Put("head_dim", *head_dim);
  } else if (heads > 0 && hidden_size % heads == 0) {
    gguf.Put("head_dim", hidden_size / heads);
  }
}

void PutCommon(GgufSource& gguf, const Row& row) {
  gguf.Put("model_type", row.model_type);
  const std::int64_t hidden_size = gguf.Count("embedding_length");
  gguf.Put("hidden_size", hidden_size);
  gguf.Put("num_hidden_layers", gguf.Layers());
  if (row.heads != Heads::kNone) {
    PutAttention(gguf, row, hidden_size);
  }
  gguf.PutIfKnown("max_position_embeddings", gguf.OptionalCount("context_length"));
  gguf.PutIfKnown("sliding_window", gguf.OptionalCount("attention.sliding_window"));
  gguf.Put("tie_word_embeddings", !gguf.HasTensor("output.weight"));
}

// general.architecture and what is told beside it.
Result<std::string> ArchitectureOf(const std::vector<MetadataEntry>& metadata,
                                   std::string_view where) {
  const MetadataEntry* type = FindEntry(metadata, "general.type");
  const std::string* type_text = type == nullptr ? nullptr : type->value.AsString();
  if (type_text != nullptr && *type_text != "model") {
    return BadInput({.where = std::string(where),
                     .found = fmt::format("general.type is {}", Describe(type->value)),
                     .expected = "expected a model",
                     .hint = "give the model that it belongs to"});
  }
  const MetadataEntry* architecture = FindEntry(metadata, "general.architecture");
  const std::string* text = architecture == nullptr ? nullptr : architecture->value.AsString();
  if (text == nullptr) {
    return BadInput({.where = fmt::format("{}: general.architecture", where),
                     .found = architecture == nullptr ? "missing" : Describe(architecture->value),
                     .expected = "expected the name of an architecture",
                     .hint = "give the folder with the model's config.json"});
  }
  return *text;
}

}  // namespace

std::vector<std::string_view> KnownGgufArchitectures() {
  std::vector<std::string_view> known;
  for (const Row& row : kRows) {
    known.push_back(row.architecture);
  }
  return known;
}

Result<Json> ConfigFromGguf(const std::vector<MetadataEntry>& metadata,
                            std::span<const FileTensor> tensors, std::string_view where) {
  TRY(const std::string architecture, ArchitectureOf(metadata, where));
  const auto* row = std::ranges::find(kRows, architecture, &Row::architecture);
  if (row == std::end(kRows)) {
    return BadInput(
        {.where = fmt::format("{}: general.architecture", where),
         .found = fmt::format("unknown architecture \"{}\"", architecture.substr(0, 64)),
         .expected = "expected one of those known here",
         .hint = fmt::format("give the folder with the model's config.json; known: {}",
                             fmt::join(KnownGgufArchitectures(), ", "))});
  }
  Json::Object members;
  for (const MetadataEntry& entry : metadata) {
    if (entry.key.starts_with(architecture + ".")) {
      members.emplace_back(entry.key, entry.value);
    }
  }
  const Json keys = std::move(members);
  TRY(Fields fields, Fields::Of(keys, std::string(where)));
  GgufSource gguf(std::move(fields), architecture, tensors);
  PutCommon(gguf, *row);
  gguf.PutIfKnown("vocab_size", VocabularyOf(gguf, metadata));
  row->read(gguf);
  return std::move(gguf).Finish();
}

}  // namespace fourpiles
