// fourpiles validate RUNS.jsonl

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/byte_source.h"
#include "base/nearest_name.h"
#include "base/try.h"
#include "cli/commands.h"
#include "report/accuracy.h"
#include "report/validation.h"

namespace fourpiles::cli {
namespace {

constexpr std::int64_t kMostBytes = 100'000'000;
constexpr std::size_t kMostFaults = 20;  // for a person to read; --json has all

constexpr Option kOptions[] = {
    {.name = "RUNS",
     .value = "RUNS.jsonl",
     .help = "measured runs, a JSON object a line (docs/RUNS.md)",
     .required = true},
    {.name = "--tolerance",
     .value = "PERCENT",
     .help = "how far a judged row may be off, instead of what its kind asks"},
    {.name = "--kind",
     .value = "KIND",
     .help = "only rows of this kind: vllm_available, llm",
     .count = Count::kMany},
    {.name = "--markdown",
     .help = "print the page of accuracy as Markdown: by metric and source, every row",
     .count = Count::kFlag},
};

Result<std::optional<double>> ToleranceOf(const Arguments& arguments) {
  if (!arguments.Has("--tolerance")) {
    return std::nullopt;
  }
  std::string_view text = arguments.One("--tolerance");
  const std::string typed(text);
  if (text.ends_with('%')) {
    text.remove_suffix(1);
  }
  double percent = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), percent);
  if (error != std::errc() || end != text.data() + text.size() || !(percent >= 0) ||
      !std::isfinite(percent)) {
    return WrongUsage({.where = "--tolerance",
                       .found = "\"" + typed + "\"",
                       .expected = "expected a number of percent from 0",
                       .hint = "for example --tolerance 5"});
  }
  return percent / 100;
}

Result<void> CheckKinds(std::span<const std::string> asked, std::span<const RunKind> kinds) {
  std::vector<std::string_view> names(kinds.size());
  std::ranges::transform(kinds, names.begin(), &RunKind::kind);
  for (const std::string& kind : asked) {
    if (std::ranges::find(names, kind) == names.end()) {
      return WrongUsage({.where = "--kind",
                         .found = "unknown kind \"" + kind + "\"",
                         .expected = DidYouMean(kind, names),
                         .hint = fmt::format("one of {}", fmt::join(names, ", "))});
    }
  }
  return {};
}

Result<Answer> Run(const Arguments& arguments) {
  const std::string path(arguments.One("RUNS"));
  const auto only = arguments.All("--kind");
  ValidationChoice choice = {.kinds = {only.begin(), only.end()}};
  TRY(choice.tolerance, ToleranceOf(arguments));
  const auto llamacpp = LlamacppRunKinds();
  const auto pools = PoolRunKinds();
  std::vector<RunKind> kinds(llamacpp.begin(), llamacpp.end());
  kinds.insert(kinds.end(), pools.begin(), pools.end());
  const auto training = TrainingRunKinds();
  kinds.insert(kinds.end(), training.begin(), training.end());
  TRY_VOID(CheckKinds(choice.kinds, kinds));
  TRY(const std::string text, ReadWholeFile(path, kMostBytes));
  const Validation validation = Validate(text, path, kinds, choice);
  Answer answer = {.text = arguments.Has("--markdown")
                               ? AccuracyMarkdown(validation, AccuracyOf(validation))
                               : ValidationText(validation),
                   .json = ValidationJson(validation)};
  answer.errors = validation.faults;
  if (answer.errors.size() > kMostFaults) {
    answer.warnings.push_back(
        fmt::format("{} more lines are not rows", answer.errors.size() - kMostFaults));
    answer.errors.resize(kMostFaults);
  }
  answer.exit_status = validation.all.off == 0 ? 0 : 1;
  if (validation.all.compared == 0) {
    answer.warnings.emplace_back("no row could be compared");
    answer.exit_status = 1;
  }
  if (!validation.faults.empty()) {
    answer.exit_status = 3;
  }
  return answer;
}

}  // namespace

constexpr Command kValidateCommand = {
    .name = "validate",
    .summary = "predictions against measured runs",
    .examples =
        "fourpiles validate ./runs.jsonl\n"
        "fourpiles validate ./runs.jsonl --kind vllm_available --tolerance 1\n"
        "fourpiles validate ./runs.jsonl --json\n"
        "fourpiles validate ./runs.jsonl --markdown > accuracy.md",
    .options = kOptions,
    .run = Run,
};

}  // namespace fourpiles::cli
