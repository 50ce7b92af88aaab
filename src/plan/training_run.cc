#include "plan/training_run.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/ascii.h"
#include "base/try.h"
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
  TRY(run.job.model.network, NetworkOfRun(row, typed["implementation"]));
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
