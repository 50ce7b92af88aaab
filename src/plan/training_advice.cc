// Changes of a training job. Every one is read as its command would be, and played; what it saves
// is the difference of the two peaks.

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "plan/adapter_setting.h"
#include "plan/advice.h"
#include "plan/change_command.h"
#include "plan/solve.h"
#include "plan/surroundings.h"

namespace fourpiles {
namespace {

// When a change is worth a try at all.
enum class Where {
  kAnywhere,
  kStep,             // not where a forward pass is all there is
  kAdam,             // where the optimizer is Adam or one of its kin
  kAdamWithShapes,   // and where its tensors are known
  kBfloat16,         // where the device computes in it
  kBfloat16Trained,  // and something is trained in the format of the recipe
  kWithoutBfloat16,  // where it does not
  kPlainPyTorch,     // where no other implementation was chosen
  kDevices,          // where there are several
  kLoneGradients,    // where no gradient waits for another one
  kWhole,            // where no adapter is trained
};

struct Candidate {
  std::string_view setting;
  std::string_view value;
  std::string_view costs;
  Where where = Where::kAnywhere;
  // Where nothing is trained in the format of the recipe, as adapters are in float32; empty: the
  // same.
  std::string_view costs_of_frozen = {};
};

constexpr std::string_view kStalled =
    "no float32 copy of the weights: an update under 1/512 of its weight is lost (Zamirai et al. "
    "2020, arXiv 2010.06192)";
constexpr std::string_view kFrozenRounded = "weights that are not trained are rounded to bfloat16";
constexpr std::string_view kCodedBase =
    "no loss against fine-tuning in 16 bits found; slower products (Dettmers et al. 2023, arXiv "
    "2305.14314, section 4)";
constexpr std::string_view kSameCommunication =
    "no more communication than data parallelism has (Rajbhandari et al. 2020, arXiv 1910.02054, "
    "section 7)";

constexpr Candidate kCandidates[] = {
    {"recompute", "selective",
     "the core of attention runs twice: 2 to 5 % of the time (Korthikanti et al. 2022, arXiv "
     "2205.05198, section 5)",
     Where::kStep},
    {"recompute", "full",
     "a second forward pass: 30 to 40 % of the time (Chen et al. 2016, arXiv 1604.06174; "
     "Korthikanti et al. 2022, arXiv 2205.05198, section 5)",
     Where::kStep},
    {"loss", "fused",
     "nothing: the same loss, never all logits at a time (Hsu et al. 2024, arXiv 2410.10989)"},
    {"loss", "chunked:8", "nothing: the same loss, an eighth of the logits at a time"},
    {"attention", "sdpa",
     "nothing: the same sums in another order (Dao et al. 2022, arXiv "
     "2205.14135)"},
    {"attention", "flash",
     "nothing: the same sums in another order (Dao et al. 2022, arXiv "
     "2205.14135)"},
    {"implementation", "liger",
     "nothing: the same arithmetic in fused kernels (Hsu et al. 2024, arXiv 2410.10989)",
     Where::kPlainPyTorch},
    {"implementation", "pytorch-compile", "time to compile, again for each new shape",
     Where::kPlainPyTorch},
    {"optimizer-kernels", "fused", "nothing: the same update in one kernel (torch.optim, fused)",
     Where::kStep},
    {"optimizer", "adamw-8bit-bnb",
     "moments in 8 bits, no loss found over many tasks (Dettmers et al. 2022, arXiv 2110.02861)",
     Where::kAdam},
    {"optimizer", "paged-adamw-8bit",
     "moments in 8 bits and in host memory: every step fetches them (Dettmers et al. 2023, arXiv "
     "2305.14314, section 3)",
     Where::kAdam},
    {"optimizer", "adafactor",
     "no first moment and sums in place of the second; learning rates must be found anew (Shazeer "
     "and Stern 2018, arXiv 1804.04235)",
     Where::kAdamWithShapes},
    {"recipe", "mixed-bf16",
     "the forward and backward pass are in bfloat16, the optimizer keeps float32 weights (Kalamkar "
     "et al. 2019, arXiv 1905.12322)",
     Where::kBfloat16},
    {"recipe", "mixed-fp16",
     "the loss must be scaled; the optimizer keeps float32 weights (Micikevicius et al. 2018, "
     "arXiv 1710.03740)",
     Where::kWithoutBfloat16},
    {"recipe", "bf16-fp32-states", kStalled, Where::kBfloat16Trained},
    {"recipe", "bf16", kStalled, Where::kBfloat16, kFrozenRounded},
    {"recipe", "bf16-stochastic",
     "no float32 copy of the weights; small updates are kept in the mean alone (Zamirai et al. "
     "2020, arXiv 2010.06192)",
     Where::kBfloat16Trained},
    {"zero", "1", kSameCommunication, Where::kDevices},
    {"zero", "2", kSameCommunication, Where::kDevices},
    {"zero", "3",
     "half as much communication again (Rajbhandari et al. 2020, arXiv 1910.02054, section 7)",
     Where::kDevices},
    {"adapter", "lora:rank=16",
     "it learns less and forgets less (Biderman et al. 2024, arXiv 2405.09673)", Where::kWhole},
    {"base-format", "nf4", kCodedBase, Where::kStep},
    {"base-format", "nf4-double", kCodedBase, Where::kStep},
    {"offload", "activations",
     "what the layers keep goes to the host and comes back: time, where the bus is slower than the "
     "layers (torchtune, enable_activation_offloading)",
     Where::kStep},
    {"optimizer-kernels", "in-backward",
     "no gradient is kept: none is accumulated, nor clipped by the norm of all (Lv et al. 2023, "
     "arXiv 2306.09782)",
     Where::kLoneGradients},
};

bool ComputesInBfloat16(const Job& job) {
  if (!job.device || job.device->native_formats.empty()) {
    return true;
  }
  return std::ranges::find(job.device->native_formats, "bfloat16") !=
         job.device->native_formats.end();
}

bool IsAdam(const Job& job) {
  return !job.training.evaluates &&
         job.training.optimizer.names.id.find("adam") != std::string::npos;
}

// That of the recipe: adapters may be in float32.
bool TrainsInTheFormat(const Job& job) {
  return !job.training.evaluates &&
         std::ranges::any_of(job.model.network.blocks, [](const Block& block) {
           return std::ranges::any_of(block.parameters, [](const Parameter& parameter) {
             return parameter.trainable && !parameter.float32;
           });
         });
}

// Losses in float16 are scaled, and a scale that was too large is found when all gradients are
// there. A lower bound of a bare count has all of them in one tensor.
bool HasLoneGradients(const TrainingJob& training) {
  return !training.evaluates && !training.lower_bound && training.gradient_accumulation == 1 &&
         training.layout.zero == 0 && !training.recipe.loss_scaler &&
         training.recipe.compute.name != "float16";
}

bool IsWorthATry(const Candidate& candidate, const Job& job) {
  switch (candidate.where) {
    case Where::kAnywhere:
      return true;
    case Where::kStep:
      return !job.training.evaluates;
    case Where::kAdam:
      return IsAdam(job);
    case Where::kAdamWithShapes:
      return IsAdam(job) && !job.bare_count;
    case Where::kBfloat16:
      return ComputesInBfloat16(job);
    case Where::kBfloat16Trained:
      return ComputesInBfloat16(job) && TrainsInTheFormat(job);
    case Where::kWithoutBfloat16:
      return !ComputesInBfloat16(job);
    case Where::kPlainPyTorch:
      return job.training.implementation == "pytorch";
    case Where::kDevices:
      return job.devices > 1;
    case Where::kLoneGradients:
      return HasLoneGradients(job.training);
    case Where::kWhole:
      break;
  }
  return !job.training.evaluates && !job.training.adapter;
}

struct Change {
  SettingChanges settings = {};
  std::string costs = {};
  std::string_view costs_of_frozen = {};
};

// Of a whole number above 1.
std::int64_t LeastDivisor(std::int64_t number) {
  for (std::int64_t divisor = 2; divisor * divisor <= number; ++divisor) {
    if (number % divisor == 0) {
      return divisor;
    }
  }
  return number;
}

bool IsSolvedFor(const Job& job, Unknown unknown) {
  return job.solve && *job.solve == unknown;
}

// The same batch in the fewest pieces, and sample by sample; where a sample is all there is, a
// shorter one.
void AddSmallerBatches(const Job& job, std::vector<Change>& changes) {
  const TrainingJob& training = job.training;
  const std::int64_t batch = training.micro_batch_size;
  if (batch == 1) {
    if (training.sequence_length > 1 && !job.model.network.tokens_per_sample &&
        !IsSolvedFor(job, Unknown::kSequenceLength)) {
      changes.push_back({{{"sequence-length", fmt::to_string(training.sequence_length / 2)}},
                         training.data && training.data->drops_longer
                             ? "longer samples are dropped"
                             : "longer samples are cut, or split"});
    }
    return;
  }
  if (IsSolvedFor(job, Unknown::kMicroBatchSize)) {
    return;
  }
  std::vector<std::int64_t> all_pieces = {LeastDivisor(batch)};
  if (all_pieces.front() != batch) {
    all_pieces.push_back(batch);
  }
  for (const std::int64_t pieces : all_pieces) {
    Change change = {{{"micro-batch-size", fmt::to_string(batch / pieces)}},
                     fmt::format("nothing but time: the same batch in {} passes", pieces)};
    if (!training.evaluates) {
      change.settings.emplace_back("gradient-accumulation",
                                   fmt::to_string(training.gradient_accumulation * pieces));
    }
    changes.push_back(std::move(change));
  }
}

std::vector<Change> ChangesOf(const Job& job) {
  std::vector<Change> changes;
  for (const Candidate& candidate : kCandidates) {
    if (IsWorthATry(candidate, job)) {
      changes.push_back({{{std::string(candidate.setting), std::string(candidate.value)}},
                         std::string(candidate.costs),
                         candidate.costs_of_frozen});
    }
  }
  AddSmallerBatches(job, changes);
  return changes;
}

// The job's model as it was before its settings were read; nothing where it is not to be had again.
Result<Job> OpenAgain(const Job& job) {
  const auto model = job.settings.find("model");
  return OpenJob(job.kind, model == job.settings.end() ? job.model.name : model->second.text,
                 job.settings);
}

// The job of the command that shows the change; nothing where it is refused. Lengths of samples
// were read already: of them the sequence length has what counts.
std::optional<Job> With(const Job& job, const Job& opened, const SettingChanges& changes) {
  Settings settings = SettingsWith(job, changes);
  for (const std::string_view name : {"length-histogram", "padding", "packing", "excess-length"}) {
    if (const auto found = settings.find(name); found != settings.end()) {
      settings.erase(found);
    }
  }
  Result<Job> other = ReadJob(opened, settings);
  if (!other) {
    return std::nullopt;
  }
  other->training.data = job.training.data;
  if (const std::int64_t limit = other->training.sequence_length; job.training.data) {
    other = WithValue(*std::move(other), Unknown::kSequenceLength, limit);
  }
  other->device = job.device;
  return *std::move(other);
}

std::string CostsOf(const Change& change, const Job& job, const Job& other) {
  if (!change.costs_of_frozen.empty() && !TrainsInTheFormat(other)) {
    return std::string(change.costs_of_frozen);
  }
  if (other.training.adapter && !job.training.adapter) {
    const Network& network = other.model.network;
    return fmt::format("{:.2g} % of the parameters are trained: {}",
                       100 * static_cast<double>(TrainableParameterCount(network)) /
                           static_cast<double>(ParameterCount(network)),
                       change.costs);
  }
  return change.costs;
}

// A smaller saving is none: what the allocator rounds is more.
constexpr std::int64_t kLeastShare = 1000;

struct Tried {
  Advice advice = {};
  Job job = {};
  Bytes peak = Bytes(0);
};

std::optional<Tried> Try(const Budget& budget, const Job& opened, const Change& change) {
  std::optional<Job> other = With(budget.job, opened, change.settings);
  const Result<Bytes> peak = other ? PeakBytes(*other) : Bytes(kLargestAmount);
  if (!peak || (budget.peak.bytes - *peak).value() * kLeastShare < budget.peak.bytes.value()) {
    return std::nullopt;  // an error: past 2^53
  }
  const Advice advice = {.change = ChangeAsTyped(change.settings),
                         .command = CommandWith(budget.job, change.settings),
                         .saves = budget.peak.bytes - *peak,
                         .costs = CostsOf(change, budget.job, *other)};
  return Tried{advice, *std::move(other), *peak};
}

// A replay of the allocator takes time with every tensor, a second for 20,000 of them; those of the
// largest savings are made.
constexpr std::int64_t kTensorsReplayed = 50'000;
constexpr std::int64_t kLeastReplays = 2;

std::int64_t ReplaysOf(const Network& network) {
  std::int64_t tensors = 1;
  for (const Block& block : network.blocks) {
    for (const Parameter& parameter : block.parameters) {
      tensors += block.repeat * parameter.copies;
    }
  }
  return std::max(kLeastReplays, kTensorsReplayed / tensors);
}

// Whether changed jobs fit, or where the job as it is is tight fit at the high end too.
class Judge {
 public:
  // One that does not fit, or is tight.
  explicit Judge(const Budget& budget)
      : goal_(*budget.verdict), replays_left_(ReplaysOf(budget.job.model.network)) {}

