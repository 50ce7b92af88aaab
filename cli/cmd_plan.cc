// fourpiles plan MODEL

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "base/try.h"
#include "cli/budget_command.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "report/plan.h"
#include "units/parse.h"

namespace fourpiles::cli {
namespace {

constexpr Range kSamples = {1, std::int64_t{1} << 40};
constexpr Range kNodes = {1, 1'000'000};
constexpr Range kOthers = {0, 1'000};

constexpr Option kOwnOptions[] = {
    {.name = "--global-batch",
     .value = "N",
     .help = "samples of a step, all devices together (default: one a device)",
     .group = "Search"},
    {.name = "--nodes",
     .value = "N",
     .help = "nodes of --devices-per-host devices each, instead of --devices",
     .group = "Search"},
    {.name = "--link-bandwidth",
     .value = "SIZE",
     .help =
         "bytes a second from one device to others of its node, one way (default: the device's)",
     .group = "Search"},
    {.name = "--network-bandwidth",
     .value = "SIZE",
     .help = "bytes a second from one device to other nodes, one way (default: the device's)",
     .group = "Search"},
    {.name = "--others",
     .value = "N",
     .help = "show so many of the fastest that fit and are not on the front (default 0)",
     .group = "Search"},
};

// Of training, what a search has no use for.
constexpr std::string_view kLeftOut[] = {"--explain", "--markdown",   "--timeline", "--solve",
                                         "--rank",    "--first-step", "--evaluate"};

std::span<const Option> PlanOptions() {
  static const std::vector<Option> options = [] {
    std::vector<Option> all;
    for (const Option& option : BudgetOptions(JobKind::kTrain)) {
      if (std::ranges::find(kLeftOut, option.name) == std::end(kLeftOut)) {
        all.push_back(option);
      }
    }
    all.insert(all.end(), std::begin(kOwnOptions), std::end(kOwnOptions));
    return all;
  }();
  return options;
}

Result<std::optional<std::int64_t>> CountOf(const Arguments& arguments, std::string_view name,
                                            Range range) {
  if (!arguments.Has(name)) {
    return std::nullopt;
  }
  TRY(const std::int64_t count, ParseCount(arguments.One(name), name, range));
  return count;
}

Result<std::optional<Bytes>> RateOf(const Arguments& arguments, std::string_view name) {
  if (!arguments.Has(name)) {
    return std::nullopt;
  }
  TRY(const Bytes rate, ParseBytes(arguments.One(name), name));
  if (rate == Bytes(0)) {
    return WrongUsage({.where = std::string(name),
                       .found = "0 bytes a second",
                       .expected = "expected more",
                       .hint = "for example 50GB"});
  }
  return rate;
}

Result<PlanRequest> RequestOf(const Arguments& arguments) {
  PlanRequest request;
  TRY(request.settings, SettingsFrom(JobKind::kTrain, arguments));
  const auto model = request.settings.find("model");
  if (model == request.settings.end()) {
    return MissingModel();
  }
  request.model = model->second.text;
  TRY(request.samples, CountOf(arguments, "--global-batch", kSamples));
  TRY(request.nodes, CountOf(arguments, "--nodes", kNodes));
  TRY(request.rates.link, RateOf(arguments, "--link-bandwidth"));
  TRY(request.rates.network, RateOf(arguments, "--network-bandwidth"));
  TRY(const auto others, CountOf(arguments, "--others", kOthers));
  request.others = others.value_or(0);
  return request;
}

Result<Answer> AnswerPlan(const Arguments& arguments) {
  TRY(const PlanRequest request, RequestOf(arguments));
  const auto begin = std::chrono::steady_clock::now();
  TRY(const PlanAnswer answer, SearchLayouts(request));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  return Answer{.text = PlanText(answer, {.unit = UnitOf(arguments)}),
                .json = PlanJson(answer),
                .warnings = answer.warnings,
                .notes = {fmt::format("{}; {:.2f} s", SearchWords(answer.counts), took.count())},
                .exit_status = answer.plans.empty() ? 1 : 0};
}

}  // namespace

Command PlanCommand() {
  return {.name = "plan",
          .summary = "search settings and layouts that fit, ranked",
          .examples =
              "fourpiles plan llama-3.1-8b --device h100 --devices 8 -s 8192\n"
              "fourpiles plan llama-3.1-405b --device h100 --nodes 1024 -s 8192 "
              "--global-batch 2048 --tensor-parallel 8 --pipeline-parallel 16\n"
              "fourpiles plan mixtral-8x7b --device a100 --devices 16 --tensor-parallel 4 "
              "--pipeline-parallel 1",
          .options = PlanOptions(),
          .run = AnswerPlan};
}

}  // namespace fourpiles::cli
