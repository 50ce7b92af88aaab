#include "plan/layout_choices.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/checked.h"
#include "base/try.h"
#include "plan/change_command.h"
#include "plan/rank_network.h"
#include "plan/setting_reader.h"

namespace fourpiles {
namespace {

// Of a sequence that is cut, a rank keeps no fewer: products of fewer tokens leave a device idle.
constexpr std::int64_t kFewestTokens = 1024;

// Those that the job has no word for before its layout is chosen.
constexpr std::string_view kShape[] = {
    "tensor-parallel",  "sequence-parallel",      "context-parallel",     "pipeline-parallel",
    "virtual-pipeline", "pipeline-schedule",      "first-stage-layers",   "last-stage-layers",
    "expert-parallel",  "expert-tensor-parallel", "gradient-accumulation"};

std::vector<std::int64_t> PowersOfTwo(std::int64_t most) {
  std::vector<std::int64_t> powers;
  for (std::int64_t power = 1; power <= most; power *= 2) {
    powers.push_back(power);
  }
  return powers;
}

std::vector<std::int64_t> OneOr(const std::optional<std::int64_t>& fixed,
                                std::vector<std::int64_t> otherwise) {
  return fixed ? std::vector<std::int64_t>{*fixed} : std::move(otherwise);
}

class Chooser {
 public:
  Chooser(const Job& job, const FixedChoices& fixed)
      : job_(job), training_(job.training), fixed_(fixed) {
    base_ = training_.layout;
    base_.context = 1;
    base_.pipeline = 1;
    base_.chunks = 1;
    base_.expert = 1;
    layers_ = job.model.network.num_hidden_layers.value_or(0);
    experts_ = ExpertsOf(job.model.network);
  }

  std::vector<LayoutChoice> All() {
    for (const std::int64_t context :
         OneOr(fixed_.context,
               PowersOfTwo(std::max<std::int64_t>(1, training_.sequence_length / kFewestTokens)))) {
      if (TokensDivide(context)) {
        base_.context = context;
        AddPipelines();
      }
    }
    return std::move(choices_);
  }

 private:
  // As ReadTraining asks for.
  bool TokensDivide(std::int64_t context) const {
    Layout layout = base_;
    layout.context = context;
    return training_.sequence_length % TokenPieces(layout) == 0;
  }

  void AddPipelines() {
    const std::int64_t ranks = base_.tensor * base_.context;
    if (base_.devices % ranks != 0) {
      return;
    }
    const std::int64_t most = std::max<std::int64_t>(1, layers_ + 2);
    for (std::int64_t stages = 1; stages <= std::min(most, base_.devices / ranks); ++stages) {
      const bool asked = !fixed_.pipeline || *fixed_.pipeline == stages;
      const bool staged = fixed_.schedule || fixed_.first_stage_layers || fixed_.last_stage_layers;
      if (asked && base_.devices / ranks % stages == 0 && (stages > 1 || !staged)) {
        AddChunks(stages);
      }
    }
  }

  void AddChunks(std::int64_t stages) {
    Layout layout = base_;
    layout.pipeline = stages;
    layout.schedule = fixed_.schedule.value_or(layout.schedule);
    layout.first_stage_layers = fixed_.first_stage_layers;
    layout.last_stage_layers = fixed_.last_stage_layers;
    const std::int64_t most = stages == 1 ? 1 : (layers_ + stages - 1) / stages + 1;
    for (std::int64_t chunks = 1; chunks <= most; ++chunks) {
      const bool asked = !fixed_.chunks || *fixed_.chunks == chunks;
      const bool interleaved = chunks > 1;
      layout.chunks = chunks;
      if (!asked || (interleaved && layout.schedule != PipelineSchedule::kOneForwardOneBackward) ||
          (stages > 1 && StageLayers(layout, layers_).empty())) {
        continue;
      }
      AddExperts(layout);
    }
  }

  void AddExperts(Layout layout) {
    const std::vector<std::int64_t> cuts = experts_ > 0 && layout.tensor > 1
                                               ? std::vector<std::int64_t>{layout.tensor, 1}
                                               : std::vector<std::int64_t>{layout.tensor};
    for (const std::int64_t cut : OneOr(fixed_.expert_tensor, cuts)) {
      for (const std::int64_t expert :
           OneOr(fixed_.expert, PowersOfTwo(std::max<std::int64_t>(1, experts_)))) {
        layout.expert_tensor = cut;
        layout.expert = expert;
        const std::int64_t ranks = layout.devices / layout.pipeline;
        const bool divides =
            ranks % (expert * cut) == 0 && (experts_ == 0 ? expert == 1 : experts_ % expert == 0);
        if (divides && CheckLayout(layout, job_.model.network)) {
          AddShardings(layout);
        }
      }
    }
  }

