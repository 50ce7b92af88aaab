// fourpiles audit PATH --to FORMAT...

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "audit/against.h"
#include "audit/step.h"
#include "base/error_text.h"
#include "base/try.h"
#include "cli/audit_arguments.h"
#include "cli/commands.h"
#include "cli/progress.h"
#include "report/audit.h"
#include "report/step_audit.h"
#include "tensors/name_pattern.h"
#include "tensors/piles.h"

namespace fourpiles::cli {
namespace {

// Files of which a part cannot be trusted are not read; what is odd about others is a warning.
Result<Checkpoint> Open(const std::string& path, Answer& answer) {
  TRY(Checkpoint checkpoint, OpenCheckpoint(path));
  for (const Finding& finding : AllFindings(checkpoint)) {
    if (finding.verdict == FileVerdict::kRefuse) {
      return BadInput(finding.text);
    }
    if (finding.verdict != FileVerdict::kAccept) {
      answer.warnings.push_back(SentenceOf(finding.text));
    }
  }
  return checkpoint;
}

// The checkpoint that an option names; nothing where it was not given.
Result<std::optional<Checkpoint>> OpenNamed(const Arguments& arguments, std::string_view option,
                                            Answer& answer) {
  if (!arguments.Has(option)) {
    return std::nullopt;
  }
  TRY(Checkpoint checkpoint, Open(std::string(arguments.One(option)), answer));
  return checkpoint;
}

// Without what the optimizer keeps, where that stands beside weights; says how much that is.
Checkpoint WithoutOptimizer(Checkpoint checkpoint, std::int64_t& optimizer_tensors) {
  const std::vector<PiledTensor> piles = TensorPilesOf(checkpoint.tensors);
  if (std::ranges::find(piles, TensorPile::kWeights, &PiledTensor::pile) == piles.end()) {
    return checkpoint;
  }
  std::vector<FileTensor> others;
  others.reserve(piles.size());
  for (std::size_t i = 0; i < piles.size(); ++i) {
    if (piles[i].pile != TensorPile::kOptimizer) {
      others.push_back(std::move(checkpoint.tensors[i]));
    }
  }
  optimizer_tensors = std::ssize(piles) - std::ssize(others);
  checkpoint.tensors = std::move(others);
  return checkpoint;
}

// What is asked of values and of the step alike.
struct Work {
  std::vector<std::string> filters = {};
  int threads = 1;
};

Result<void> AuditValues(const Checkpoint& checkpoint, AuditTargets targets, const Work& work,
                         AuditReport& report) {
  ProgressLine line;
  const AuditOptions options = {.formats = std::move(targets.formats),
                                .overflow = targets.overflow,
                                .filters = work.filters,
                                .threads = work.threads,
                                .progress = [&](const AuditProgress& progress) {
                                  line.Show(progress.bytes_done, progress.bytes);
                                }};
  TRY(report.audit, AuditCheckpoint(checkpoint, options));
  report.findings = FindingsOf(report.audit, report.thresholds);
  return {};
}

Result<void> CompareValues(const Checkpoint& first, const Checkpoint& second, const Work& work,
                           AuditReport& report) {
  ProgressLine line;
  const AuditOptions options = {.filters = work.filters,
                                .threads = work.threads,
                                .progress = [&](const AuditProgress& progress) {
                                  line.Show(progress.bytes_done, progress.bytes);
                                }};
  TRY(Comparison comparison, AuditAgainst(first, second, options));
  report.findings = FindingsOf(comparison, report.thresholds);
  report.audit = std::move(comparison.audit);
  report.only_first = std::move(comparison.only_first);
  report.only_second = std::move(comparison.only_second);
  return {};
}

Result<StepAudit> AuditTheStep(const Arguments& arguments, const Checkpoint& weights,
                               const Work& work, Answer& answer) {
  TRY(StepOptions options, StepOptionsOf(arguments));
  TRY(const std::optional<Checkpoint> state, OpenNamed(arguments, "--state", answer));
  TRY(const std::optional<Checkpoint> gradients, OpenNamed(arguments, "--gradients", answer));
  ProgressLine line;
  options.filters = work.filters;
  options.threads = work.threads;
  options.progress = [&](const StepProgress& progress) {
    constexpr std::int64_t kBytes = 12;  // of a weight and two moments in float32
    line.Show(progress.elements_done * kBytes, progress.elements * kBytes);
  };
  return AuditStep({.weights = &weights,
                    .state = state ? &*state : nullptr,
                    .gradients = gradients ? &*gradients : nullptr},
                   options);
}

// A script that asks of nothing would be told that all is well.
Result<void> CheckFilters(const Checkpoint& checkpoint, const std::vector<std::string>& filters) {
  const auto matches = [&](const FileTensor& tensor) {
    return std::ranges::any_of(
        filters, [&](const std::string& filter) { return Matches(tensor.name, filter); });
  };
  if (filters.empty() || std::ranges::any_of(checkpoint.tensors, matches)) {
    return {};
  }
  return WrongUsage({.where = "--filter",
                     .found = "no tensor has a name like that",
                     .expected = "",
                     .hint = "\"fourpiles inspect PATH --all\" lists the names"});
}

void AddReport(const AuditReport& report, const Arguments& arguments, Answer& answer) {
  if (arguments.Has("--json")) {
    answer.json = AuditJson(report);
  } else if (arguments.Has("--csv")) {
    answer.text = report.step ? StepCsv(*report.step) : AuditCsv(report);
  } else if (arguments.Has("--markdown")) {
    answer.text = AuditMarkdown(report);
  } else {
    answer.text = AuditText(report, {.all = arguments.Has("--all")});
  }
  const bool fault =
      !report.findings.empty() && report.findings.front().severity == AuditSeverity::kFault;
  answer.exit_status = fault ? 1 : 0;
  if (arguments.Has("--to") && report.audit.tensors.empty()) {
    answer.warnings.emplace_back("there is no tensor of real numbers");
  }
}

Result<Answer> Run(const Arguments& arguments) {
  TRY_VOID(CheckTogether(arguments));
  TRY(AuditTargets targets, AuditTargetsOf(arguments));
  Answer answer;
  AuditReport report = {.path = std::string(arguments.One("PATH")),
                        .against = std::string(arguments.One("--against"))};
  TRY(report.thresholds, ThresholdsOf(arguments));
  const auto filters = arguments.All("--filter");
  Work work = {.filters = {filters.begin(), filters.end()}};
  TRY(work.threads, ThreadsOf(arguments));
  TRY(const Checkpoint checkpoint, Open(report.path, answer));
  TRY_VOID(CheckFilters(checkpoint, work.filters));
  if (arguments.Has("--to")) {
    const Checkpoint asked =
        work.filters.empty() ? WithoutOptimizer(checkpoint, report.optimizer_tensors) : checkpoint;
    TRY_VOID(AuditValues(asked, std::move(targets), work, report));
  } else if (arguments.Has("--against")) {
    TRY(const Checkpoint second, Open(report.against, answer));
    TRY_VOID(CompareValues(checkpoint, second, work, report));
  }
  if (AsksForStep(arguments)) {
    TRY(report.step, AuditTheStep(arguments, checkpoint, work, answer));
    for (AuditFinding& finding : FindingsOf(*report.step, report.thresholds)) {
      report.findings.push_back(std::move(finding));
    }
    Rank(report.findings);
  }
  AddReport(report, arguments, answer);
  return answer;
}

}  // namespace

Command AuditCommand() {
  return {
      .name = "audit",
      .summary = "what a change of format does to a checkpoint's numbers, and to a training step",
      .examples =
          "fourpiles audit ./model.safetensors --to fp16 bf16 e4m3 e4m3:scaled\n"
          "fourpiles audit ./Llama-3.1-8B --to mxfp4,nvfp4,nf4 --filter \"*.mlp.*\" --all\n"
          "fourpiles audit ./model-f16.gguf --to q4_0 q8_0 --threshold sqnr-4-bit=18 --csv\n"
          "fourpiles audit ./model.safetensors --to e4m3:scaled --markdown > summary.md\n"
          "fourpiles audit ./Llama-3.1-8B --against ./llama-3.1-8b-q8_0.gguf\n"
          "fourpiles audit ./step-800.pt --learning-rate 1e-4\n"
          "fourpiles audit ./model.safetensors --gradients ./gradients.safetensors",
      .options = AuditOptionRows(),
      .run = Run,
  };
}

}  // namespace fourpiles::cli
