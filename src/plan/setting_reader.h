#pragma once

// Reads settings one after another, and notes the defaults it had to use.

#include <optional>
#include <string_view>
#include <vector>

#include "base/json_fields.h"
#include "base/range.h"
#include "plan/job.h"

namespace fourpiles {

inline constexpr Range kSizes = {1, std::int64_t{1} << 40};
inline constexpr Range kDeviceCounts = {1, 1'000'000};
inline constexpr Range kRanks = {1, 1 << 20};
inline constexpr Range kStages = {1, 1 << 12};
inline constexpr Range kStageLayers = {0, 1 << 12};
// Where the model does not say how long its longest sequence is.
inline constexpr std::int64_t kDefaultSequenceLength = 2048;

class SettingReader {
 public:
  SettingReader(const Settings& settings, std::vector<Default>& defaults)
      : settings_(settings), defaults_(defaults) {}

  const SetValue* Find(std::string_view name) const;
  Result<std::optional<std::int64_t>> OptionalCount(std::string_view name, Range range) const;
  Result<std::int64_t> Count(std::string_view name, std::int64_t otherwise, Range range);
  Result<std::optional<double>> OptionalNumber(std::string_view name, NumberRange range) const;
  bool Flag(std::string_view name) const { return Find(name) != nullptr; }
  Result<NumberFormat> Format(std::string_view name, const NumberFormat& otherwise);
  // The name that was set, and where; or the default.
  SetValue Text(std::string_view name, std::string_view otherwise);
  // One of these words; their number. Error: another one, with the nearest.
  Result<std::size_t> Word(std::string_view name, std::span<const std::string_view> words,
                           std::size_t otherwise);
  void NoteDefault(std::string_view name, std::string_view value);

 private:
  const Settings& settings_;
  std::vector<Default>& defaults_;
};

// The settings of training. The job's kind, model and devices are set already.
Result<TrainingJob> ReadTraining(SettingReader& reader, const Job& job);

// The settings of a layout over devices, checked. The job's model and devices are set already.
Result<Layout> ReadLayout(SettingReader& reader, const Job& job);
Result<PipelineSchedule> ReadSchedule(SettingReader& reader);
// The number of the rank that is shown; nothing: the worst.
Result<std::optional<std::int64_t>> ReadRank(const SettingReader& reader, const Layout& layout);

// The settings of serving. The job's model and device are set already.
Result<ServingJob> ReadServing(SettingReader& reader, const Job& job);

}  // namespace fourpiles