  // Nothing where only one more replay could say.
  std::optional<bool> IsEnough(const Tried& tried) {
    const Job& job = tried.job;
    const Bytes memory = job.device->memory;
    const Bytes asked = tried.peak + LibraryBytes(job);
    const Band driver = DriverBand(job);
    if (asked + driver.low > memory) {  // no replay makes less of it
      return false;
    }
    // Nor twice as much: 1.35 is the most that was seen, and free segments go back before the end.
    if (!KnowsSurroundings(job) || asked + asked + driver.high <= memory) {
      return true;
    }
    if (replays_left_-- <= 0) {
      return std::nullopt;
    }
    const Result<Budget> changed = PlayedBudget(job);
    const Fit verdict = changed ? *changed->verdict : Fit::kDoesNotFit;
    return goal_ == Fit::kTight ? verdict == Fit::kFits : verdict != Fit::kDoesNotFit;
  }

 private:
  Fit goal_;
  std::int64_t replays_left_;
};

}  // namespace

std::vector<Advice> TrainingAdvice(const Budget& budget) {
  if (budget.verdict && *budget.verdict == Fit::kFits) {
    return {};
  }
  std::vector<Tried> all;
  const Result<Job> opened = OpenAgain(budget.job);
  for (const Change& change : opened ? ChangesOf(budget.job) : std::vector<Change>()) {
    if (std::optional<Tried> tried = Try(budget, *opened, change)) {
      all.push_back(*std::move(tried));
    }
  }
  std::ranges::stable_sort(all, std::ranges::greater(),
                           [](const Tried& tried) { return tried.advice.saves; });
  std::vector<Advice> advice;
  std::optional<Judge> judge;
  // What the device saves does not help a host that is full.
  const std::optional<Bytes>& host = budget.job.host_memory;
  if (budget.headroom && (!host || budget.host <= *host)) {
    judge.emplace(budget);
  }
  for (Tried& tried : all) {
    tried.advice.enough = judge ? judge->IsEnough(tried) : std::nullopt;
    advice.push_back(std::move(tried.advice));
  }
  return advice;
}

}  // namespace fourpiles
