#include "plan/job.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/nearest_name.h"
#include "base/try.h"
#include "plan/model_argument.h"
#include "units/parse.h"

namespace fourpiles {
namespace {

constexpr std::string_view kDefaultRecipe = "mixed-bf16";
constexpr std::string_view kDefaultOptimizer = "adamw";
constexpr std::int64_t kDefaultSequenceLength = 2048;

// No run has more; the schedule of a step, which lists every layer, stays small.
constexpr Range kLayers = {1, 10'000};
constexpr Range kSizes = {1, std::int64_t{1} << 40};
constexpr Range kDevices = {1, 1'000'000};

// Reads settings one after another, and notes the defaults it had to use.
class SettingReader {
 public:
  SettingReader(const Settings& settings, std::vector<Default>& defaults)
      : settings_(settings), defaults_(defaults) {}

  const SetValue* Find(std::string_view name) const {
    const auto found = settings_.find(name);
    return found == settings_.end() ? nullptr : &found->second;
  }

  Result<std::optional<std::int64_t>> OptionalCount(std::string_view name, Range range) const {
    const SetValue* set = Find(name);
    if (set == nullptr) {
      return std::nullopt;
    }
    TRY(const std::int64_t count, ParseCount(set->text, set->where, range));
    return count;
  }

  Result<std::int64_t> Count(std::string_view name, std::int64_t otherwise, Range range) {
    TRY(const std::optional<std::int64_t> count, OptionalCount(name, range));
    if (!count) {
      NoteDefault(name, fmt::to_string(otherwise));
    }
    return count.value_or(otherwise);
  }

  Result<NumberFormat> Format(std::string_view name, const NumberFormat& otherwise) {
    const SetValue* set = Find(name);
    if (set == nullptr) {
      NoteDefault(name, otherwise.name);
      return otherwise;
    }
    return FindFormat(set->text, set->where);
  }

  // The name that was set, and where; or the default.
  SetValue Text(std::string_view name, std::string_view otherwise) {
    const SetValue* set = Find(name);
    if (set == nullptr) {
      NoteDefault(name, otherwise);
      return {std::string(otherwise), "--" + std::string(name)};
    }
    return *set;
  }

 private:
  void NoteDefault(std::string_view name, std::string_view value) {
    defaults_.push_back({KeyOf({.name = name}), std::string(value)});
  }

  const Settings& settings_;
  std::vector<Default>& defaults_;
};

struct SolveWord {
  std::string_view word;
  Unknown unknown;
  bool serving;
};
constexpr SolveWord kSolveWords[] = {
    {"batch", Unknown::kMicroBatchSize, false}, {"sequence", Unknown::kSequenceLength, false},
    {"devices", Unknown::kDevices, false},      {"concurrency", Unknown::kConcurrency, true},
    {"context", Unknown::kContextLength, true},
};

Result<std::optional<Unknown>> ReadSolve(const SettingReader& reader, const Job& job) {
  const SetValue* set = reader.Find("solve");
  if (set == nullptr) {
    return std::nullopt;
  }
  std::vector<std::string_view> words;
  for (const SolveWord& word : kSolveWords) {
    if (word.serving == (job.kind == JobKind::kServe)) {
      if (set->text == word.word) {
        if (!job.device) {
          return WrongUsage({.where = set->where,
                             .found = "no device to fit",
                             .expected = "expected --device",
                             .hint = "a size such as 80GB will do"});
        }
        return word.unknown;
      }
      words.push_back(word.word);
    }
  }
  if (job.kind == JobKind::kServe && set->text == Word(Unknown::kDevices)) {
    return WrongUsage({.where = set->where,
                       .found = "devices: not in this version",
                       .hint = fmt::format("one of {}", fmt::join(words, ", "))});
  }
  return WrongUsage({.where = set->where,
                     .found = "unknown word \"" + set->text + "\"",
                     .expected = DidYouMean(set->text, words),
                     .hint = fmt::format("one of {}", fmt::join(words, ", "))});
}

Result<TrainingJob> ReadTraining(SettingReader& reader, const Network& network) {
  TrainingJob training;
  const SetValue recipe = reader.Text("recipe", kDefaultRecipe);
  TRY(training.recipe, FindRecipe(recipe.text, recipe.where));
  const SetValue optimizer = reader.Text("optimizer", kDefaultOptimizer);
  TRY(training.optimizer, FindOptimizer(optimizer.text, optimizer.where));
  TRY(training.micro_batch_size, reader.Count("micro-batch-size", 1, kSizes));
  const std::int64_t longest = network.max_position_embeddings.value_or(kDefaultSequenceLength);
  TRY(training.sequence_length,
      reader.Count("sequence-length", std::min(longest, kDefaultSequenceLength), kSizes));
  TRY(training.gradient_accumulation, reader.Count("gradient-accumulation", 1, kSizes));
  TRY(training.activation_format, reader.Format("activation-format", training.recipe.compute));
  const SetValue activations = reader.Text("activations", "lower-bound");
  if (activations.text != "lower-bound") {
    return WrongUsage({.where = activations.where,
                       .found = "\"" + activations.text + "\": not in this version",
                       .expected = "expected lower-bound"});
  }
  TRY(const std::int64_t zero, reader.Count("zero", 0, {0, 3}));
  training.zero = static_cast<int>(zero);
  return training;
}

Result<ServingJob> ReadServing(SettingReader& reader, const Network& network) {
  ServingJob serving;
  TRY(const NumberFormat bfloat16, FindFormat("bfloat16"));
  TRY(serving.weights_format,
      reader.Format("weights-format", network.stored_format.value_or(bfloat16)));
  const bool small = StorageBits(serving.weights_format) < 16;  // no engine computes in these
  serving.compute_format =
      small ? network.stored_format.value_or(bfloat16) : serving.weights_format;
  TRY(const NumberFormat both, reader.Format("kv-format", serving.compute_format));
  serving.key_format = both;
  serving.value_format = both;
  if (const SetValue* keys = reader.Find("kv-format-k")) {
    TRY(serving.key_format, FindFormat(keys->text, keys->where));
  }
  if (const SetValue* values = reader.Find("kv-format-v")) {
    TRY(serving.value_format, FindFormat(values->text, values->where));
  }
  const std::int64_t longest = network.max_position_embeddings.value_or(kDefaultSequenceLength);
  TRY(serving.context_length, reader.Count("context-length", longest, kSizes));
  TRY(serving.concurrency, reader.Count("concurrency", 1, kSizes));
  return serving;
}

}  // namespace

std::string_view Name(Unknown unknown) {
  switch (unknown) {
    case Unknown::kMicroBatchSize:
      return "micro_batch_size";
    case Unknown::kSequenceLength:
      return "sequence_length";
    case Unknown::kDevices:
      return "devices";
    case Unknown::kConcurrency:
      return "concurrency";
    case Unknown::kContextLength:
      break;
  }
  return "context_length";
}

std::string_view Word(Unknown unknown) {
  return std::ranges::find(kSolveWords, unknown, &SolveWord::unknown)->word;
}

Result<Job> MakeJob(JobKind kind, std::string_view model, const Settings& settings) {
  TRY_VOID(RefuseUnbuilt(settings, kind));
  Job job;
  job.kind = kind;
  job.settings = settings;
  SettingReader reader(settings, job.defaults);
  CountShape shape;
  TRY(shape.layers, reader.OptionalCount("layers", kLayers));
  TRY(shape.width, reader.OptionalCount("width", kSizes));
  TRY(ModelArgument argument, OpenModelArgument(model, shape));
  job.model = std::move(argument.model);
  job.bare_count = argument.bare_count;
  job.from_file = argument.from_file;
  if (const SetValue* device = reader.Find("device")) {
    TRY(job.device, LooksLikeAmount(device->text) ? DeviceOfSize(device->text, device->where)
                                                  : FindDevice(device->text, device->where));
  }
  if (kind == JobKind::kServe) {
    TRY(job.serving, ReadServing(reader, job.model.network));
  } else {
    TRY(job.devices, reader.Count("devices", 1, kDevices));
    TRY(job.training, ReadTraining(reader, job.model.network));
  }
  TRY(job.solve, ReadSolve(reader, job));
  return job;
}

}  // namespace fourpiles
