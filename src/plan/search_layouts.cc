#include "plan/search_layouts.h"

#include <algorithm>
#include <limits>
#include <memory>

#include <fmt/format.h>

#include "base/try.h"
#include "formats/storage.h"
#include "plan/layout_memory.h"
#include "plan/rank_state.h"
#include "plan/setting_reader.h"
#include "plan/surroundings.h"
#include "step/state.h"

namespace fourpiles {
namespace {

// A slower layout must save a hundredth of the device's memory.
constexpr std::int64_t kLeastSaving = 100;

// A size of tensor parallelism: the job padded for it, and its layouts.
struct TensorSize {
  Job job = {};
  std::unique_ptr<LayoutMemory> memory = {};
};

struct Candidate {
  LayoutChoice choice = {};
  std::size_t size = 0;  // which TensorSize
  StepTime time = {};
  double seconds_per_sample = 0;
  Bytes at_least = Bytes(0);
  Bytes around = Bytes(0);  // the least that is around its tensors
};

// Settings that ask for something else than a steady training step of one layout.
Result<void> RefuseOthers(const Settings& settings) {
  for (const char* const name : {"solve", "first-step", "evaluate", "rank", "host-memory"}) {
    if (const auto set = settings.find(name); set != settings.end()) {
      return WrongUsage({.where = set->second.where,
                         .found = "beside a search for layouts",
                         .expected = "expected it left out",
                         .hint = "\"fourpiles train\" takes it, with one of the layouts found"});
    }
  }
  return {};
}

Result<Settings> WithNodes(Settings settings, const std::optional<std::int64_t>& nodes) {
  if (!nodes) {
    return settings;
  }
  std::vector<Default> defaults;
  SettingReader reader(settings, defaults);
  TRY(const std::int64_t per_node,
      reader.Count("devices-per-host", Layout().per_host, kDeviceCounts));
  TRY(const std::optional<std::int64_t> devices, reader.OptionalCount("devices", kDeviceCounts));
  const std::int64_t all = *nodes * per_node;
  if (all > kDeviceCounts.most || (devices && *devices != all)) {
    return WrongUsage(
        {.where = "--nodes",
         .found = fmt::format("{} nodes of {} devices", *nodes, per_node),
         .expected = devices ? fmt::format("expected {} devices, as --devices says", *devices)
                             : fmt::format("expected at most {} devices", kDeviceCounts.most),
         .hint = "leave out --devices, or set --devices-per-host"});
  }
  settings.insert_or_assign("devices", SetValue{fmt::to_string(all), "--nodes"});
  return settings;
}

// Bytes that the optimizer reads and writes for a parameter: its states both ways, the gradient,
// and the weight, which it writes.
double StepBytes(const TrainingJob& training, const Network& network) {
  const std::int64_t trained = TrainableParameterCount(network);
  const auto states = OptimizerStorages(network, training.recipe, training.optimizer, ShardRanks());
  if (trained == 0 || !states) {
    return 0;
  }
  double bytes = 0;
  for (const Storage& storage : states->storages) {
    bytes += static_cast<double>(ExpectedBytes(storage).value());
  }
  const double ends =
      (StorageBits(training.recipe.gradients) + StorageBits(training.recipe.weights)) / 8.0;
  return 2 * bytes / static_cast<double>(trained) + ends;
}

class Search {
 public:
  Search(const PlanRequest& request, Job opened) : request_(request), opened_(std::move(opened)) {}

  Result<PlanAnswer> Run() {
    TRY_VOID(Read());
    TRY_VOID(AddSizes());
    TRY_VOID(AddCandidates());
    if (candidates_.empty() && excluded_.empty()) {
      return NoLayout();
    }
    TRY_VOID(TakeAll());
    MarkFront();
    if (answer_.plans.empty()) {
      TRY_VOID(FindClosest());
    }
    AddWarnings();
    CountPlays();
    return std::move(answer_);
  }

