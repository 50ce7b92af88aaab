#include "plan/training_run.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <initializer_list>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/ascii.h"
#include "base/try.h"
#include "model/from_config.h"
#include "plan/run_words.h"
#include "plan/validate_fields.h"

namespace fourpiles {
namespace {

constexpr Range kAnySize = {1, std::int64_t{1} << 30};

// Settings by name; those of validate itself begin with "@".
using Typed = std::map<std::string, std::string>;

void Apply(Typed& typed, std::string_view means) {
  while (!means.empty()) {
    const std::size_t end = std::min(means.find(' '), means.size());
    const std::string_view piece = means.substr(0, end);
    const std::size_t equals = piece.find('=');
    typed.insert_or_assign(std::string(piece.substr(0, equals)),
                           std::string(piece.substr(equals + 1)));
    means.remove_prefix(std::min(end + 1, means.size()));
  }
}

std::string TakeOr(Typed& typed, const std::string& key, std::string otherwise) {
  const auto found = typed.find(key);
  if (found == typed.end()) {
    return otherwise;
  }
  std::string value = std::move(found->second);
  typed.erase(found);
  return value;
}

Result<void> ApplyWord(Typed& typed, std::string_view field, std::string_view text) {
  const RunWord* word = FindRunWord(field, text);
  if (word == nullptr) {
    return NotExpressible(
        fmt::format("{}: \"{}\" is not in the vocabulary", field, PlainWord(text)));
  }
  if (!word->why_not.empty()) {
    return NotExpressible(std::string(word->why_not));
  }
  Apply(typed, word->means);
  return {};
}

void ApplyPhrase(Typed& typed, std::string_view field, std::string_view text) {
  if (const RunWord* word = FindRunPhrase(field, text)) {
    Apply(typed, word->means);
  }
}

// The number behind "r=" in a note.
void ApplyRank(Typed& typed, std::string_view notes) {
  for (std::size_t at = notes.find("r="); at != std::string_view::npos;
       at = notes.find("r=", at + 1)) {
    std::size_t end = at + 2;
    while (end < notes.size() && notes[end] >= '0' && notes[end] <= '9') {
      ++end;
    }
    const bool begins = at == 0 || notes[at - 1] == ' ';
    if (begins && end > at + 2) {
      typed.insert_or_assign("@rank", std::string(notes.substr(at + 2, end - at - 2)));
      return;
    }
  }
}

void ApplyAccumulation(Typed& typed, std::string_view notes) {
  constexpr std::string_view kPhrase = "grad accumulation ";
  const std::size_t at = notes.find(kPhrase);
  if (at == std::string_view::npos) {
    return;
  }
  const std::string_view rest = notes.substr(at + kPhrase.size());
  const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
  const bool divided = rest.substr(digits).starts_with("/mb");
  if (digits > 0 && !divided) {
    typed.insert_or_assign("gradient-accumulation", std::string(rest.substr(0, digits)));
  }
}

// "CUDA context 1343 MB before any tensor", of 2^20 bytes each as nvidia-smi counts.
std::optional<Bytes> ContextOf(std::string_view notes) {
  constexpr std::string_view kPhrase = "CUDA context ";
  const std::size_t at = notes.find(kPhrase);
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view rest = notes.substr(at + kPhrase.size());
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), count);
  constexpr std::int64_t kMost = 1 << 20;
  const std::string_view unit = rest.substr(static_cast<std::size_t>(end - rest.data()));
  if (error != std::errc() || count < 0 || count > kMost || !unit.starts_with(" MB")) {
    return std::nullopt;
  }
  return Bytes(count << 20);
}

// --- Shapes ---

struct Shapes {
  const Fields& arch;
  std::string mlp = {};
  std::string norm = {};

  std::int64_t Count(std::string_view key, std::int64_t otherwise = 1) const {
    const auto count = arch.OptionalInteger(key, kAnySize);
    return count && *count ? **count : otherwise;
  }
  bool Flag(std::string_view key) const {
    const auto flag = arch.OptionalBool(key);
    return flag && *flag && **flag;
  }
  double Number(std::string_view key, double otherwise) const {
    const auto number = arch.OptionalNumber(key);
    return number && *number ? **number : otherwise;
  }
};