  void AddShardings(const Layout& layout) {
    for (const Layout& sharded : Shardings(layout)) {
      AddBatches(sharded);
    }
  }

  // The one that was asked for, where it goes with the rest.
  std::vector<Layout> GivenSharding(Layout layout) const {
    const bool is_hybrid = layout.fsdp && layout.fsdp_ranks < DataRanks(training_.layout);
    layout.fsdp_ranks = is_hybrid ? layout.fsdp_ranks : DataRanks(layout);
    const bool goes = DataRanks(layout) % layout.fsdp_ranks == 0;
    const bool known = layout.zero < 2 || layout.pipeline == 1;
    return goes && known ? std::vector<Layout>{layout} : std::vector<Layout>();
  }

  // Beside a pipeline DeepSpeed shards the states alone.
  static int MostZero(const Layout& layout) {
    const int most = layout.pipeline == 1 ? 3 : 1;
    return DataRanks(layout) == 1 ? 0 : most;
  }

  std::vector<Layout> Shardings(Layout layout) const {
    if (fixed_.sharding) {
      return GivenSharding(layout);
    }
    std::vector<Layout> all;
    const std::int64_t ranks = DataRanks(layout);
    for (int zero = 0; zero <= MostZero(layout); ++zero) {
      layout.zero = zero;
      all.push_back(layout);
    }
    layout.zero = 0;
    layout.fsdp = true;
    const std::int64_t in_node = layout.per_host / layout.tensor;
    for (const std::int64_t shards : {ranks, in_node}) {
      if (shards > 1 && (shards == ranks || (shards < ranks && ranks % shards == 0))) {
        layout.fsdp_ranks = shards;
        all.push_back(layout);
      }
    }
    return all;
  }

  void AddBatches(const Layout& layout) {
    const std::int64_t replicas = DataParallel(layout);
    if (fixed_.gradient_accumulation) {
      for (const std::int64_t size : OneOr(fixed_.micro_batch_size, PowersOfTwo(kMostSamples))) {
        const Checked samples = Checked(replicas) * size * *fixed_.gradient_accumulation;
        if (samples.ok() && (!fixed_.samples || *fixed_.samples == samples.value())) {
          AddRecomputations(layout, size, *fixed_.gradient_accumulation);
        }
      }
      return;
    }
    const std::int64_t samples = fixed_.samples.value_or(layout.devices);
    if (samples % replicas != 0) {
      return;
    }
    const std::int64_t own = samples / replicas;
    for (const std::int64_t size : OneOr(fixed_.micro_batch_size, PowersOfTwo(own))) {
      if (own % size == 0) {
        AddRecomputations(layout, size, own / size);
      }
    }
  }

  bool IsPossible(const Layout& layout, std::int64_t micro_batches) const {
    const bool in_groups = layout.chunks == 1 || micro_batches % layout.pipeline == 0;
    const bool steps_alone =
        micro_batches == 1 && layout.zero == 0 && !layout.fsdp;  // as settings are checked
    return in_groups && (training_.step_kernels != StepKernels::kInBackward || steps_alone);
  }

  void AddRecomputations(const Layout& layout, std::int64_t size, std::int64_t micro_batches) {
    if (!IsPossible(layout, micro_batches)) {
      return;
    }
    const bool runs_again = !training_.lower_bound && !training_.profile.allocates_once;
    LayoutChoice choice = {.layout = layout,
                           .micro_batch_size = size,
                           .gradient_accumulation = micro_batches,
                           .recompute = training_.recompute};
    if (fixed_.recompute || !runs_again) {
      choices_.push_back(choice);
      return;
    }
    for (const RecomputeKind kind :
         {RecomputeKind::kNone, RecomputeKind::kAttention, RecomputeKind::kLayers}) {
      choice.recompute.kind = kind;
      choices_.push_back(choice);
    }
  }

  // Of a micro-batch, where no number of samples a step bounds it.
  static constexpr std::int64_t kMostSamples = 256;