 private:
  Result<void> Read() {
    TRY_VOID(RefuseOthers(request_.settings));
    TRY(settings_, WithNodes(request_.settings, request_.nodes));
    TRY(fixed_, ReadFixedChoices(settings_));
    fixed_.samples = request_.samples;
    TRY(answer_.job, ReadJob(opened_, WithoutShape(settings_)));
    const Job& job = answer_.job;
    if (!job.device) {
      return WrongUsage({.where = "--device",
                         .found = "missing",
                         .expected = "expected a device to fit",
                         .hint = "a size such as 80GB will do"});
    }
    if (!fixed_.gradient_accumulation || fixed_.samples) {
      answer_.samples = fixed_.samples.value_or(job.devices);
    }
    answer_.reading = MachineOf(*job.device, job.training.recipe.compute, request_.rates);
    answer_.reading.machine.per_node = job.training.layout.per_host;
    step_bytes_ = StepBytes(job.training, job.model.network);
    model_flops_ = ModelFlops(job.model.network, 1, job.training.sequence_length);
    return {};
  }

  // Sizes that the heads or widths do not divide by are left out.
  Result<void> AddSizes() {
    for (const std::int64_t tensor : TensorSizes(fixed_, answer_.job.training.layout)) {
      SettingChanges changes = {{"tensor-parallel", fmt::to_string(tensor)}};
      const bool divides = answer_.job.training.sequence_length % tensor == 0;
      if (tensor > 1 && (divides || fixed_.sequence_parallel)) {
        changes.emplace_back("sequence-parallel", "true");
      }
      Result<Job> job = ReadJob(opened_, SettingsWith(answer_.job, changes));
      if (job) {
        sizes_.push_back({.job = std::move(*job)});
      } else if (fixed_.tensor) {
        return tl::unexpected<Error>(job.error());
      }
    }
    for (TensorSize& size : sizes_) {
      size.memory = std::make_unique<LayoutMemory>(size.job.model.network);
    }
    return {};
  }

  Result<void> AddCandidates() {
    for (std::size_t number = 0; number < sizes_.size(); ++number) {
      TensorSize& size = sizes_[number];
      const std::vector<LayoutChoice> choices = LayoutChoices(size.job, fixed_);
      candidates_.reserve(candidates_.size() + choices.size());
      for (const LayoutChoice& choice : choices) {
        Add(choice, number);
      }
    }
    std::ranges::stable_sort(candidates_, [](const Candidate& a, const Candidate& b) {
      return a.seconds_per_sample != b.seconds_per_sample
                 ? a.seconds_per_sample < b.seconds_per_sample
                 : a.at_least < b.at_least;
    });
    return {};
  }

  // What passes 2^53 bytes fits nothing.
  void Add(const LayoutChoice& choice, std::size_t number) {
    TensorSize& size = sizes_[number];
    TrainingJob& training = size.job.training;
    Choose(training, choice);
    Candidate candidate = {.choice = choice, .size = number};
    candidate.around = LibraryBytes(size.job) + DriverBand(size.job).expected;
    const Result<Bytes> least = size.memory->AtLeast(training);
    if (!least || *least + candidate.around > answer_.job.device->memory) {
      ++answer_.counts.state_too_large;
      candidate.at_least = least.value_or(Bytes(std::numeric_limits<std::int64_t>::max() / 2));
      excluded_.push_back(candidate);
      return;
    }
    candidate.at_least = *least;
    candidate.time =
        StepTimeOf(answer_.reading.machine, ShapeOf(training), size.memory->WorkOf(training));
    candidate.seconds_per_sample = Total(candidate.time) / static_cast<double>(SamplesOf(choice));
    candidates_.push_back(candidate);
  }

  StepShape ShapeOf(const TrainingJob& training) const {
    return {.layout = training.layout,
            .recompute = training.recompute,
            .micro_batch_size = training.micro_batch_size,
            .sequence_length = training.sequence_length,
            .micro_batches = training.gradient_accumulation,
            .compute_bytes = StorageBits(training.recipe.compute) / 8.0,
            .gradient_bytes = StorageBits(training.recipe.gradients) / 8.0,
            .step_bytes = step_bytes_};
  }

  // With the fault that the settings have as they stand, where they have one.
  Result<PlanAnswer> NoLayout() const {
    if (Result<Job> job = ReadJob(opened_, settings_); !job) {
      return tl::unexpected<Error>(job.error());
    }
    return WrongUsage(
        {.where = "--devices",
         .found = fmt::format("no layout of {} devices has these settings", answer_.job.devices),
         .expected = "expected settings that divide the devices, layers and samples",
         .hint = "leave one of them out, and the search finds its values"});
  }

