#include "plan/training_data.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/try.h"

namespace fourpiles {
namespace {

constexpr std::string_view kFile = "length-histogram";
constexpr std::array<std::string_view, 3> kPaddings = {"longest", "max", "none"};
constexpr std::array<std::string_view, 2> kExcesses = {"truncate", "drop"};

// Settings that only say something of a file of lengths.
Result<void> RefuseWithoutFile(const SettingReader& reader) {
  for (const std::string_view name : {"padding", "packing", "excess-length"}) {
    if (const SetValue* set = reader.Find(name)) {
      return WrongUsage({.where = set->where,
                         .found = "no lengths of samples",
                         .expected = "expected --length-histogram",
                         .hint = "docs/LENGTHS.md shows its forms"});
    }
  }
  return {};
}

Result<void> RefuseDroppingAll(const TrainingData& data, const SettingReader& reader) {
  const std::int64_t shortest = data.lengths.rows.front().length;
  if (!data.drops_longer || !data.limit || shortest <= *data.limit) {
    return {};
  }
  const SetValue* excess = reader.Find("excess-length");
  return WrongUsage(
      {.where = excess->where,
       .found = fmt::format("drop, and every sample is longer than {} tokens", *data.limit),
       .expected = fmt::format("expected --sequence-length {} or more", shortest)});
}

}  // namespace

std::string_view Name(Padding padding) {
  return kPaddings.at(static_cast<std::size_t>(padding));
}

Result<std::shared_ptr<const TrainingData>> ReadTrainingData(SettingReader& reader,
                                                             const Job& job) {
  const SetValue* file = reader.Find(kFile);
  if (file == nullptr) {
    TRY_VOID(RefuseWithoutFile(reader));
    return nullptr;
  }
  if (const auto& tokens = job.model.network.tokens_per_sample) {
    return WrongUsage(
        {.where = file->where,
         .found = fmt::format("every sample of {} has {} tokens", job.model.name, *tokens),
         .expected = "expected a model of sequences",
         .hint = "leave it out"});
  }
  auto data = std::make_shared<TrainingData>();
  data->file = file->text;
  data->is_packed = reader.Flag("packing");
  const SetValue* padding = reader.Find("padding");
  if (data->is_packed && padding != nullptr && padding->text != "none") {
    return WrongUsage(
        {.where = padding->where,
         .found = fmt::format("{} with --packing, which fills nothing up", padding->text),
         .expected = "expected one of the two"});
  }
  if (!data->is_packed) {
    TRY(const std::size_t kind, reader.Word("padding", kPaddings, 0));
    data->padding = static_cast<Padding>(kind);
  }
  TRY(const std::size_t excess, reader.Word("excess-length", kExcesses, 0));
  data->drops_longer = excess == 1;
  TRY(data->limit, reader.OptionalCount("sequence-length", kSizes));
  TRY(data->lengths, ReadSampleLengths(data->file));
  TRY_VOID(RefuseDroppingAll(*data, reader));
  return data;
}

SampleLengths KeptSamples(const TrainingData& data, std::int64_t limit) {
  const std::optional<SampleLengths> kept =
      data.drops_longer ? WithoutLonger(data.lengths, limit) : std::nullopt;
  return kept.value_or(data.lengths);
}

std::int64_t LongestKept(const TrainingData& data, std::int64_t limit) {
  if (!data.drops_longer) {
    return data.lengths.Longest();
  }
  const std::vector<LengthCount>& rows = data.lengths.rows;
  const auto longer = std::ranges::upper_bound(rows, limit, {}, &LengthCount::length);
  return longer == rows.begin() ? limit : std::prev(longer)->length;
}

std::vector<std::int64_t> MicroBatchLengths(const TrainingJob& training, std::size_t count) {
  if (!training.data || FillsLimit(*training.data) || training.first_step) {
    return {training.sequence_length};
  }
  std::vector<std::int64_t> lengths =
      LongestOfBatches(KeptSamples(*training.data, training.sequence_length),
                       training.sequence_length, training.micro_batch_size, count);
  for (std::int64_t& length : lengths) {
    length = std::min(InPieces(length, training.layout), training.sequence_length);
  }
  lengths.back() = training.sequence_length;
  return lengths;
}

void TakeSequenceLength(Job& job, const TrainingData* data) {
  if (data == nullptr) {
    return;
  }
  const std::int64_t longest = LongestKept(*data, data->limit.value_or(data->lengths.Longest()));
  std::int64_t length = data->limit.value_or(longest);
  std::string where(data->limit ? job.settings.find("sequence-length")->second.where : "");
  if (!data->limit || (!FillsLimit(*data) && longest < length)) {
    length = longest;
    where = job.settings.find(kFile)->second.where;
  }
  job.settings.insert_or_assign("sequence-length", SetValue{fmt::to_string(length), where});
}

}  // namespace fourpiles
