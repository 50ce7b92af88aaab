#include "audit/audit.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <set>

#include "audit/audit_pass.h"
#include "audit/format_way.h"
#include "base/try.h"
#include "kernels/parallel.h"
#include "tensors/name_pattern.h"

namespace fourpiles {
namespace {

// Why a tensor is not audited; empty: it is.
std::string WhyNot(const Checkpoint& checkpoint, const FileTensor& tensor) {
  if (tensor.type == nullptr) {
    return "its type " + tensor.dtype + " is not known";
  }
  const std::string_view name = tensor.type->name;
  if (name.starts_with("complex")) {
    return "it holds complex numbers";
  }
  if (tensor.type->block_elements == 1 && !FindFormat(name)) {
    return "it holds " + std::string(name) + ", not real numbers";
  }
  return RepeatsTooMuch(checkpoint, tensor)
             ? "it is a view that repeats its elements to more bytes than its file has"
             : "";
}

std::optional<double> FittingScale(const AuditFormat& format, const ValueFacts& values) {
  const auto* const record = std::get_if<NumberFormat>(&format.format);
  if (record == nullptr || values.largest == 0) {
    return std::nullopt;
  }
  return LimitsOf(*record).largest / values.largest;
}

// Adds the tensor that stands next in the audit to its totals.
void AddTotals(const TensorAudit& tensor, Audit& audit) {
  for (std::size_t i = 0; i < audit.formats.size(); ++i) {
    FormatLosses& total = audit.totals[i];
    const FormatLosses& of_tensor = tensor.formats[i];
    if (of_tensor.losses.largest_relative_error > total.losses.largest_relative_error) {
      audit.worst_tensors[i] = static_cast<std::int32_t>(audit.tensors.size());
    }
    Add(of_tensor.losses, total.losses);
    if (of_tensor.scales) {
      ScaleFacts scales = total.scales.value_or(ScaleFacts{});
      Add(*of_tensor.scales, scales);
      total.scales = scales;
    }
  }
}

// A tensor that is being audited.
struct Job {
  std::size_t place = 0;  // among the tensors to audit
  AuditedTensor tensor;
  std::vector<std::unique_ptr<AuditPass>> passes = {};
  std::int64_t bytes = 0;
  std::int64_t spans = 0;  // of all passes
  std::atomic<std::int64_t> spans_left = 0;

  explicit Job(AuditedTensor audited) : tensor(std::move(audited)) {}
};

struct Task {
  std::shared_ptr<Job> job = {};
  std::size_t pass = 0;
  std::int64_t span = 0;
};

// What became of a tensor.
struct Done {
  std::optional<TensorOutcome> outcome = {};
  std::string skipped = {};  // why
};

class Auditor {
 public:
  Auditor(const Checkpoint& checkpoint, const AuditOptions& options)
      : checkpoint_(checkpoint),
        options_(options),
        plan_(options.formats, options.overflow),
        cache_(checkpoint),
        errors_(options.formats.size()) {
    std::set<TensorView> seen;
    for (const FileTensor& tensor : checkpoint.tensors) {
      if (MatchesAny(tensor.name, options.filters)) {
        tensors_.push_back(&tensor);
        is_repeated_.push_back(!seen.insert(ViewOf(tensor)).second);
        progress_.bytes += WhyNot(checkpoint_, tensor).empty() ? tensor.bytes : 0;
      }
    }
    done_.resize(tensors_.size());
  }

  Result<Audit> Run();

 private:
  // The next span to run; nothing when none is left or something failed.
  std::optional<Task> Next(AuditScratch& scratch);
  std::optional<Task> NextSpan();  // of the tensor that was opened last
  Result<void> Start(std::size_t place, AuditScratch& scratch);
  Result<std::shared_ptr<Job>> Open(std::size_t place);
  Result<void> Do(const Task& task, AuditScratch& scratch);
  Result<void> Finish(Job& job, AuditScratch& scratch);
  void Fail(Error error);
  void Work();
  Audit Collect();