  Result<void> TakeAll() {
    for (const Candidate& candidate : candidates_) {
      TRY_VOID(Take(candidate));
    }
    return {};
  }

  // Than every faster one that fits, to be worth its time.
  Bytes Least() const { return Bytes(answer_.job.device->memory.value() / kLeastSaving); }
  bool SavesEnough(Bytes total) const { return total + Least() <= smallest_; }
  bool TakesAny() const { return others_ < request_.others; }
  bool IsWorse(Bytes total) const { return !TakesAny() && !SavesEnough(total); }

  // From the fastest on: what is not smaller than a faster one is of no use.
  Result<void> Take(const Candidate& candidate) {
    const Bytes memory = answer_.job.device->memory;
    const Bytes around = candidate.around;
    if (IsWorse(candidate.at_least + around)) {
      ++answer_.counts.worse;
      return {};
    }
    TensorSize& size = sizes_[candidate.size];
    Choose(size.job.training, candidate.choice);
    const Bytes limit = (TakesAny() ? memory : std::min(memory, smallest_ - Least())) - around;
    const auto fullest = size.memory->PeakOf(size.job.training, limit, memory - around);
    if (!fullest || fullest->peak + around > memory) {
      ++answer_.counts.too_large;
      return {};
    }
    if (IsWorse(fullest->peak + around)) {
      ++answer_.counts.worse;
      return {};
    }
    // Free segments that another stream has do not serve, until the memory ends.
    const Bytes reserved = fullest->streams + around;
    if (KnowsSurroundings(size.job) && reserved <= memory && IsWorse(reserved)) {
      ++answer_.counts.worse;
      return {};
    }
    return AddPlan(candidate, *fullest);
  }

  Result<void> AddPlan(const Candidate& candidate, const LayoutMemory::Fullest& fullest) {
    TRY(LayoutPlan plan, PlanOf(candidate, fullest));
    if (IsWorse(plan.total.expected)) {
      ++answer_.counts.worse;
      return {};
    }
    if (plan.verdict == Fit::kDoesNotFit) {
      ++answer_.counts.too_large;
      return {};
    }
    plan.on_front = SavesEnough(plan.total.expected);
    ++answer_.counts.fit;
    if (plan.on_front || TakesAny()) {
      others_ += plan.on_front ? 0 : 1;
      smallest_ = plan.on_front ? plan.total.expected : smallest_;
      answer_.plans.push_back(std::move(plan));
    }
    return {};
  }

  Result<LayoutPlan> PlanOf(const Candidate& candidate, const LayoutMemory::Fullest& fullest) {
    const SettingChanges changes = ChangesOf(candidate.choice, answer_.job);
    TRY(Job job, ReadJob(opened_, SettingsWith(answer_.job, changes)));
    LayoutPlan plan = {.job = std::move(job),
                       .command = CommandWith(answer_.job, changes),
                       .samples = SamplesOf(candidate.choice),
                       .peak = fullest.peak,
                       .time = candidate.time};
    TRY(plan.total, TotalOf(plan.job, fullest, *sizes_[candidate.size].memory));
    plan.headroom = plan.job.device->memory - plan.total.expected;
    plan.verdict = FitOf(plan.total, plan.job.device->memory);
    plan.seconds = Total(candidate.time);
    plan.utilization =
        model_flops_ * static_cast<double>(plan.samples) /
        (static_cast<double>(plan.job.devices) * plan.seconds * answer_.reading.machine.peak_flops);
    return plan;
  }

  // Where it is too much to be on the front, and others are not asked for, not how much more.
  Result<Band> TotalOf(const Job& job, const LayoutMemory::Fullest& fullest, LayoutMemory& memory) {
    if (!KnowsSurroundings(job)) {
      return Exactly(fullest.peak);
    }
    if (job.training.data) {  // steps may differ in length
      TRY(const Budget budget, PlayedBudget(job));
      return budget.total;
    }
    TRY(const Part part,
        PartOfStage(job.training, memory.StageOf(job.training.layout, fullest.stage),
                    LayersPlayed::kEach));
    TRY(const Tape whole, Play(part, job.training.profile));
    const AllocatorRun run = AllocatorRunOn(job, whole);
    const auto enough = TakesAny() ? std::nullopt : std::optional(smallest_ - Least());
    return WithSurroundings(fullest.peak,
                            SurroundingStorages(job, std::span(&run, 1), fullest.peak, enough));
  }

