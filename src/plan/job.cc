#include "plan/job.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/nearest_name.h"
#include "base/try.h"
#include "model/fused_attention.h"
#include "plan/adapter_setting.h"
#include "plan/cache.h"
#include "plan/model_argument.h"
#include "plan/setting_reader.h"
#include "plan/training_data.h"
#include "units/parse.h"

namespace fourpiles {
namespace {

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
    if (word.serving == (job.kind == JobKind::kServe) || word.unknown == Unknown::kDevices) {
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
  return WrongUsage({.where = set->where,
                     .found = "unknown word \"" + set->text + "\"",
                     .expected = DidYouMean(set->text, words),
                     .hint = fmt::format("one of {}", fmt::join(words, ", "))});
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

namespace {

Result<std::optional<Bytes>> ReadHostMemory(const SettingReader& reader) {
  const SetValue* set = reader.Find("host-memory");
  if (set == nullptr) {
    return std::nullopt;
  }
  TRY(const Bytes memory, ParseBytes(set->text, set->where));
  return memory;
}

// Cross attention keeps the images of a request apart from its context: one of the largest size,
// where no count was given.
void MoveImageTokens(Job& job, SettingReader& reader) {
  const std::int64_t of_one_image = EncoderTokens(job.model.network.caches);
  if (of_one_image == 0) {
    return;
  }
  if (reader.Find("image-tokens") == nullptr) {
    reader.NoteDefault("image-tokens", fmt::format("{}", of_one_image));
    return;
  }
  for (Cache& cache : job.model.network.caches) {
    if (cache.encoder_tokens) {
      cache.encoder_tokens = job.serving.image_tokens;
    }
  }
  job.serving.image_tokens = 0;
}

}  // namespace

Result<Job> MakeJob(JobKind kind, std::string_view model, const Settings& settings) {
  TRY(Job opened, OpenJob(kind, model, settings));
  return ReadJob(std::move(opened), settings);
}

Result<Job> OpenJob(JobKind kind, std::string_view model, const Settings& settings) {
  TRY_VOID(RefuseUnbuilt(settings, kind));
  Job job;
  job.kind = kind;
  const SettingReader reader(settings, job.defaults);
  CountShape shape;
  TRY(shape.layers, reader.OptionalCount("layers", kLayers));
  TRY(shape.width, reader.OptionalCount("width", kSizes));
  TRY(ModelArgument argument, OpenModelArgument(model, shape));
  job.model = std::move(argument.model);
  job.bare_count = argument.bare_count;
  job.from_file = argument.from_file;
  return job;
}

Result<Job> ReadJob(Job opened, const Settings& settings) {
  Job job = std::move(opened);
  job.settings = settings;
  SettingReader reader(job.settings, job.defaults);
  if (const SetValue* device = reader.Find("device")) {
    TRY(job.device, LooksLikeAmount(device->text) ? DeviceOfSize(device->text, device->where)
                                                  : FindDevice(device->text, device->where));
  }
  if (job.kind == JobKind::kServe) {
    TRY(job.serving, ReadServing(reader, job));
    MoveImageTokens(job, reader);
    const ServingLayout& layout = job.serving.layout;
    job.devices = layout.tensor * layout.pipeline * layout.data;
  } else {
    TRY(job.devices, reader.Count("devices", 1, kDeviceCounts));
    TRY(TrainedParts parts, ReadTrainedParts(reader, job));
    TRY(const std::shared_ptr<const TrainingData> data, ReadTrainingData(reader, job));
    TakeSequenceLength(job, data.get());
    TRY(job.training, ReadTraining(reader, job));
    job.devices = job.training.layout.devices;
    job.training.data = data;
    TRY(job.host_memory, ReadHostMemory(reader));
    if (job.training.profile.fuses_queries_keys_values) {
      job.model.network = WithFusedAttention(std::move(job.model.network));
    }
    PadVocabulary(job.model.network,
                  job.training.profile.vocabulary_multiple * job.training.layout.tensor);
    job.training.adapter = std::move(parts.adapter);
    job.training.freeze = std::move(parts.freeze);
    job.training.train_only = std::move(parts.train_only);
    TRY_VOID(CheckAdapter(job));
  }
  TRY(job.solve, ReadSolve(reader, job));
  return job;
}

}  // namespace fourpiles
