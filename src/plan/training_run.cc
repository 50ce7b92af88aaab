#include "plan/training_run.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/ascii.h"
#include "base/try.h"
#include "plan/device.h"
#include "plan/run_notes.h"
#include "plan/run_settings.h"
#include "plan/run_shapes.h"
#include "plan/run_words.h"
#include "plan/validate_fields.h"
#include "units/parse.h"

namespace fourpiles {
namespace {

constexpr std::int64_t kMostDevices = std::int64_t{1} << 20;
constexpr Range kAnySize = {1, std::int64_t{1} << 30};

bool IsChunkedLoss(std::string_view special) {
  return LowerCase(special).starts_with("chunked ce");
}

// "chunked CE", "chunked CE 8", "chunked CE (8)": of 8 chunks, torchtune's default, or so many.
Result<void> ApplyChunkedLoss(RunSettings& typed, std::string_view special) {
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

Result<void> ApplySpecials(RunSettings& typed, const Fields& row) {
  if (!row.Has("special")) {
    return {};
  }
  TRY(const auto specials, row.Texts("special"));
  for (const std::string_view special : specials) {
    TRY_VOID(IsChunkedLoss(special) ? ApplyChunkedLoss(typed, special)
                                    : AddWord(typed, "special", special));
  }
  return {};
}

// Of tensors alone the device does not matter.
Result<void> ApplyDevice(RunSettings& typed, const Fields& row) {
  const std::string device = RunText(row, "device_type");
  const RunWord* word = FindRunWord("device_type", device);
  if (word == nullptr && !device.empty() && RunText(row, "metric") != "allocated") {
    return NotExpressible(fmt::format("device_type: \"{}\" is not in the vocabulary", device));
  }
  AddSettings(typed, word == nullptr ? "" : word->means);
  return {};
}

// A word; of what runs again it may be the members of an object.
Result<void> AddField(RunSettings& typed, const Fields& row, std::string_view field) {
  if (!row.Has(field)) {
    return field == "attention" ? Result<void>()
                                : NotExpressible(fmt::format("no field {}", field));
  }
  if (const auto members = row.OptionalObject(field); members && *members) {
    return AddMembers(typed, field, **members);
  }
  const auto text = row.OptionalText(field);
  return text && *text ? AddWord(typed, field, **text)
                       : NotExpressible(fmt::format("{}: no word", field));
}

Result<RunSettings> WordsOf(const Fields& row) {
  RunSettings typed;
  const std::string source = RunText(row, "source");
  const RunWord* program = FindRunPhrase("source", source);
  if (program == nullptr) {
    return NotExpressible("source: whose program it was is not in the vocabulary");
  }
  if (!program->why_not.empty()) {
    return NotExpressible(std::string(program->why_not));
  }
  AddPhrase(typed, "source", source);
  for (const std::string_view field :
       {"mode", "precision", "optimizer", "recompute", "attention"}) {
    TRY_VOID(AddField(typed, row, field));
  }
  TRY_VOID(ApplySpecials(typed, row));
  const std::string notes = RunText(row, "notes");
  for (const std::string_view field : {"version", "notes", "batches", "unit", "sum"}) {
    AddPhrase(typed, field, notes);
  }
  TRY_VOID(ApplyDevice(typed, row));
  TRY_VOID(AddLayout(typed, row));
  return typed;
}

// "lora:rank=8,targets=q_proj+v_proj,dropout=0.05": of a kind the keys that it takes, from the
// notes before the program's own.
void SetAdapter(RunSettings& typed, const RunNotes& notes) {
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
Result<void> SetImplementation(RunSettings& typed) {
  std::string& implementation = typed["implementation"];
  const std::string needed = TakeOr(typed, "@program", implementation);
  if (!implementation.starts_with(needed)) {
    return NotExpressible(fmt::format("a word of {} in a run of another program", needed));
  }
  if (!TakeOr(typed, "@fusion", "").empty()) {
    implementation += "-separate-gradients";
  }
  // Other programs are described with the sharding that they had.
  if (!TakeOr(typed, "@flat", "").empty() && implementation == "pytorch") {
    implementation = "pytorch-fsdp1";
  }
  if (TakeOr(typed, "@compile", "").empty()) {
    return {};
  }
  const std::vector<std::string_view> known = ImplementationNames();
  if (std::ranges::find(known, implementation + "-compile") == known.end()) {
    return NotExpressible(fmt::format("{} compiled is not described", implementation));
  }
  implementation += "-compile";
  return {};
}

// The format of the moments, where the row says it, must be the recipe's.
Result<void> SetStates(RunSettings& typed) {
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

Result<void> SetSizes(RunSettings& typed, const Fields& row, const std::string& measures) {
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

// What Transformer Engine chooses, where the row leaves it to it: flash-attn below Hopper; cuDNN's
// kernel from Hopper on, which on Blackwell is not deterministic
// (pytorch/attention/dot_product_attention/utils.py, get_attention_backend).
Result<void> SetAttention(RunSettings& typed) {
  const bool deterministic = !TakeOr(typed, "@deterministic", "").empty();
  if (TakeOr(typed, "@attention", "").empty()) {
    return {};
  }
  const auto named = typed.find("device");
  if (named == typed.end()) {
    return NotExpressible("attention \"auto\" of a device that is not known");
  }
  TRY(const Device device, FindDevice(named->second));
  const std::string& architecture = device.architecture;
  const bool is_hopper = architecture == "sm90";
  const bool is_later = architecture.starts_with("sm1");
  typed["attention"] = is_hopper || (is_later && !deterministic) ? "sdpa" : "flash";
  return {};
}

// The recipe that the program makes of a format: DeepSpeed keeps weights in the format that
// autocast would compute in, and master copies (runtime/bf16_optimizer.py, fp16_optimizer.py);
// layers that run again so many at a time.
void SetRecipe(RunSettings& typed) {
  const std::string of_bf16 = TakeOr(typed, "@bf16", "");
  if (!of_bf16.empty() && typed["recipe"] == "bf16") {
    typed["recipe"] = of_bf16;
  }
  if (!TakeOr(typed, "@deepspeed", "").empty()) {
    std::string& recipe = typed["recipe"];
    recipe = recipe == "amp-bf16" ? "mixed-bf16" : recipe == "amp-fp16" ? "mixed-fp16" : recipe;
  }
  const std::string every = TakeOr(typed, "@every", "");
  if (!every.empty()) {
    typed["recompute"] = every == "1" ? "full" : "every:" + every;
  }
}

std::int64_t CountUnder(const RunSettings& typed, const std::string& setting) {
  const auto found = typed.find(setting);
  const auto count = found == typed.end() ? Result<std::int64_t>(1)
                                          : ParseCount(found->second, setting, {1, kMostDevices});
  return count ? *count : 1;
}

// Samples of a whole step as micro-batches.
Result<void> SetMicroBatches(RunSettings& typed, const std::string& samples) {
  if (samples.empty() || !typed.contains("micro-batch-size")) {
    return {};
  }
  TRY(const std::int64_t all, ParseCount(samples, "notes", {1, kMostDevices}));
  const std::int64_t ranks = CountUnder(typed, "tensor-parallel") *
                             CountUnder(typed, "pipeline-parallel") *
                             CountUnder(typed, "context-parallel");
  const std::int64_t spread = std::max<std::int64_t>(1, CountUnder(typed, "devices") / ranks);
  const std::int64_t of_one = CountUnder(typed, "micro-batch-size") * spread;
  if (all % of_one != 0) {
    return NotExpressible(
        fmt::format("notes: {} samples of a step in micro-batches of {} on {} "
                    "data-parallel ranks",
                    all, CountUnder(typed, "micro-batch-size"), spread));
  }
  typed.insert_or_assign("gradient-accumulation", fmt::format("{}", all / of_one));
  return {};
}

// Layers of one chunk of a stage, which Megatron-LM is told, as a number of chunks.
Result<void> SetChunks(RunSettings& typed, const Network& network) {
  const std::string size = TakeOr(typed, "@layers-per-chunk", "");
  if (size.empty()) {
    return {};
  }
  TRY(const std::int64_t layers_per_chunk, ParseCount(size, "parallel", {1, kMostDevices}));
  const std::int64_t pipeline = CountUnder(typed, "pipeline-parallel");
  const std::int64_t layers = network.num_hidden_layers.value_or(0);
  const std::int64_t of_one_round = pipeline * layers_per_chunk;
  if (layers % of_one_round != 0) {
    return NotExpressible(fmt::format("parallel: {} layers in chunks of {} over {} stages", layers,
                                      layers_per_chunk, pipeline));
  }
  typed.insert_or_assign("virtual-pipeline", fmt::format("{}", layers / of_one_round));
  return {};
}

// Whose figure it is. Of a pipeline the last stage has the last ranks (layout.h).
Result<bool> IsOfLastRank(const Fields& row) {
  const std::string rank = RunText(row, "rank");
  if (!rank.empty() && rank != "worst" && rank != "last") {
    return NotExpressible(fmt::format("rank: \"{}\" is not in the vocabulary", rank));
  }
  return rank == "last";
}

// A word that says how many ranks share the states, or have samples of their own, must agree with
// what the others leave.
Result<void> CheckSpread(const Layout& layout, const std::string& spread) {
  if (!spread.empty() && spread != fmt::format("{}", DataParallel(layout))) {
    return NotExpressible(fmt::format("parallel: spread over {} of {} data-parallel ranks", spread,
                                      DataParallel(layout)));
  }
  return {};
}

// Of the data no more is known than these two.
std::shared_ptr<const TrainingData> DataOf(const LengthMoments& lengths, std::int64_t limit,
                                           bool drops_longer) {
  return std::make_shared<const TrainingData>(
      TrainingData{.lengths = LogNormalLengths(lengths.mean, lengths.deviation),
                   .drops_longer = drops_longer,
                   .limit = limit});
}

Result<void> CheckUsable(const Fields& row) {
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
  TRY_VOID(CheckUsable(row));
  TRY_VOID(row.OptionalText("measures"));
  TRY_VOID(row.OptionalText("rank"));
  TRY(RunSettings typed, WordsOf(row));
  TrainingRun run = {.measures = RunText(row, "measures"), .metric = RunText(row, "metric")};
  run.measures = run.measures.empty() ? "peak" : run.measures;
  run.unit = TakeOr(typed, "@unit", "");
  run.sums_devices = !TakeOr(typed, "@sum", "").empty();
  TRY(run.of_last_rank, IsOfLastRank(row));
  const std::string spread = TakeOr(typed, "@spread", "");
  TRY(const RunNotes notes, NotesOf(RunText(row, "notes")));
  run.context = notes.context;
  TRY_VOID(SetImplementation(typed));
  TRY_VOID(SetStates(typed));
  if (!notes.accumulation.empty()) {
    typed.insert_or_assign("gradient-accumulation", notes.accumulation);
  }
  TRY_VOID(SetSizes(typed, row, run.measures));
  TRY_VOID(SetMicroBatches(typed, notes.global_batch));
  TRY_VOID(SetAttention(typed));
  SetRecipe(typed);
  const bool trains_all = TakeOr(typed, "@command", "") == "train";
  run.job.kind = trains_all ? JobKind::kTrain : JobKind::kFinetune;
  TRY(run.job.model.network,
      NetworkOfRun(row, typed["implementation"], CountUnder(typed, "tensor-parallel")));
  TRY_VOID(SetChunks(typed, run.job.model.network));
  const bool drops_longer = TakeOr(typed, "@excess", "") == "drop";
  run.job.model.name = RunText(row, "model");
  SetAdapter(typed, notes);
  if (run.metric == "reserved" || run.metric == "smi" || run.metric == "unknown") {
    typed.try_emplace("device", "a100-sxm-80gb");
  }
  TRY(run.job, ReadJob(std::move(run.job), TypedSettings(typed)));
  TRY_VOID(CheckSpread(run.job.training.layout, spread));
  if (notes.lengths) {
    run.job.training.data = DataOf(*notes.lengths, run.job.training.sequence_length, drops_longer);
  }
  return run;
}

}  // namespace fourpiles
