// Changes of a training job. Every one is read as it would be typed and played; what it saves is
// the difference of the two peaks.

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "plan/adapter_setting.h"
#include "plan/advice.h"
#include "plan/change_command.h"
#include "plan/setting_reader.h"

namespace fourpiles {
namespace {

// When a change is worth a try at all.
enum class Where {
  kAnywhere,
  kStep,             // not where a forward pass is all there is
  kAdam,             // where the optimizer is Adam or one of its kin
  kAdamWithShapes,   // and where its tensors are known
  kBfloat16,         // where the device computes in it
  kWithoutBfloat16,  // where it does not
  kPlainPyTorch,     // where no other implementation was chosen
  kDevices,          // where there are several
};

struct Candidate {
  std::string_view setting;
  std::string_view value;
  std::string_view costs;
  Where where = Where::kAnywhere;
};

constexpr std::string_view kStalled =
    "no float32 copy of the weights: an update under 1/512 of its weight is lost (Zamirai et al. "
    "2020, arXiv 2010.06192)";
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
    {"recipe", "bf16-fp32-states", kStalled, Where::kBfloat16},
    {"recipe", "bf16", kStalled, Where::kBfloat16},
    {"recipe", "bf16-stochastic",
     "no float32 copy of the weights; small updates are kept in the mean alone (Zamirai et al. "
     "2020, arXiv 2010.06192)",
     Where::kBfloat16},
    {"zero", "1", kSameCommunication, Where::kDevices},
    {"zero", "2", kSameCommunication, Where::kDevices},
    {"zero", "3",
     "half as much communication again (Rajbhandari et al. 2020, arXiv 1910.02054, section 7)",
     Where::kDevices},
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
    case Where::kWithoutBfloat16:
      return !ComputesInBfloat16(job);
    case Where::kPlainPyTorch:
      return job.training.implementation == "pytorch";
    case Where::kDevices:
      break;
  }
  return job.devices > 1;
}

struct Change {
  std::vector<std::pair<std::string, std::string>> settings = {};  // in the order they are typed
  std::string costs = {};
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
                         "longer samples are cut, or split"});
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

constexpr std::string_view kAdapter = "lora:rank=16";

// Only the adapter is trained.
std::optional<Job> WithLora(Job job) {
  const Settings typed = TypedSettings({{std::string(kAdapterSetting), std::string(kAdapter)}});
  std::vector<Default> unused;
  const auto adapter = ReadAdapter(SettingReader(typed, unused));
  if (!adapter || job.training.adapter || job.training.evaluates) {
    return std::nullopt;
  }
  auto network = WithAdapter(std::move(job.model.network), **adapter, kAdapterSetting);
  if (!network) {
    return std::nullopt;
  }
  job.model.network = *std::move(network);
  job.training.adapter = *adapter;
  return job;
}

std::vector<Change> ChangesOf(const Job& job) {
  std::vector<Change> changes;
  for (const Candidate& candidate : kCandidates) {
    if (IsWorthATry(candidate, job)) {
      changes.push_back({{{std::string(candidate.setting), std::string(candidate.value)}},
                         std::string(candidate.costs)});
    }
  }
  AddSmallerBatches(job, changes);
  return changes;
}

// The job as the change would be read; nothing where it is refused. What was solved for, and the
// adapter, stay.
std::optional<Job> With(const Job& job, const Settings& changes) {
  Settings settings = job.settings;
  for (const auto& [name, value] : changes) {
    settings.insert_or_assign(name, value);
  }
  std::vector<Default> unused;
  SettingReader reader(settings, unused);
  auto training = ReadTraining(reader, job);
  if (!training) {
    return std::nullopt;
  }
  Job other = job;
  other.training = *std::move(training);
  other.training.adapter = job.training.adapter;
  if (IsSolvedFor(job, Unknown::kMicroBatchSize)) {
    other.training.micro_batch_size = job.training.micro_batch_size;
  }
  if (IsSolvedFor(job, Unknown::kSequenceLength)) {
    other.training.sequence_length = job.training.sequence_length;
  }
  return other;
}

// A smaller saving is none: what the allocator rounds is more.
constexpr std::int64_t kLeastShare = 1000;

class Trial {
 public:
  explicit Trial(const Budget& budget) : budget_(budget) {}

  void Try(const Job& other, const Settings& changes, std::string costs) {
    const Result<Bytes> peak = PeakBytes(other);  // an error: past 2^53
    if (!peak || (budget_.peak.bytes - *peak).value() * kLeastShare < budget_.peak.bytes.value()) {
      return;
    }
    const Bytes saves = budget_.peak.bytes - *peak;
    advice_.push_back({.change = ChangeAsTyped(changes),
                       .command = CommandWith(budget_.job, changes),
                       .saves = saves,
                       .costs = std::move(costs),
                       .enough = IsEnough(budget_, saves)});
  }

  std::vector<Advice> TakeRanked() {
    std::ranges::stable_sort(advice_, std::ranges::greater(), &Advice::saves);
    return std::move(advice_);
  }

 private:
  const Budget& budget_;
  std::vector<Advice> advice_ = {};
};

}  // namespace

std::vector<Advice> TrainingAdvice(const Budget& budget) {
  if (budget.verdict && *budget.verdict == Fit::kFits) {
    return {};
  }
  const Job& job = budget.job;
  Trial trial(budget);
  for (const Change& change : ChangesOf(job)) {
    const Settings changes = TypedSettings({change.settings.begin(), change.settings.end()});
    if (const std::optional<Job> other = With(job, changes)) {
      trial.Try(*other, changes, change.costs);
    }
  }
  if (const std::optional<Job> other = WithLora(job)) {
    const double share = 100 * static_cast<double>(TrainableParameterCount(other->model.network)) /
                         static_cast<double>(ParameterCount(other->model.network));
    trial.Try(*other, TypedSettings({{std::string(kAdapterSetting), std::string(kAdapter)}}),
              fmt::format("{:.2g} % of the parameters are trained: it learns less and forgets less "
                          "(Biderman et al. 2024, arXiv 2405.09673)",
                          share));
  }
  return trial.TakeRanked();
}

}  // namespace fourpiles