// Fields of a language model's shapes; others make a row not expressible.
constexpr std::string_view kShapeFields[] = {
    "layers", "hidden", "heads",      "kv_heads", "head_dim",          "ffn",         "vocab",
    "mlp",    "norm",   "tied",       "qkv_bias", "qk_norm",           "params",      "note",
    "maxT",   "bias",   "rotary_pct", "dropout",  "parallel_residual", "shared_norm", "softcap"};

// A shape of the wrong kind is none: what stands for an absent one would be another model.
Result<void> CheckKindsOfShapes(const Fields& arch) {
  for (const std::string_view key :
       {"layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab", "maxT"}) {
    TRY_VOID(arch.OptionalInteger(key, kAnySize));
  }
  TRY_VOID(arch.OptionalInteger("params", {1, kLargestAmount}));
  for (const std::string_view key :
       {"tied", "qkv_bias", "qk_norm", "bias", "parallel_residual", "shared_norm", "softcap"}) {
    TRY_VOID(arch.OptionalBool(key));
  }
  for (const std::string_view key : {"rotary_pct", "dropout"}) {
    TRY_VOID(arch.OptionalNumber(key, {0, 1}));
  }
  for (const std::string_view key : {"mlp", "norm"}) {
    TRY_VOID(arch.OptionalText(key));
  }
  return {};
}

Result<void> CheckShapes(const Fields& arch) {
  for (const auto& [key, value] : arch.Members()) {
    if (std::ranges::find(kShapeFields, key) == std::end(kShapeFields)) {
      return NotExpressible(fmt::format("arch.{} is not in the vocabulary", key));
    }
  }
  for (const std::string_view key : {"layers", "hidden", "heads", "ffn", "vocab"}) {
    if (!arch.Has(key)) {
      return NotExpressible(fmt::format("no field arch.{}", key));
    }
  }
  TRY_VOID(CheckKindsOfShapes(arch));
  const std::int64_t heads = *arch.Integer("heads", kAnySize);
  if (!arch.Has("head_dim") && *arch.Integer("hidden", kAnySize) % heads != 0) {
    return NotExpressible("arch.heads does not divide arch.hidden, and no head_dim is given");
  }
  return {};
}

Json::Object LitGptConfig(const Shapes& of) {
  const bool gemma2 = of.norm == "rms x4";
  const std::string mlp = of.mlp == "gelu"    ? "GptNeoxMLP"
                          : of.mlp == "geglu" ? "GemmaMLP"
                                              : "LLaMAMLP";
  const std::int64_t heads = of.Count("heads");
  constexpr double kScoreBound = 50;
  return {
      {"model_type", "litgpt"},
      {"n_layer", of.Count("layers")},
      {"n_embd", of.Count("hidden")},
      {"n_head", heads},
      {"n_query_groups", of.Count("kv_heads", heads)},
      {"head_size", of.Count("head_dim", std::max<std::int64_t>(1, of.Count("hidden") / heads))},
      {"intermediate_size", of.Count("ffn")},
      {"padded_vocab_size", of.Count("vocab")},
      {"rotary_percentage", of.Number("rotary_pct", 1)},
      {"parallel_residual", of.Flag("parallel_residual")},
      {"shared_attention_norm", of.Flag("shared_norm")},
      {"bias", of.Flag("bias")},
      {"norm_class_name", of.norm == "ln" ? "LayerNorm" : "RMSNorm"},
      {"mlp_class_name", mlp},
      {"post_attention_norm", gemma2},
      {"scale_embeddings", of.mlp == "geglu"},
      {"attention_logit_softcapping", of.Flag("softcap") ? kScoreBound : 0},
      {"final_logit_softcapping", of.Flag("softcap") ? kScoreBound : 0}};
}

