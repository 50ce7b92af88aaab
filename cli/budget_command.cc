#include "cli/budget_command.h"

#include <string>
#include <vector>

#include "base/try.h"
#include "cli/command_line.h"
#include "model/text_file.h"
#include "plan/solve.h"
#include "report/budget.h"

namespace fourpiles::cli {
namespace {

constexpr Option kOwnOptions[] = {
    {.name = "MODEL",
     .value = "MODEL",
     .help = "a model of the catalogue, a config.json or its folder, or a parameter count: 1.5B"},
    {.name = "--job",
     .value = "FILE",
     .help = "read the job from a JSON file; options override it"},
    {.name = "--explain",
     .help = "show each allocation, its formula and source",
     .count = Count::kFlag},
    {.name = "--markdown", .help = "print Markdown", .count = Count::kFlag},
};

// The options of one kind of job, and the names that they point to.
struct OptionTable {
  explicit OptionTable(JobKind kind) : settings(SettingsOf(kind)), names(2 * settings.size()) {
    options.assign(std::begin(kOwnOptions), std::end(kOwnOptions));
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

// The job file's settings, overridden by the options.
Result<Settings> SettingsFrom(JobKind kind, const Arguments& arguments) {
  Settings settings;
  if (arguments.Has("--job")) {
    const std::string path(arguments.One("--job"));
    TRY(const std::string text, ReadTextFile(path));
    TRY(const Json json, ReadJson(text, path));
    TRY(settings, SettingsFromJson(json, kind, path));
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

}  // namespace

std::span<const Option> BudgetOptions(JobKind kind) {
  return TableOf(kind).options;
}

Result<Answer> AnswerBudget(JobKind kind, const Arguments& arguments) {
  TRY(const Settings settings, SettingsFrom(kind, arguments));
  const auto model = settings.find("model");
  if (model == settings.end()) {
    return WrongUsage(
        {.where = "MODEL",
         .found = "missing",
         .expected = "expected a model",
         .hint = "\"fourpiles models\" lists the catalogue; a count such as 1.5B works too"});
  }
  TRY(const Job job, MakeJob(kind, model->second.text, settings));
  TRY(const Budget budget, BudgetOf(job));
  const BudgetStyle style = {.unit = UnitOf(arguments), .explain = arguments.Has("--explain")};
  const bool no_solution = job.solve && !budget.solution;
  const bool fits = !budget.verdict || *budget.verdict != Verdict::kDoesNotFit;
  return Answer{.text = arguments.Has("--markdown") ? BudgetMarkdown(budget, style)
                                                    : BudgetText(budget, style),
                .json = BudgetJson(budget),
                .warnings = budget.warnings,
                .exit_status = fits && !no_solution ? 0 : 1};
}

}  // namespace fourpiles::cli