  const Job& job_;
  const TrainingJob& training_;
  const FixedChoices& fixed_;
  Layout base_ = {};
  std::int64_t layers_ = 0;
  std::int64_t experts_ = 0;
  std::vector<LayoutChoice> choices_ = {};
};

}  // namespace

Result<FixedChoices> ReadFixedChoices(const Settings& settings) {
  std::vector<Default> defaults;
  SettingReader reader(settings, defaults);
  FixedChoices fixed;
  TRY(fixed.tensor, reader.OptionalCount("tensor-parallel", kRanks));
  fixed.sequence_parallel = reader.Flag("sequence-parallel");
  TRY(fixed.context, reader.OptionalCount("context-parallel", kRanks));
  TRY(fixed.pipeline, reader.OptionalCount("pipeline-parallel", kStages));
  TRY(fixed.chunks, reader.OptionalCount("virtual-pipeline", kStages));
  TRY(fixed.first_stage_layers, reader.OptionalCount("first-stage-layers", kStageLayers));
  TRY(fixed.last_stage_layers, reader.OptionalCount("last-stage-layers", kStageLayers));
  TRY(fixed.expert, reader.OptionalCount("expert-parallel", kRanks));
  TRY(fixed.expert_tensor, reader.OptionalCount("expert-tensor-parallel", kRanks));
  TRY(fixed.micro_batch_size, reader.OptionalCount("micro-batch-size", kSizes));
  TRY(fixed.gradient_accumulation, reader.OptionalCount("gradient-accumulation", kSizes));
  fixed.sharding = reader.Flag("zero") || reader.Flag("fsdp");
  fixed.recompute = reader.Flag("recompute");
  if (reader.Flag("pipeline-schedule")) {
    TRY(fixed.schedule, ReadSchedule(reader));
  }
  return fixed;
}

Settings WithoutShape(const Settings& settings) {
  Settings rest = settings;
  for (const std::string_view name : kShape) {
    if (const auto found = rest.find(name); found != rest.end()) {
      rest.erase(found);
    }
  }
  return rest;
}

std::vector<LayoutChoice> LayoutChoices(const Job& job, const FixedChoices& fixed) {
  return Chooser(job, fixed).All();
}

void Choose(TrainingJob& training, const LayoutChoice& choice) {
  training.layout = choice.layout;
  training.micro_batch_size = choice.micro_batch_size;
  training.gradient_accumulation = choice.gradient_accumulation;
  training.recompute = choice.recompute;
}

SettingChanges ChangesOf(const LayoutChoice& choice, const Job& job) {
  const Layout& layout = choice.layout;
  SettingChanges changes;
  const auto add = [&](const char* name, std::int64_t value, std::int64_t usual) {
    if (value != usual) {
      changes.emplace_back(name, fmt::to_string(value));
    }
  };
  add("devices", layout.devices, 1);
  add("tensor-parallel", layout.tensor, 1);
  if (layout.sequence_parallel) {
    changes.emplace_back("sequence-parallel", "true");
  }
  add("context-parallel", layout.context, 1);
  add("pipeline-parallel", layout.pipeline, 1);
  add("virtual-pipeline", layout.chunks, 1);
  if (layout.schedule != PipelineSchedule::kOneForwardOneBackward) {
    changes.emplace_back("pipeline-schedule", Name(layout.schedule));
  }
  add("first-stage-layers", layout.first_stage_layers.value_or(-1), -1);
  add("last-stage-layers", layout.last_stage_layers.value_or(-1), -1);
  add("expert-parallel", layout.expert, 1);
  if (ExpertsOf(job.model.network) > 0) {
    add("expert-tensor-parallel", layout.expert_tensor, layout.tensor);
  }
  if (layout.fsdp) {
    changes.emplace_back("fsdp", FsdpWord(layout));
  }
  add("zero", layout.zero, 0);
  changes.emplace_back("micro-batch-size", fmt::to_string(choice.micro_batch_size));
  add("gradient-accumulation", choice.gradient_accumulation,
      layout.pipeline > 1 ? 2 * layout.pipeline : 1);
  if (const std::string word = RecomputeWord(choice.recompute); word != "none") {
    changes.emplace_back("recompute", word);
  }
  return changes;
}

std::int64_t SamplesOf(const LayoutChoice& choice) {
  return DataParallel(choice.layout) * choice.micro_batch_size * choice.gradient_accumulation;
}

std::string ShardingWord(const Layout& layout) {
  if (layout.fsdp) {
    const bool is_hybrid = layout.fsdp_ranks < DataRanks(layout);
    return is_hybrid ? fmt::format("hybrid:{}", layout.fsdp_ranks) : "fsdp full";
  }
  return layout.zero == 0 ? "" : fmt::format("zero {}", layout.zero);
}

std::vector<std::int64_t> TensorSizes(const FixedChoices& fixed, const Layout& layout) {
  return OneOr(fixed.tensor, PowersOfTwo(std::min(layout.per_host, layout.devices)));
}

}  // namespace fourpiles