Json::Object GptConfig(const Shapes& of) {
  return {{"model_type", "gpt2"},
          {"n_layer", of.Count("layers")},
          {"n_embd", of.Count("hidden")},
          {"n_head", of.Count("heads")},
          {"n_inner", of.Count("ffn")},
          {"n_positions", of.Count("maxT", 1024)},
          {"vocab_size", of.Count("vocab")},
          {"resid_pdrop", 0.0},
          {"embd_pdrop", 0.0},
          {"attn_pdrop", 0.0}};
}

Json::Object BertConfig(const Shapes& of, bool classifies) {
  constexpr std::int64_t kPositions = 512;  // configuration_bert.py
  const double dropout = of.Number("dropout", 0);
  return {{"model_type", "bert"},
          {"architectures",
           Json::Array{classifies ? "BertForSequenceClassification" : "BertForMaskedLM"}},
          {"num_hidden_layers", of.Count("layers")},
          {"hidden_size", of.Count("hidden")},
          {"num_attention_heads", of.Count("heads")},
          {"intermediate_size", of.Count("ffn")},
          {"vocab_size", of.Count("vocab")},
          {"max_position_embeddings", kPositions},
          {"type_vocab_size", 2},
          {"hidden_act", "gelu"},
          {"hidden_dropout_prob", dropout},
          {"attention_probs_dropout_prob", dropout}};
}

Json::Object LlamaConfig(const Shapes& of) {
  const std::int64_t heads = of.Count("heads");
  const std::string type = of.Flag("qk_norm")    ? "qwen3"
                           : of.Flag("qkv_bias") ? "qwen2"
                           : of.norm == "rms x4" ? "gemma2"
                           : of.mlp == "geglu"   ? "gemma"
                                                 : "llama";
  constexpr std::int64_t kLongest = std::int64_t{1} << 20;  // no warning wanted
  return {{"model_type", type},
          {"num_hidden_layers", of.Count("layers")},
          {"hidden_size", of.Count("hidden")},
          {"num_attention_heads", heads},
          {"num_key_value_heads", of.Count("kv_heads", heads)},
          {"head_dim", of.Count("head_dim", std::max<std::int64_t>(1, of.Count("hidden") / heads))},
          {"intermediate_size", of.Count("ffn")},
          {"vocab_size", of.Count("vocab")},
          {"max_position_embeddings", kLongest},
          {"tie_word_embeddings", of.Flag("tied")},
          {"hidden_act", "silu"}};
}

// A shape that these layers do not have would be another model without saying so.
Result<void> RefuseOthers(const Shapes& of, std::initializer_list<std::string_view> unread) {
  const std::int64_t heads = of.Count("heads");
  for (const std::string_view key : unread) {
    const bool usual = key == "kv_heads"     ? of.Count(key, heads) == heads
                       : key == "head_dim"   ? of.Count(key) * heads == of.Count("hidden")
                       : key == "rotary_pct" ? of.Number(key, 1) == 1
                       : key == "dropout"    ? of.Number(key, 0) == 0
                                             : key != "maxT" && !of.Flag(key);
    if (of.arch.Has(key) && !usual) {
      return NotExpressible(fmt::format("arch.{} with mlp \"{}\" and norm \"{}\" is not described",
                                        key, of.mlp, of.norm));
    }
  }
  return {};
}

Result<Json> ConfigOf(const Shapes& of, const std::string& implementation, bool classifies) {
  const bool is_rms = of.norm == "rms" || of.norm == "rms x4";
  const bool is_gated = of.mlp == "swiglu" || of.mlp == "geglu";
  if (implementation == "litgpt" && (is_rms || of.norm == "ln") && (is_gated || of.mlp == "gelu")) {
    TRY_VOID(RefuseOthers(of, {"maxT", "qkv_bias", "qk_norm", "dropout"}));
    return Json(LitGptConfig(of));
  }
  if (of.norm == "ln post" && of.mlp == "gelu") {
    TRY_VOID(RefuseOthers(of, {"kv_heads", "head_dim", "rotary_pct", "parallel_residual",
                               "shared_norm", "softcap", "qk_norm"}));
    return Json(BertConfig(of, classifies));
  }
  if (of.norm == "ln" && of.mlp == "gelu" && of.arch.Has("maxT")) {
    TRY_VOID(RefuseOthers(of, {"kv_heads", "head_dim", "rotary_pct", "parallel_residual",
                               "shared_norm", "softcap", "qk_norm", "dropout"}));
    return Json(GptConfig(of));
  }
  if (is_rms && is_gated) {
    TRY_VOID(RefuseOthers(
        of, {"maxT", "rotary_pct", "parallel_residual", "shared_norm", "bias", "dropout"}));
    return Json(LlamaConfig(of));
  }
  return NotExpressible(
      fmt::format("layers with mlp \"{}\" and norm \"{}\" are not described", of.mlp, of.norm));
}

