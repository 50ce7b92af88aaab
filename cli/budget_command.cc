#include "cli/budget_command.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/byte_source.h"
#include "base/try.h"
#include "base/write_file.h"
#include "cli/command_line.h"
#include "cli/engines_command.h"
#include "model/catalogue.h"
#include "model/text_file.h"
#include "plan/check_log.h"
#include "plan/log_job.h"
#include "plan/request_answer.h"
#include "plan/solve.h"
#include "report/budget.h"
#include "report/check_log.h"
#include "report/lengths.h"
#include "report/requests.h"
#include "report/timeline.h"

namespace fourpiles::cli {
namespace {

constexpr Option kOwnOptions[] = {
    {.name = "MODEL",
     .value = "MODEL",
     .help = "a model of the catalogue, its folder or file (config.json, safetensors, an index, "
             "GGUF, PyTorch, NumPy; distributed and DeepSpeed checkpoints), or a "
             "parameter count: 1.5B"},
    {.name = "--job",
     .value = "FILE",
     .help = "read the job from a JSON file; options override it"},
    {.name = "--explain",
     .help = "show each allocation, its formula and source, and what one layer keeps",
     .count = Count::kFlag},
    {.name = "--markdown", .help = "print Markdown", .count = Count::kFlag},
};

// Of training alone.
constexpr Option kTimelineOption = {
    .name = "--timeline",
    .value = "FILE",
    .help = "write what is alive at every moment to FILE.csv or FILE.json"};

// Of serving alone.
constexpr Option kRequestsOption = {
    .name = "--requests",
    .value = "FILE",
    .help =
        "lengths of requests, CSV or JSON (docs/REQUESTS.md): how many fit, at the mean and at "
        "the worst"};

constexpr Option kCheckLogOption = {
    .name = "--check-log",
    .value = "FILE",
    .help =
        "a start-up log of llama.cpp, vLLM or SGLang: its figures beside the predicted ones, "
        "line by line; what the log says of its settings need not be typed (docs/LOGS.md)"};

// The options of one kind of job, and the names that they point to.
struct OptionTable {
  explicit OptionTable(JobKind kind) : settings(SettingsOf(kind)), names(2 * settings.size()) {
    options.assign(std::begin(kOwnOptions), std::end(kOwnOptions));
    if (kind != JobKind::kServe) {
      options.push_back(kTimelineOption);
    } else {
      options.push_back(kRequestsOption);
      options.push_back(kCheckLogOption);
    }
    for (std::size_t i = 0; i < settings.size(); ++i) {
      const Setting& setting = settings[i];
      names[2 * i] = "--" + std::string(setting.name);
      names[2 * i + 1] =
          setting.short_name.empty() ? std::string() : "-" + std::string(setting.short_name);
      options.push_back({.name = names[2 * i],
                         .short_name = names[2 * i + 1],
                         .value = setting.value,
                         .help = setting.help,
                         .group = setting.built ? setting.group : "Not in this version",
                         .count = setting.value.empty() ? Count::kFlag : Count::kOne});
    }
  }
  std::vector<Setting> settings;
  std::vector<std::string> names;
  std::vector<Option> options;
};

const OptionTable& TableOf(JobKind kind) {
  static const OptionTable train(JobKind::kTrain);
  static const OptionTable finetune(JobKind::kFinetune);
  static const OptionTable serve(JobKind::kServe);
  switch (kind) {
    case JobKind::kTrain:
      return train;
    case JobKind::kFinetune:
      return finetune;
    case JobKind::kServe:
      break;
  }
  return serve;
}

enum class TimelineFormat { kCsv, kJson };

// By the ending of the file.
Result<TimelineFormat> TimelineFormatOf(std::string_view path) {
  if (path.ends_with(".csv")) {
    return TimelineFormat::kCsv;
  }
  if (path.ends_with(".json")) {
    return TimelineFormat::kJson;
  }
  return WrongUsage({.where = "--timeline",
                     .found = fmt::format("\"{}\" ends neither in .csv nor in .json", path),
                     .expected = "expected FILE.csv or FILE.json",
                     .hint = "the ending says how it is written"});
}

Result<void> WriteTimeline(const std::string& path, TimelineFormat format, const Tape& tape) {
  return WriteFileAtomically(
      path, format == TimelineFormat::kCsv ? TimelineCsv(tape) : WriteJson(TimelineJson(tape)));
}

// Every layer of the timeline is played for itself.
Result<void> WriteTimelineIfAsked(JobKind kind, const Arguments& arguments, const Budget& budget) {
  if (kind == JobKind::kServe || !arguments.Has("--timeline")) {
    return {};
  }
  const std::string path(arguments.One("--timeline"));
  TRY(const TimelineFormat format, TimelineFormatOf(path));
  TRY(const Tape whole, PlayWhole(budget.job, budget.shown_rank));
  return WriteTimeline(path, format, whole);
}

Result<std::optional<RequestLengths>> RequestsOf(JobKind kind, const Arguments& arguments) {
  if (kind != JobKind::kServe || !arguments.Has("--requests")) {
    return std::nullopt;
  }
  TRY(RequestLengths lengths, ReadRequestLengths(std::string(arguments.One("--requests"))));
  return std::optional(std::move(lengths));
}

// Without --context-length that of the longest request, up to the model's.
void TakeContext(Job& job, const RequestLengths& lengths) {
  for (Default& unset : job.defaults) {
    if (unset.key == "context_length") {
      job.serving.context_length =
          std::clamp<std::int64_t>(lengths.worst, 1, job.serving.context_length);
      unset.value = fmt::to_string(job.serving.context_length);
    }
  }
}

Result<void> AddRequests(Answer& answer, const RequestLengths& lengths, const Job& job) {
  TRY(const RequestAnswer requests, AnswerRequests(job, lengths));
  answer.text += RequestAnswerText(lengths, requests);
  answer.json.emplace_back("requests", RequestAnswerJson(lengths, requests));
  if (requests.share_that_fits < 1) {
    answer.exit_status = 1;
  }
  return {};
}

// Of training: which limits of the length of samples fit.
Result<void> AddLengths(Answer& answer, const Arguments& arguments, const Job& job) {
  if (job.training.data == nullptr) {
    return {};
  }
  TRY(const LengthReport report, ReportLengths(job));
  const BudgetStyle style = {.unit = UnitOf(arguments)};
  answer.text += arguments.Has("--markdown") ? LengthReportMarkdown(job, report, style)
                                             : LengthReportText(job, report, style);
  answer.json.emplace_back("lengths", LengthReportJson(job, report));
  return {};
}

// The model that was typed, else the catalogue's of the log's name: a log names no file of this
// machine.
Result<std::string> ModelOfLog(const Settings& settings, const EngineLog& log,
                               const std::string& path) {
  if (const auto typed = settings.find("model"); typed != settings.end()) {
    return typed->second.text;
  }
  const auto logged = log.model.find("path");
  const std::string name = logged == log.model.end() ? "" : logged->second;
  if (FindModel(name, path)) {
    return name;
  }
  return WrongUsage({.where = "MODEL",
                     .found = name.empty() ? "missing, and the log does not name it"
                                           : fmt::format("missing, and the log's \"{:.80}\" is not "
                                                         "in the catalogue",
                                                         name),
                     .expected = "expected a model",
                     .hint = "its folder or GGUF file, or a name that \"fourpiles models\" lists"});
}

// Start-ups are printed in the first few thousand lines.
constexpr std::int64_t kLargestLog = std::int64_t{256} << 20;

Result<Answer> AnswerCheckLog(const Settings& settings, const Arguments& arguments) {
  const std::string path(arguments.One("--check-log"));
  for (const std::string_view other : {"--requests", "--solve", "--markdown", "--explain"}) {
    if (arguments.Has(other)) {
      return WrongUsage({.where = std::string(other),
                         .found = "asked together with --check-log",
                         .expected = "expected one of the two",
                         .hint = "a log is checked as it was run"});
    }
  }
  TRY(const std::string text, ReadWholeFile(path, kLargestLog));
  TRY(const EngineLog log, ReadEngineLog(text, path));
  TRY(const std::string model, ModelOfLog(settings, log, path));
  TRY(const Job job, JobOfLog(log, path, model, settings));
  TRY(const LogCheck check, CheckLog(log, job));
  const LogCheckHead head = {.path = path, .log = &log, .job = &job};
  return Answer{.text = LogCheckText(head, check),
                .json = LogCheckJson(head, check),
                .warnings = check.warnings,
                .exit_status = check.off == 0 ? 0 : 1};
}

// What --json printed has the job as a member.
const Json& JobIn(const Json& json) {
  const bool is_answer = json.AsObject() != nullptr && json.Find("schema") != nullptr;
  const Json* const job = is_answer ? json.Find("job") : nullptr;
  return job == nullptr ? json : *job;
}

}  // namespace

Result<Settings> SettingsFrom(JobKind kind, const Arguments& arguments) {
  Settings settings;
  if (arguments.Has("--job")) {
    const std::string path(arguments.One("--job"));
    TRY(const std::string text, ReadTextFile(path));
    TRY(const Json json, ReadJson(text, path));
    TRY(settings, SettingsFromJson(JobIn(json), kind, path));
  }
  for (const Setting& setting : TableOf(kind).settings) {
    const std::string name = "--" + std::string(setting.name);
    if (arguments.Has(name)) {
      settings[std::string(setting.name)] = {std::string(arguments.One(name, "true")), name};
    }
  }
  if (arguments.Has("MODEL")) {
    settings["model"] = {std::string(arguments.One("MODEL")), "MODEL"};
  }
  return settings;
}

tl::unexpected<Error> MissingModel() {
  return WrongUsage(
      {.where = "MODEL",
       .found = "missing",
       .expected = "expected a model",
       .hint = "\"fourpiles models\" lists the catalogue; a count such as 1.5B works too"});
}

std::span<const Option> BudgetOptions(JobKind kind) {
  return TableOf(kind).options;
}

Result<Answer> AnswerBudget(JobKind kind, const Arguments& arguments) {
  TRY(const Settings settings, SettingsFrom(kind, arguments));
  if (kind == JobKind::kServe && arguments.Has("--check-log")) {
    return AnswerCheckLog(settings, arguments);
  }
  const auto model = settings.find("model");
  if (model == settings.end()) {
    return MissingModel();
  }
  if (kind == JobKind::kServe && AsksEveryEngine(settings)) {
    return AnswerEngines(arguments, settings);
  }
  TRY(const std::optional<RequestLengths> requests, RequestsOf(kind, arguments));
  TRY(Job job, MakeJob(kind, model->second.text, settings));
  if (requests) {
    TakeContext(job, *requests);
  }
  if (arguments.Has("--timeline")) {
    TRY_VOID(TimelineFormatOf(arguments.One("--timeline")));
  }
  TRY(const Budget budget, BudgetOf(job));
  TRY_VOID(WriteTimelineIfAsked(kind, arguments, budget));
  const BudgetStyle style = {.unit = UnitOf(arguments), .explain = arguments.Has("--explain")};
  Answer answer = {.text = arguments.Has("--markdown") ? BudgetMarkdown(budget, style)
                                                       : BudgetText(budget, style),
                   .json = BudgetJson(budget, style),
                   .warnings = budget.warnings,
                   .exit_status = IsYes(budget) ? 0 : 1};
  if (requests) {
    TRY_VOID(AddRequests(answer, *requests, budget.job));
  }
  TRY_VOID(AddLengths(answer, arguments, budget.job));
  return answer;
}

}  // namespace fourpiles::cli
