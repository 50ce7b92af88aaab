#include "plan/job.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/nearest_name.h"
#include "base/try.h"
#include "plan/adapter_setting.h"
#include "plan/model_argument.h"
#include "plan/setting_reader.h"
#include "units/parse.h"

namespace fourpiles {
namespace {

constexpr std::string_view kStored = "stored";  // of --weights-format

// No run has more; the schedule of a step, which lists every layer, stays small.
constexpr Range kLayers = {1, 10'000};

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

// The file's own formats: by default where tensors were read, or by the word.
Result<bool> ReadAsStored(const SettingReader& reader, const Model& model) {
  const SetValue* set = reader.Find("weights-format");
  if (set != nullptr && set->text != kStored) {
    return false;
  }
  if (set != nullptr && !model.checkpoint) {
    return WrongUsage({.where = set->where,
                       .found = "\"stored\", and no tensors to read",
                       .expected = "expected a model with its tensor files",
                       .hint = "give a number format"});
  }
  return model.checkpoint.has_value();
}

Result<ServingJob> ReadServing(SettingReader& reader, const Model& model) {
  const Network& network = model.network;
  ServingJob serving;
  TRY(const NumberFormat bfloat16, FindFormat("bfloat16"));
  const NumberFormat own = network.stored_format.value_or(bfloat16);
  TRY(serving.weights_as_stored, ReadAsStored(reader, model));
  serving.weights_format = own;
  if (serving.weights_as_stored) {
    reader.Text("weights-format", kStored);
  } else {
    TRY(serving.weights_format, reader.Format("weights-format", own));
  }
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
    TRY(job.serving, ReadServing(reader, job.model));
  } else {
    TRY(job.devices, reader.Count("devices", 1, kDeviceCounts));
    TRY(const std::optional<LoraAdapter> adapter, ReadAdapter(reader));
    if (adapter) {
      TRY(job.model.network,
          WithAdapter(std::move(job.model.network), *adapter, reader.Find(kAdapterSetting)->where));
    }
    TRY(job.training, ReadTraining(reader, job));
    PadVocabulary(job.model.network, job.training.profile.vocabulary_multiple);
    job.training.adapter = adapter;
  }
  TRY(job.solve, ReadSolve(reader, job));
  return job;
}

}  // namespace fourpiles