Result<Network> NetworkOf(const Fields& row, const std::string& implementation) {
  if (!row.Has("arch")) {
    return NotExpressible("no field arch");
  }
  TRY(const Fields arch, row.Object("arch"));
  TRY_VOID(CheckShapes(arch));
  const auto text = [&](std::string_view key, const std::string& otherwise) {
    const auto value = arch.OptionalText(key);
    return value && *value ? LowerCase(**value) : otherwise;
  };
  const Shapes shapes = {.arch = arch, .mlp = text("mlp", "swiglu"), .norm = text("norm", "rms")};
  const bool classifies =
      LowerCase(RunText(row, "mode")).find("classification") != std::string::npos;
  TRY(const Json config, ConfigOf(shapes, implementation, classifies));
  TRY(Network network, NetworkFromConfig(config, "arch"));
  // The row's own count shows a shape that was understood wrongly.
  if (const auto stated = arch.OptionalInteger("params", {1, kLargestAmount}); stated && *stated) {
    const double ratio =
        static_cast<double>(ParameterCount(network)) / static_cast<double>(**stated);
    constexpr double kSame = 0.01;
    if (ratio < 1 - kSame || ratio > 1 + kSame) {
      return NotExpressible(
          fmt::format("arch.params: {}, its shapes give {}", **stated, ParameterCount(network)));
    }
  }
  return network;
}

// --- Words ---

Result<void> ApplySpecials(Typed& typed, const Fields& row) {
  if (!row.Has("special")) {
    return {};
  }
  TRY(const auto specials, row.Texts("special"));
  for (const std::string_view special : specials) {
    TRY_VOID(ApplyWord(typed, "special", special));
  }
  return {};
}

Result<Typed> WordsOf(const Fields& row) {
  Typed typed;
  const std::string source = RunText(row, "source");
  if (FindRunPhrase("source", source) == nullptr) {
    return NotExpressible("source: whose program it was is not in the vocabulary");
  }
  ApplyPhrase(typed, "source", source);
  for (const std::string_view field :
       {"mode", "precision", "optimizer", "recompute", "attention"}) {
    if (row.Has(field)) {
      const auto text = row.OptionalText(field);
      if (!text || !*text) {
        return NotExpressible(fmt::format("{}: no word", field));
      }
      TRY_VOID(ApplyWord(typed, field, **text));
    } else if (field != "attention") {
      return NotExpressible(fmt::format("no field {}", field));
    }
  }
  TRY_VOID(ApplySpecials(typed, row));
  const std::string notes = RunText(row, "notes");
  ApplyRank(typed, notes);
  ApplyAccumulation(typed, LowerCase(notes));
  for (const std::string_view field :
       {"version", "notes", "dropout", "tokens", "batches", "unit"}) {
    ApplyPhrase(typed, field, notes);
  }
  if (const std::string device = RunText(row, "device_type"); !device.empty()) {
    ApplyPhrase(typed, "device_type", "");
    if (const RunWord* word = FindRunWord("device_type", device)) {
      Apply(typed, word->means);
    }
  }
  return typed;
}

