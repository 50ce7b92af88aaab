// The settings of a layout over devices.

#include <array>

#include <fmt/format.h>

#include "base/try.h"
#include "plan/setting_reader.h"
#include "units/parse.h"

namespace fourpiles {
namespace {

constexpr NumberRange kImbalances = {0, 1 << 12};

// "full" or "hybrid:N", and behind it ":keep", ":always" or nothing.
Result<void> ReadFsdp(const SettingReader& reader, Layout& layout) {
  const SetValue* set = reader.Find("fsdp");
  if (set == nullptr) {
    return {};
  }
  constexpr std::string_view kKeep = ":keep";
  constexpr std::string_view kAlways = ":always";
  constexpr std::string_view kHybrid = "hybrid:";
  std::string_view text = set->text;
  layout.fsdp = true;
  layout.reshards = !text.ends_with(kKeep);
  layout.reshards_all = text.ends_with(kAlways);
  text.remove_suffix(!layout.reshards ? kKeep.size() : layout.reshards_all ? kAlways.size() : 0);
  layout.fsdp_ranks = DataRanks(layout);
  if (text == "full") {
    return {};
  }
  if (!text.starts_with(kHybrid)) {
    return WrongUsage(
        {.where = set->where,
         .found = fmt::format("unknown word \"{}\"", set->text),
         .expected = "expected full or hybrid:N, and :keep or :always behind it or not",
         .hint = "hybrid:8 shards over 8 devices and repeats that; :keep keeps what "
                 "was gathered from the forward to the backward pass, :always lets "
                 "go of the last layer's too"});
  }
  TRY(layout.fsdp_ranks, ParseCount(text.substr(kHybrid.size()), set->where, kRanks));
  return {};
}

Result<void> ReadPipeline(SettingReader& reader, Layout& layout) {
  layout.pipeline = 1;
  TRY(const auto stages, reader.OptionalCount("pipeline-parallel", kStages));
  layout.pipeline = stages.value_or(1);
  TRY(const auto chunks, reader.OptionalCount("virtual-pipeline", kStages));
  layout.chunks = chunks.value_or(1);
  TRY(layout.first_stage_layers, reader.OptionalCount("first-stage-layers", kStageLayers));
  TRY(layout.last_stage_layers, reader.OptionalCount("last-stage-layers", kStageLayers));
  if (layout.pipeline == 1) {
    for (const char* const name :
         {"pipeline-schedule", "first-stage-layers", "last-stage-layers"}) {
      if (const SetValue* set = reader.Find(name)) {
        return WrongUsage({.where = set->where,
                           .found = "no pipeline",
                           .expected = "expected --pipeline-parallel",
                           .hint = "leave it out, or give a pipeline"});
      }
    }
    return {};
  }
  TRY(layout.schedule, ReadSchedule(reader));
  if (layout.chunks > 1 && layout.schedule != PipelineSchedule::kOneForwardOneBackward) {
    return WrongUsage({.where = reader.Find("virtual-pipeline")->where,
                       .found = fmt::format("chunks of layers beside {}", Name(layout.schedule)),
                       .expected = "expected --pipeline-schedule 1f1b",
                       .hint = "chunks are interleaved by 1F1B alone"});
  }
  return {};
}

Result<void> ReadExperts(const SettingReader& reader, Layout& layout) {
  TRY(const auto expert, reader.OptionalCount("expert-parallel", kRanks));
  layout.expert = expert.value_or(1);
  TRY(const auto cut, reader.OptionalCount("expert-tensor-parallel", kRanks));
  layout.expert_tensor = cut.value_or(layout.tensor);
  TRY(const auto imbalance, reader.OptionalNumber("expert-imbalance", kImbalances));
  layout.expert_imbalance = imbalance.value_or(1);
  if (imbalance && (*imbalance < 1 || *imbalance > static_cast<double>(layout.expert))) {
    return WrongUsage(
        {.where = reader.Find("expert-imbalance")->where,
         .found = fmt::format("{} times the even share of {} device{}", *imbalance, layout.expert,
                              layout.expert == 1 ? "" : "s"),
         .expected = fmt::format("expected 1 to {}", layout.expert),
         .hint = "--expert-parallel spreads the experts; the fullest device has an even share of "
                 "the tokens at the least, and all at the most"});
  }
  return {};
}

}  // namespace

Result<PipelineSchedule> ReadSchedule(SettingReader& reader) {
  const std::array<std::string_view, 3> words = {Name(PipelineSchedule::kOneForwardOneBackward),
                                                 Name(PipelineSchedule::kGPipe),
                                                 Name(PipelineSchedule::kZeroBubble)};
  TRY(const std::size_t word, reader.Word("pipeline-schedule", words, 0));
  return static_cast<PipelineSchedule>(word);
}

Result<Layout> ReadLayout(SettingReader& reader, const Job& job) {
  Layout layout = {.devices = job.devices};
  TRY(const auto tensor, reader.OptionalCount("tensor-parallel", kRanks));
  layout.tensor = tensor.value_or(1);
  layout.sequence_parallel = reader.Flag("sequence-parallel") && layout.tensor > 1;
  TRY(const auto context, reader.OptionalCount("context-parallel", kRanks));
  layout.context = context.value_or(1);
  TRY_VOID(ReadPipeline(reader, layout));
  TRY_VOID(ReadExperts(reader, layout));
  if (const std::int64_t least = DevicesOfOneReplica(layout);
      reader.Find("devices") == nullptr && least > 1) {
    layout.devices = least;
  }
  TRY(const std::int64_t zero, reader.Count("zero", 0, {0, 3}));
  layout.zero = static_cast<int>(zero);
  TRY_VOID(ReadFsdp(reader, layout));
  TRY(const auto per_host, reader.OptionalCount("devices-per-host", kRanks));
  layout.per_host = per_host.value_or(layout.per_host);
  TRY_VOID(CheckLayout(layout, job.model.network));
  return layout;
}

Result<std::optional<std::int64_t>> ReadRank(const SettingReader& reader, const Layout& layout) {
  const SetValue* set = reader.Find("rank");
  if (set == nullptr || set->text == "worst") {
    return std::nullopt;
  }
  if (set->text == "first") {
    return 0;
  }
  if (set->text == "last") {
    return layout.devices - 1;
  }
  if (set->text.find_first_not_of("0123456789") == std::string::npos) {
    TRY(const std::int64_t rank, ParseCount(set->text, set->where, {0, layout.devices - 1}));
    return rank;
  }
  return WrongUsage(
      {.where = set->where,
       .found = fmt::format("unknown word \"{}\"", set->text),
       .expected = fmt::format("expected worst, first, last or 0 to {}", layout.devices - 1),
       .hint = "a stage of a pipeline has devices ÷ stages ranks, one after the other"});
}

}  // namespace fourpiles