  // Of two that take as long, the smaller may have come second.
  void MarkFront() {
    for (LayoutPlan& plan : answer_.plans) {
      const double own = plan.seconds / static_cast<double>(plan.samples);
      plan.on_front =
          plan.on_front && std::ranges::none_of(answer_.plans, [&](const LayoutPlan& other) {
            const double seconds = other.seconds / static_cast<double>(other.samples);
            const bool better = seconds < own || other.total.expected < plan.total.expected;
            return better && seconds <= own && other.total.expected <= plan.total.expected;
          });
    }
    std::int64_t others = 0;
    std::erase_if(answer_.plans, [&](const LayoutPlan& plan) {
      return !plan.on_front && others++ >= request_.others;
    });
  }

  Result<void> FindClosest() {
    std::vector<Candidate> all = std::move(excluded_);
    all.insert(all.end(), candidates_.begin(), candidates_.end());
    std::ranges::stable_sort(all, {}, &Candidate::at_least);
    Bytes least(std::numeric_limits<std::int64_t>::max());
    const Candidate* closest = nullptr;
    for (const Candidate& candidate : all) {
      if (candidate.at_least >= least) {
        break;
      }
      TensorSize& size = sizes_[candidate.size];
      Choose(size.job.training, candidate.choice);
      const auto fullest = size.memory->PeakOf(size.job.training, least, least);
      if (fullest && fullest->peak < least) {
        least = fullest->peak;
        closest = &candidate;
      }
    }
    if (closest == nullptr && all.empty()) {
      return {};
    }
    // Where none can be played, the first says why.
    closest = closest == nullptr ? &all.front() : closest;
    const SettingChanges changes = ChangesOf(closest->choice, answer_.job);
    TRY(const Job job, ReadJob(opened_, SettingsWith(answer_.job, changes)));
    TRY(answer_.closest, PlayedBudget(job));
    answer_.closest_command = CommandWith(answer_.job, changes);
    return {};
  }

  // Of the fastest, or the closest.
  void AddWarnings() {
    const bool any = !answer_.plans.empty() || answer_.closest;
    const Job& closest = answer_.closest ? answer_.closest->job : answer_.job;
    const Job& shown = answer_.plans.empty() ? closest : answer_.plans.front().job;
    if (any) {
      answer_.warnings = WarningsOf(shown);
    }
    if (!answer_.reading.is_known) {
      answer_.warnings.push_back(
          fmt::format("how fast {} is in {} is not known: layouts are ranked by the speeds of an "
                      "H100 SXM, and seconds are left out",
                      answer_.job.device->name, answer_.job.training.recipe.compute.name));
    }
  }

  void CountPlays() {
    for (const TensorSize& size : sizes_) {
      answer_.counts.plays += size.memory->Plays();
    }
  }

  const PlanRequest& request_;
  Job opened_;
  Settings settings_ = {};
  FixedChoices fixed_ = {};
  std::vector<TensorSize> sizes_ = {};
  std::vector<Candidate> candidates_ = {};
  std::vector<Candidate> excluded_ = {};
  PlanAnswer answer_ = {};
  std::int64_t others_ = 0;
  double step_bytes_ = 0;
  double model_flops_ = 0;                                                // of a sample
  Bytes smallest_ = Bytes(std::numeric_limits<std::int64_t>::max() / 2);  // total of those that fit
};

}  // namespace

std::int64_t Tried(const SearchCounts& counts) {
  return counts.state_too_large + counts.too_large + counts.worse + counts.fit;
}

Result<PlanAnswer> SearchLayouts(const PlanRequest& request) {
  TRY_VOID(RefuseUnbuilt(request.settings, JobKind::kTrain));
  TRY(Job opened, OpenJob(JobKind::kTrain, request.model, request.settings));
  return Search(request, std::move(opened)).Run();
}

}  // namespace fourpiles
