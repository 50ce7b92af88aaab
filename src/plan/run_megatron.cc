#include "plan/run_megatron.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/try.h"
#include "plan/validate_fields.h"

namespace fourpiles {
namespace {

constexpr Range kAnySize = {1, std::int64_t{1} << 30};

constexpr std::string_view kCounts[] = {"num-layers",
                                        "hidden-size",
                                        "num-attention-heads",
                                        "num-query-groups",
                                        "ffn-hidden-size",
                                        "kv-channels",
                                        "max-position-embeddings",
                                        "num-experts",
                                        "moe-router-topk",
                                        "moe-ffn-hidden-size",
                                        "moe-shared-expert-intermediate-size",
                                        "q-lora-rank",
                                        "kv-lora-rank",
                                        "qk-head-dim",
                                        "qk-pos-emb-head-dim",
                                        "v-head-dim"};
constexpr std::string_view kFlags[] = {
    "group-query-attention", "untie-embeddings-and-output-weights",
    "squared-relu",          "swiglu",
    "disable-bias-linear",   "add-qkv-bias",
    "qk-layernorm",          "multi-latent-attention"};
constexpr std::string_view kNumbers[] = {"attention-dropout", "hidden-dropout", "rotary-percent"};
constexpr std::string_view kTexts[] = {"position-embedding-type", "normalization",
                                       "moe-layer-freq"};
// Arguments that change no tensor, or are read apart.
constexpr std::string_view kOthers[] = {
    "seq-length",         "vocab-size",       "make-vocab-size-divisible-by", "tokenizer-type",
    "apply-layernorm-1p", "moe-grouped-gemm", "moe-token-dispatcher-type"};

template <std::size_t kCount>
bool IsOneOf(const std::string_view (&keys)[kCount], std::string_view key) {
  return std::ranges::find(keys, key) != std::end(keys);
}

// "num-layers" is the config's num_layers.
std::string KeyOf(std::string_view argument) {
  std::string key(argument);
  std::ranges::replace(key, '-', '_');
  return key;
}

Result<void> CheckArguments(const Fields& arch) {
  for (const auto& [key, value] : arch.Members()) {
    if (key == "mtp-num-layers") {
      return NotExpressible(
          "arch.mtp-num-layers: layers that predict further tokens are not "
          "described");
    }
    if (!IsOneOf(kCounts, key) && !IsOneOf(kFlags, key) && !IsOneOf(kNumbers, key) &&
        !IsOneOf(kTexts, key) && !IsOneOf(kOthers, key)) {
      return NotExpressible(fmt::format("arch.{} is not in the vocabulary", key));
    }
  }
  for (const std::string_view key : {"num-layers", "hidden-size", "num-attention-heads"}) {
    if (!arch.Has(key)) {
      return NotExpressible(fmt::format("no field arch.{}", key));
    }
  }
  return {};
}

// As given; of a tokenizer that has one vocabulary, its size. Without one: GPT-2's, which the
// vocabulary's file is of where none is named (training/arguments.py, --vocab-file, --merge-file).
Result<std::int64_t> VocabularyOf(const Fields& arch) {
  TRY(const auto given, arch.OptionalInteger("vocab-size", kAnySize));
  if (given) {
    return *given;
  }
  TRY(const auto named, arch.OptionalText("tokenizer-type"));
  const std::string tokenizer(named.value_or("GPT2BPETokenizer"));
  constexpr std::pair<std::string_view, std::int64_t> kVocabularies[] = {
      {"GPT2BPETokenizer", 50257}, {"Llama2Tokenizer", 32000}};
  for (const auto& [name, size] : kVocabularies) {
    if (name == tokenizer) {
      return size;
    }
  }
  return NotExpressible(
      fmt::format("no field arch.vocab-size, and the size of {}'s is not known", tokenizer));
}

// To a multiple for every rank (training/tokenizer, _vocab_size_with_padding).
Result<std::int64_t> PaddedVocabulary(const Fields& arch, std::int64_t tensor) {
  TRY(const std::int64_t size, VocabularyOf(arch));
  TRY(const auto given, arch.OptionalInteger("make-vocab-size-divisible-by", {1, 1 << 20}));
  const std::int64_t multiple = given.value_or(128) * tensor;
  const std::int64_t padded = (size + multiple - 1) / multiple * multiple;
  return padded > kAnySize.most
             ? NotExpressible(fmt::format("arch: a vocabulary of {} rows", padded))
             : Result<std::int64_t>(padded);
}

}  // namespace

Result<Json> MegatronConfigOf(const Fields& row, const Fields& arch, std::int64_t tensor) {
  if (RunText(row, "kind") == "encoder") {
    return NotExpressible("Megatron-LM's encoders are not described");
  }
  TRY_VOID(CheckArguments(arch));
  TRY(const std::int64_t vocabulary, PaddedVocabulary(arch, tensor));
  Json::Object config = {{"model_type", "megatron"}, {"vocab_size", vocabulary}};
  for (const auto& [key, value] : arch.Members()) {
    if (value.IsNull()) {
      continue;
    }
    if (key == "moe-layer-freq" && value.AsString() == nullptr) {
      TRY(const std::int64_t step, arch.Integer(key, kAnySize));
      config.emplace_back(KeyOf(key), fmt::format("{}", step));
    } else if (!IsOneOf(kOthers, key)) {
      config.emplace_back(KeyOf(key), value);
    }
  }
  return Json(std::move(config));
}

}  // namespace fourpiles
