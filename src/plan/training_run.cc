#include "plan/training_run.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/ascii.h"
#include "base/try.h"
#include "plan/run_notes.h"
#include "plan/run_shapes.h"
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

bool IsChunkedLoss(std::string_view special) {
  return LowerCase(special).starts_with("chunked ce");
}

// "chunked CE", "chunked CE 8", "chunked CE (8)": of 8 chunks, torchtune's default, or so many.
Result<void> ApplyChunkedLoss(Typed& typed, std::string_view special) {
  constexpr std::string_view kWord = "chunked ce";
  std::string chunks;
  for (const char c : special.substr(kWord.size())) {
    const bool is_digit = '0' <= c && c <= '9';
    if (!is_digit && c != ' ' && c != '(' && c != ')') {
      return NotExpressible(
          fmt::format("special: \"{}\" is not in the vocabulary", LowerCase(special)));
    }
    chunks += is_digit ? std::string(1, c) : "";
  }
  typed.insert_or_assign("loss", "chunked:" + (chunks.empty() ? "8" : chunks));
  return {};
}

Result<void> ApplySpecials(Typed& typed, const Fields& row) {
  if (!row.Has("special")) {
    return {};
  }
  TRY(const auto specials, row.Texts("special"));
  for (const std::string_view special : specials) {
    TRY_VOID(IsChunkedLoss(special) ? ApplyChunkedLoss(typed, special)
                                    : ApplyWord(typed, "special", special));
  }
  return {};
}

// Of tensors alone the device does not matter.
Result<void> ApplyDevice(Typed& typed, const Fields& row) {
  const std::string device = RunText(row, "device_type");
  const RunWord* word = FindRunWord("device_type", device);
  if (word == nullptr && !device.empty() && RunText(row, "metric") != "allocated") {
    return NotExpressible(fmt::format("device_type: \"{}\" is not in the vocabulary", device));
  }
  Apply(typed, word == nullptr ? "" : word->means);
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
  for (const std::string_view field : {"version", "notes", "batches", "unit"}) {
    ApplyPhrase(typed, field, notes);
  }
  TRY_VOID(ApplyDevice(typed, row));
  return typed;
}

// "lora:rank=8,targets=q_proj+v_proj,dropout=0.05": of a kind the keys that it takes, from the
// notes before the program's own.
void SetAdapter(Typed& typed, const RunNotes& notes) {
  const std::string kind = TakeOr(typed, "@adapter", "");
  const std::string usual = TakeOr(typed, "@rank", "");
  const std::pair<std::string_view, std::string> parts[] = {
      {"rank", notes.rank.empty() && kind != "vera" ? usual : notes.rank},
      {"targets", TakeOr(typed, "@targets", "")},
      {"modules", TakeOr(typed, "@modules", "")},
      {"dropout", notes.dropout.empty() ? TakeOr(typed, "@dropout", "") : notes.dropout},
      {"tokens", notes.tokens}};
  TakeOr(typed, "@dropout", "");
  if (kind.empty()) {
    return;
  }
  const bool low_rank = kind == "lora" || kind == "dora" || kind == "vera";
  std::string spec = kind;
  for (const auto& [key, value] : parts) {
    const bool takes = key == "tokens" ? kind == "prompt" : low_rank;
    if (takes && !value.empty()) {
      spec += fmt::format("{}{}={}", spec == kind ? ":" : ",", key, value);
    }
  }
  typed.insert_or_assign("adapter", spec);
}

// Of compiled runs, where the implementation has a profile of its own; and words of one program
// alone.
Result<void> SetImplementation(Typed& typed) {
  std::string& implementation = typed["implementation"];
  const std::string needed = TakeOr(typed, "@program", implementation);
  if (!implementation.starts_with(needed)) {
    return NotExpressible(fmt::format("a word of {} in a run of another program", needed));
  }
  if (TakeOr(typed, "@compile", "").empty()) {
    return {};
  }
  if (implementation != "torchtune" && implementation != "pytorch") {
    return NotExpressible(fmt::format("{} compiled is not described", implementation));
  }
  implementation += "-compile";
  return {};
}

// The format of the moments, where the row says it, must be the recipe's.
Result<void> SetStates(Typed& typed) {
  const std::string states = TakeOr(typed, "@states", "");
  std::string& recipe = typed["recipe"];
  if (states == "float32" && recipe == "bf16") {
    recipe = "bf16-fp32-states";
  }
  if (states == "bfloat16" && recipe != "bf16") {
    return NotExpressible("optimizer: states in bfloat16 beside this precision");
  }
  return {};
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
  TRY(const RunNotes notes, NotesOf(RunText(row, "notes")));
  run.context = notes.context;
  TRY_VOID(SetImplementation(typed));
  TRY_VOID(SetStates(typed));
  if (!notes.accumulation.empty()) {
    typed.insert_or_assign("gradient-accumulation", notes.accumulation);
  }
  TRY_VOID(SetSizes(typed, row, run.measures));
  const bool trains_all = TakeOr(typed, "@command", "") == "train";
  run.job.kind = trains_all ? JobKind::kTrain : JobKind::kFinetune;
  TRY(run.job.model.network, NetworkOfRun(row, typed["implementation"]));
  run.job.model.name = RunText(row, "model");
  SetAdapter(typed, notes);
  if (run.metric == "reserved" || run.metric == "smi" || run.metric == "unknown") {
    typed.try_emplace("device", "a100-sxm-80gb");
  }
  TRY(run.job, ReadJob(std::move(run.job), TypedSettings(typed)));
  return run;
}

}  // namespace fourpiles