// "lora:rank=8,targets=q_proj+v_proj,dropout=0.05", of the kinds that take such keys.
void SetAdapter(Typed& typed) {
  const std::string kind = TakeOr(typed, "@adapter", "");
  const std::string rank = TakeOr(typed, "@rank", "");
  const std::string targets = TakeOr(typed, "@targets", "");
  const std::string dropout = TakeOr(typed, "@dropout", "");
  const std::string modules = TakeOr(typed, "@modules", "");
  if (kind.empty()) {
    return;
  }
  const std::string tokens = TakeOr(typed, "@tokens", "");
  const bool low_rank = kind == "lora" || kind == "dora";
  std::vector<std::string> keys;
  const auto add = [&](std::string_view key, const std::string& value) {
    if (!value.empty() && low_rank) {
      keys.push_back(fmt::format("{}={}", key, value));
    }
  };
  add("rank", rank);
  add("targets", targets);
  add("dropout", dropout);
  add("modules", modules);
  if (kind == "vera" && !targets.empty()) {
    keys.push_back("targets=" + targets);
  } else if (kind == "prompt" && !tokens.empty()) {
    keys.push_back("tokens=" + tokens);
  }
  std::string spec = kind;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    spec += (i == 0 ? ":" : ",") + keys[i];
  }
  typed.insert_or_assign("adapter", spec);
}

// Of compiled runs, where the implementation has a profile of its own.
void SetImplementation(Typed& typed) {
  if (TakeOr(typed, "@compile", "").empty()) {
    return;
  }
  std::string& implementation = typed["implementation"];
  if (implementation == "torchtune" || implementation == "pytorch") {
    implementation += "-compile";
  }
}

Result<void> SetSizes(Typed& typed, const Fields& row, const std::string& measures) {
  // Before the first step there is no batch.
  if (measures == "after_init") {
    return {};
  }
  constexpr std::pair<std::string_view, std::string_view> kSizeFields[] = {
      {"seq", "sequence-length"}, {"micro_batch", "micro-batch-size"}};
  for (const auto& [field, setting] : kSizeFields) {
    const auto size = row.OptionalInteger(field, kAnySize);
    if (!size || !*size) {
      return NotExpressible(fmt::format("no {} is given", field));
    }
    typed.insert_or_assign(std::string(setting), fmt::format("{}", **size));
  }
  return {};
}

Result<void> CheckDevices(const Fields& row) {
  const auto devices = row.OptionalInteger("devices", kAnySize);
  if (!devices || !*devices) {
    return NotExpressible("no device count is given");
  }
  if (**devices != 1) {
    return NotExpressible("layouts over several devices are not in this version");
  }
  TRY(const auto usable, row.OptionalBool("usable"));
  if (usable && !*usable) {
    return NotExpressible("the row is marked as contradicting itself");
  }
  return {};
}

}  // namespace

bool IsTrainingRun(const Fields& row) {
  return row.Has("metric") && row.Has("mode");
}

Result<TrainingRun> TrainingRunOf(const Fields& row) {
  TRY_VOID(CheckDevices(row));
  TRY_VOID(row.OptionalText("measures"));
  TRY(Typed typed, WordsOf(row));
  TrainingRun run = {.measures = RunText(row, "measures"), .metric = RunText(row, "metric")};
  run.measures = run.measures.empty() ? "peak" : run.measures;
  run.unit = TakeOr(typed, "@unit", "");
  run.context = ContextOf(RunText(row, "notes"));
  const bool shorter = TakeOr(typed, "@later-batches", "") == "shorter";
  TakeOr(typed, "@lm-head-chunks", "");
  SetImplementation(typed);
  TRY_VOID(SetSizes(typed, row, run.measures));
  const bool trains_all = TakeOr(typed, "@command", "") == "train";
  run.job.kind = trains_all ? JobKind::kTrain : JobKind::kFinetune;
  TRY(run.job.model.network, NetworkOf(row, typed["implementation"]));
  run.job.model.name = RunText(row, "model");
  SetAdapter(typed);
  if (run.metric == "reserved" || run.metric == "smi" || run.metric == "unknown") {
    typed.try_emplace("device", "a100-sxm-80gb");
  }
  TRY(run.job, ReadJob(std::move(run.job), TypedSettings(typed)));
  run.job.training.later_batches_are_shorter = shorter;
  return run;
}

}  // namespace fourpiles
