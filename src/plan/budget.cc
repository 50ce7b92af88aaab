#include "plan/budget.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/check.h"
#include "base/checked.h"
#include "base/try.h"
#include "plan/rank_state.h"
#include "plan/split.h"
#include "plan/surroundings.h"
#include "plan/training_data.h"

namespace fourpiles {
namespace {

Bytes Sum(const Resident& resident) {
  Bytes sum(0);
  for (const Storage& storage : resident.storages) {
    sum += storage.bytes.expected;
  }
  return sum;
}

TrainingJob OnOneDevice(TrainingJob training) {
  training.layout = {};
  return training;
}

// Layouts whose settings do not do what they seem to ask for.
void WarnOfLayout(const Job& job, std::vector<std::string>& warnings) {
  const Layout& layout = job.training.layout;
  if (layout.zero == 0 && !layout.fsdp && layout.expert == 1 &&
      DataRanks(layout) == layout.devices && layout.devices > 1) {
    warnings.emplace_back("the devices share nothing without --zero 1, 2 or 3, or --fsdp");
  }
  if (job.settings.contains("sequence-parallel") && layout.tensor == 1) {
    warnings.emplace_back("--sequence-parallel changes nothing without --tensor-parallel");
  }
}

// Settings of the step that a lower bound does not look at, or an exact play.
void WarnOfUnused(const Job& job, std::vector<std::string>& warnings) {
  const std::vector<std::string_view> unused =
      job.training.lower_bound
          ? std::vector<std::string_view>{"attention", "loss", "recompute", "implementation",
                                          "optimizer-kernels"}
          : std::vector<std::string_view>{"activation-format"};
  for (const std::string_view name : unused) {
    const bool steps_in_backward =
        name == "optimizer-kernels" && job.training.step_kernels == StepKernels::kInBackward;
    if (job.settings.find(name) != job.settings.end() && !steps_in_backward) {
      warnings.push_back(fmt::format("--{} changes nothing where activations are {}", name,
                                     job.training.lower_bound ? "a lower bound" : "exact"));
    }
  }
  if (job.bare_count && NeedsShapes(job.training.optimizer)) {
    warnings.push_back(job.training.optimizer.names.id +
                       " keeps other states for matrices than for vectors, and a bare parameter "
                       "count says nothing of shapes: it is counted as one vector");
  }
  if (job.training.expandable_segments && !KnowsSurroundings(job)) {
    warnings.emplace_back(
        "--expandable-segments changes nothing without a device of NVIDIA's by its name");
  }
}

std::string UnknownShapes(const Job& job) {
  const bool serving = job.kind == JobKind::kServe;
  if (job.from_file) {
    return serving ? "tensors without a config.json say nothing of the KV cache"
                   : "activations are not known: tensors without a config.json do not say what "
                     "the layers compute";
  }
  return serving ? "a bare parameter count says nothing of the KV cache"
                 : "activations are not known: a bare parameter count needs --layers and --width";
}

std::vector<std::string> UnknownsOf(const Job& job) {
  std::vector<std::string> unknowns;
  if (ShapesAreKnown(job) && job.training.lower_bound) {
    unknowns.emplace_back(
        "activations are a lower bound, one output a layer: no inputs, activation gradients, "
        "logits or workspace");
  }
  if (!ShapesAreKnown(job)) {
    unknowns.emplace_back(job.from_file
                              ? "activations, which tensors alone do not tell"
                              : "activations, which a bare parameter count does not tell");
  }
  if (KnowsSurroundings(job)) {
    unknowns.emplace_back("what libraries other than cuBLAS work in, communication buffers");
  } else {
    unknowns.emplace_back("the allocator's rounding, the driver's context, communication buffers");
  }
  return unknowns;
}

// Of a file whose config names its format. An adapter is not in that file.
Result<std::optional<Budget::FileShare>> FileShareOf(const Job& job) {
  const Network& network = job.model.network;
  if (!job.from_file || job.training.adapter || job.training.evaluates) {
    return std::nullopt;
  }
  Budget::FileShare share;
  if (const auto& checkpoint = job.model.checkpoint; checkpoint && checkpoint->bytes > 0) {
    share = {.weights = Bytes(checkpoint->bytes), .format = checkpoint->formats.front().name};
  } else if (network.stored_format && network.quantization.empty()) {
    TRY(const Resident weights, WeightStorages(network, *network.stored_format));
    share = {.weights = Sum(weights), .format = std::string(network.stored_format->name)};
  } else {
    return std::nullopt;
  }
  TRY(const Bytes state, StateBytes(OnOneDevice(job.training), network));
  share.times = static_cast<double>(state.value()) / static_cast<double>(share.weights.value());
  return share;
}

void AddResident(Tape& tape, const Resident& resident) {
  Resident all = {.storages = std::move(tape.storages), .texts = *tape.texts};
  for (std::size_t i = 0; i < resident.storages.size(); ++i) {
    all.Add(resident.storages[i], resident.texts[i]);
  }
  tape.storages = std::move(all.storages);
  tape.texts = std::make_shared<const std::vector<StorageText>>(std::move(all.texts));
}

// One kind of rank, played.
struct PlayedRank {
  std::string rank = {};
  std::int64_t ranks = 1;
  Tape tape = {};
  Peak peak = {};
};

// Of how many lengths steps are replayed, where they differ: with more of them somewhat more is
// reserved, which takes longer to find. Fewer where a step asks for very much.
constexpr std::size_t kMostLengths = 24;
constexpr std::size_t kFewestLengths = 4;
constexpr std::size_t kMostEvents = 1'000'000;  // of steps of all lengths

// What a step asks the allocator for, or steps of each length that micro-batches have; those of one
// step are alike here.
Result<std::vector<AllocatorRun>> AllocatorRuns(const Job& job, std::string_view rank) {
  TRY(const Tape longest, PlayWhole(job, rank));
  AllocatorRun last = AllocatorRunOn(job, longest);
  std::vector<AllocatorRun> runs;
  if (!job.training.profile.allocates_once) {
    const std::size_t events = std::max<std::size_t>(1, last.step.size());
    const std::vector<std::int64_t> lengths = MicroBatchLengths(
        job.training, std::clamp(kMostEvents / events, kFewestLengths, kMostLengths));
    runs.reserve(lengths.size());
    Job step = job;
    for (std::size_t i = 0; i + 1 < lengths.size(); ++i) {
      step.training.sequence_length = lengths[i];
      TRY(const Tape whole, PlayWhole(step, rank));
      runs.push_back(AllocatorRunOn(job, whole));
    }
  }
  runs.push_back(std::move(last));
  return runs;
}

// Puts what is around the tensors on the tape; the total with it.
Result<Band> AddSurroundings(const Job& job, PlayedRank& rank) {
  if (!KnowsSurroundings(job)) {
    return Exactly(rank.peak.bytes);
  }
  TRY(const std::vector<AllocatorRun> runs, AllocatorRuns(job, rank.rank));
  const Resident around = SurroundingStorages(job, runs, rank.peak.bytes);
  AddResident(rank.tape, around);
  return WithSurroundings(rank.peak.bytes, around);
}

// Of a full training; the state of an adapter, or of some parts, says little of the recipe.
Result<std::vector<RecipeReading>> ReadingsOfRecipe(const Job& job) {
  std::vector<RecipeReading> readings;
  const bool frozen = !job.training.freeze.empty() || !job.training.train_only.empty();
  if (job.training.recipe_word.empty() || job.training.adapter || frozen ||
      job.training.evaluates) {
    return readings;
  }
  const TrainingJob alone = OnOneDevice(job.training);
  const std::vector<Recipe> recipes = ReadingsOf(job.training.recipe_word);
  for (const Recipe& recipe : recipes.size() > 1 ? recipes : std::vector<Recipe>()) {
    TrainingJob other = alone;
    other.recipe = recipe;
    TRY(const Bytes state, StateBytes(other, job.model.network));
    readings.push_back(
        {.recipe = recipe.names.id,
         .bytes_per_parameter = static_cast<double>(state.value()) /
                                static_cast<double>(ParameterCount(job.model.network))});
  }
  return readings;
}

}  // namespace

bool ShapesAreKnown(const Job& job) {
  const Network& network = job.model.network;
  return !job.bare_count || (job.kind != JobKind::kServe && network.num_hidden_layers);
}

Fit FitOf(const Band& total, Bytes memory) {
  if (total.high <= memory) {
    return Fit::kFits;
  }
  return total.expected <= memory ? Fit::kTight : Fit::kDoesNotFit;
}

bool IsYes(const Budget& budget) {
  const bool fits = !budget.verdict || *budget.verdict != Fit::kDoesNotFit;
  return fits && (!budget.job.solve || budget.solution);
}

namespace {

// Whether the recipe's format is that of what is trained: adapters may be in float32.
bool TrainsInTheFormatOf(const Job& job) {
  return std::ranges::any_of(job.model.network.blocks, [](const Block& block) {
    return std::ranges::any_of(block.parameters, [](const Parameter& parameter) {
      return parameter.trainable && !parameter.float32;
    });
  });
}

}  // namespace

std::vector<std::string> WarningsOf(const Job& job) {
  std::vector<std::string> warnings;
  const bool serving = job.kind == JobKind::kServe;
  if (!serving && !job.training.recipe.warning.empty() && TrainsInTheFormatOf(job)) {
    warnings.push_back(job.training.recipe.warning);
  }
  if (!serving) {
    WarnOfUnused(job, warnings);
    WarnOfLayout(job, warnings);
  }
  if (!ShapesAreKnown(job)) {
    warnings.push_back(UnknownShapes(job));
  }
  if (const std::string warning = job.device ? MemoryWarning(*job.device) : ""; !warning.empty()) {
    warnings.push_back(warning);
  }
  const std::optional<std::int64_t> longest = job.model.network.max_position_embeddings;
  const std::int64_t tokens = serving ? TokensOf(job.serving) : job.training.sequence_length;
  if (longest && tokens > *longest) {
    warnings.push_back(fmt::format("{} tokens are more than the {} that {} was made for", tokens,
                                   *longest, job.model.name));
  }
  const std::string& method = job.model.network.quantization;
  const bool is_coded = serving ? !IsPlain(job.serving.weights) : job.training.base.has_value();
  if (!method.empty() && !is_coded) {
    warnings.push_back("the checkpoint is quantised (" + method +
                       "); its weights are counted in a plain number format here");
  }
  for (const std::string& part : job.model.network.left_out) {
    warnings.push_back("not counted: " + part);
  }
  warnings.insert(warnings.end(), job.model.warnings.begin(), job.model.warnings.end());
  return warnings;
}

std::string_view Name(Fit verdict) {
  switch (verdict) {
    case Fit::kFits:
      return "fits";
    case Fit::kTight:
      return "tight";
    case Fit::kDoesNotFit:
      break;
  }
  return "does_not_fit";
}

Result<Bytes> PeakBytes(const Job& job) {
  TRY(const std::vector<Part> parts, SplitTraining(job));
  Bytes peak(0);
  for (const Part& part : parts) {
    TRY(const Tape tape, Play(part, job.training.profile));
    peak = std::max(peak, PeakOf(tape, Place::kDevice).bytes);
  }
  return peak;
}

namespace {

Result<std::vector<PlayedRank>> PlayedRanks(const Job& job) {
  TRY(const std::vector<Part> parts, SplitTraining(job));
  std::vector<PlayedRank> ranks;
  ranks.reserve(parts.size());
  for (const Part& part : parts) {
    TRY(Tape tape, Play(part, job.training.profile));
    const Peak peak = PeakOf(tape, Place::kDevice);
    ranks.push_back(
        {.rank = part.rank, .ranks = part.ranks, .tape = std::move(tape), .peak = peak});
  }
  return ranks;
}

// The first of those that have most.
std::size_t FullestOf(const std::vector<PlayedRank>& ranks) {
  const auto fullest =
      std::ranges::max_element(ranks, {}, [](const PlayedRank& rank) { return rank.peak.bytes; });
  return static_cast<std::size_t>(fullest - ranks.begin());
}

std::size_t ShownOf(const TrainingJob& training, const std::vector<PlayedRank>& ranks,
                    std::size_t worst) {
  if (!training.shown_rank) {
    return worst;
  }
  const std::int64_t kind = *training.shown_rank / ranks.front().ranks;
  return std::min(static_cast<std::size_t>(kind), ranks.size() - 1);
}

// What the ranks of the fullest host have on it together: those of one stage, or of several stages
// side by side.
Bytes HostOf(const Job& job, const std::vector<PlayedRank>& ranks) {
  const Layout& layout = job.training.layout;
  const std::int64_t on_host = std::min(layout.per_host, layout.devices);
  const std::int64_t of_kind = ranks.front().ranks;
  const auto kinds = static_cast<std::size_t>(std::max<std::int64_t>(1, on_host / of_kind));
  const Checked of_each = std::min(on_host, of_kind);
  Checked most = 0;
  for (std::size_t first = 0; first < ranks.size(); first += kinds) {
    Checked sum = 0;
    for (std::size_t kind = first; kind < std::min(first + kinds, ranks.size()); ++kind) {
      const Bytes bytes = PeakOf(ranks[kind].tape, Place::kHost).bytes +
                          PeakOf(ranks[kind].tape, Place::kHostPinned).bytes;
      sum = sum + of_each * bytes.value();
    }
    most = OrLargest(sum) > OrLargest(most) ? sum : most;
  }
  return Bytes(OrLargest(most));
}

}  // namespace

Result<Budget> PlayedBudget(const Job& job) {
  if (job.kind == JobKind::kServe) {
    TRY(const ServingPlan plan, PlanServing(job));
    return ServingBudget(job, plan);
  }
  Budget budget;
  budget.job = job;
  TRY(std::vector<PlayedRank> ranks, PlayedRanks(job));
  const std::size_t worst = FullestOf(ranks);
  const std::size_t shown = ShownOf(job.training, ranks, worst);
  budget.worst_rank = ranks[worst].rank;
  budget.shown_rank = ranks[shown].rank;
  for (const PlayedRank& rank : ranks) {
    budget.ranks.push_back({.rank = rank.rank,
                            .ranks = rank.ranks,
                            .piles = PilesAt(rank.tape, Place::kDevice, rank.peak.moment),
                            .total = Exactly(rank.peak.bytes)});
  }
  TRY(budget.total, AddSurroundings(job, ranks[worst]));
  if (shown != worst) {
    TRY_VOID(AddSurroundings(job, ranks[shown]));
  }
  budget.host = HostOf(job, ranks);
  budget.peak = ranks[shown].peak;
  budget.tape = std::move(ranks[shown].tape);
  budget.saved_activations = SavedActivations(budget.tape);
  budget.piles = PilesAt(budget.tape, Place::kDevice, budget.peak.moment);
  budget.shapes_known = ShapesAreKnown(job);
  TRY(budget.state, LargestState(job));
  if (job.device) {
    budget.verdict = FitOf(budget.total, job.device->memory);
    budget.headroom = job.device->memory - budget.total.expected;
  }
  budget.warnings = WarningsOf(job);
  if (job.host_memory && budget.host > *job.host_memory) {
    budget.verdict = Fit::kDoesNotFit;
  }
  budget.unknowns = UnknownsOf(job);
  TRY(budget.readings, ReadingsOfRecipe(job));
  TRY(budget.file, FileShareOf(job));
  return budget;
}

Result<Tape> PlayWhole(const Job& job, std::string_view rank) {
  TRY(const Part part, PartOfRank(job, rank, LayersPlayed::kEach));
  return Play(part, job.training.profile);
}

}  // namespace fourpiles