  const Checkpoint& checkpoint_;
  const AuditOptions& options_;
  AuditPlan plan_;
  StorageCache cache_;
  std::vector<const FileTensor*> tensors_;  // those chosen
  std::vector<bool> is_repeated_;           // of tensors_: the same view of a storage was before
  std::vector<Done> done_;                  // of tensors_
  ErrorTotals errors_;
  // Under the lock:
  std::mutex mutex_;
  std::size_t next_tensor_ = 0;
  Task next_;  // of the tensor that was opened last
  std::optional<Error> failure_;
  AuditProgress progress_;
};

Result<std::shared_ptr<Job>> Auditor::Open(std::size_t place) {
  const FileTensor& tensor = *tensors_[place];
  TRY(TensorValues values, TensorValues::Of(checkpoint_, tensor, cache_));
  auto job =
      std::make_shared<Job>(AuditedTensor{.shape = tensor.shape, .values = std::move(values)});
  job->place = place;
  job->bytes = tensor.bytes;
  TRY(job->tensor.whole,
      LookAtWhole(job->tensor.values, job->tensor.Columns(), plan_, options_.threads));
  job->passes = PassesOf(job->tensor, plan_);
  for (const auto& pass : job->passes) {
    job->spans += pass->Count();
  }
  job->spans_left = job->spans;
  return job;
}

std::optional<Task> Auditor::NextSpan() {
  while (next_.job && next_.pass < next_.job->passes.size()) {
    if (next_.span < next_.job->passes[next_.pass]->Count()) {
      Task task = next_;
      ++next_.span;
      return task;
    }
    ++next_.pass;
    next_.span = 0;
  }
  return std::nullopt;
}

Result<void> Auditor::Start(std::size_t place, AuditScratch& scratch) {
  next_ = {};
  done_[place].skipped = WhyNot(checkpoint_, *tensors_[place]);
  if (!done_[place].skipped.empty()) {
    return {};
  }
  TRY(std::shared_ptr<Job> job, Open(place));
  if (job->spans_left == 0) {  // an empty tensor
    return Finish(*job, scratch);
  }
  next_.job = std::move(job);
  return {};
}

std::optional<Task> Auditor::Next(AuditScratch& scratch) {
  const std::lock_guard lock(mutex_);
  while (!failure_) {
    if (std::optional<Task> task = NextSpan()) {
      return task;
    }
    if (next_tensor_ == tensors_.size()) {
      return std::nullopt;
    }
    if (auto started = Start(next_tensor_++, scratch); !started) {
      failure_ = std::move(started).error();
    }
  }
  return std::nullopt;
}

Result<void> Auditor::Finish(Job& job, AuditScratch& scratch) {
  const std::size_t formats = options_.formats.size();
  const FileTensor& tensor = *tensors_[job.place];
  TensorOutcome outcome;
  outcome.audit.tensor = static_cast<std::int32_t>(&tensor - checkpoint_.tensors.data());
  outcome.audit.name = tensor.name;
  outcome.audit.formats.resize(formats);
  outcome.audit.is_repeated = is_repeated_[job.place];
  outcome.totals = is_repeated_[job.place] ? nullptr : &errors_;
  for (const auto& pass : job.passes) {
    TRY_VOID(pass->Finish(outcome, scratch));
  }
  outcome.audit.values = outcome.facts.Facts();
  for (std::size_t i = 0; i < formats; ++i) {
    outcome.audit.formats[i].fitting_scale =
        FittingScale(options_.formats[i], outcome.audit.values);
  }
  done_[job.place].outcome = std::move(outcome);
  return {};
}

Result<void> Auditor::Do(const Task& task, AuditScratch& scratch) {
  Job& job = *task.job;
  TRY_VOID(job.passes[task.pass]->Run(task.span, scratch));
  const bool is_last = job.spans_left.fetch_sub(1) == 1;
  if (is_last) {
    TRY_VOID(Finish(job, scratch));
  }
  const std::lock_guard lock(mutex_);
  progress_.bytes_done += job.bytes / job.spans + (is_last ? job.bytes % job.spans : 0);
  if (options_.progress) {
    options_.progress(progress_);
  }
  return {};
}

void Auditor::Work() {
  AuditScratch scratch;
  while (const std::optional<Task> task = Next(scratch)) {
    if (auto done = Do(*task, scratch); !done) {
      const std::lock_guard lock(mutex_);
      failure_ = failure_ ? failure_ : std::move(done).error();
    }
  }
}

Result<Audit> Auditor::Run() {
  const auto threads = static_cast<std::size_t>(std::max(options_.threads, 1));
  ForRanges(threads, 1, options_.threads, [&](std::size_t, std::size_t) { Work(); });
  if (failure_) {
    return tl::make_unexpected(*std::move(failure_));
  }
  return Collect();
}

Audit Auditor::Collect() {
  const std::size_t formats = options_.formats.size();
  Audit audit = {.overflow = options_.overflow,
                 .formats = options_.formats,
                 .totals = std::vector<FormatLosses>(formats),
                 .worst_tensors = std::vector<std::int32_t>(formats, -1)};
  RunningFacts facts;
  for (std::size_t place = 0; place < tensors_.size(); ++place) {
    if (!done_[place].outcome) {
      audit.skipped.push_back(
          {.tensor = static_cast<std::int32_t>(tensors_[place] - checkpoint_.tensors.data()),
           .name = tensors_[place]->name,
           .why = done_[place].skipped});
      continue;
    }
    TensorOutcome& outcome = *done_[place].outcome;
    if (!is_repeated_[place]) {
      facts.Add(outcome.facts);
      AddTotals(outcome.audit, audit);
    }
    audit.tensors.push_back(std::move(outcome.audit));
  }
  audit.values = facts.Facts();
  for (std::size_t i = 0; i < formats; ++i) {
    Losses& losses = audit.totals[i].losses;
    losses.relative_error_p99 = RelativeErrorP99(errors_.Of(i), losses);
    audit.totals[i].fitting_scale = FittingScale(options_.formats[i], audit.values);
  }
  return audit;
}

}  // namespace

Result<Audit> AuditCheckpoint(const Checkpoint& checkpoint, const AuditOptions& options) {
  return Auditor(checkpoint, options).Run();
}

}  // namespace fourpiles
