#include "cli/audit_arguments.h"

#include <algorithm>
#include <array>
#include <thread>

#include "base/try.h"
#include "cli/block_arguments.h"
#include "cli/command_line.h"
#include "cli/number_arguments.h"
#include "formats/typed_number.h"
#include "units/parse.h"

namespace fourpiles::cli {
namespace {

constexpr std::string_view kStepGroup = "The training step";

constexpr Option kRows[] = {
    {.name = "PATH",
     .value = "PATH",
     .help = "a file, folder or index of tensors: safetensors, GGUF, PyTorch, NumPy",
     .required = true},
    {.name = "--to",
     .value = "FORMAT",
     .help = "formats to try: fp16, e4m3, e4m3:scaled (with a scale a tensor), mxfp4, int8:channel",
     .count = Count::kMany},
    {.name = "--against",
     .value = "PATH",
     .help = "instead of --to: the same tensors as something else has converted them, a GGUF too"},
    {.name = "--filter",
     .value = "NAME",
     .help = "only tensors with this in their name, or whose name matches it: \"*.mlp.*\"",
     .count = Count::kMany},
    {.name = "--overflow",
     .value = "POLICY",
     .help = "past the largest value: saturate (the default), ieee (infinity, else NaN, else the "
             "largest), nan"},
    {.name = "--threshold",
     .value = "NAME=VALUE",
     .help = "from where on something is a finding: saturated=0.1%, sqnr-4-bit=15 (docs/AUDIT.md)",
     .count = Count::kMany},
    {.name = "--threads", .value = "N", .help = "how many work at once; all processors by default"},
    {.name = "--all", .help = "every tensor, and every finding for itself", .count = Count::kFlag},
    {.name = "--csv",
     .help =
         "a line for each tensor in each format, comma-separated: of the formats, or of the step",
     .count = Count::kFlag},
    {.name = "--markdown",
     .help = "a summary for a pull request, the verdict first",
     .count = Count::kFlag},
    {.name = "--learning-rate",
     .value = "RATE",
     .help = "which updates of this size bfloat16 and float16 weights lose, by Adam's state",
     .group = kStepGroup},
    {.name = "--state",
     .value = "PATH",
     .help = "the optimizer's state, where it is not beside the weights",
     .group = kStepGroup},
    {.name = "--gradients",
     .value = "PATH",
     .help = "which of these gradients vanish or overflow, and what loss scale keeps them",
     .group = kStepGroup},
    {.name = "--moments",
     .value = "PATTERNS",
     .help = "names of both moments, \"opt.m.{name},opt.v.{name}\"; else those of known trainers",
     .group = kStepGroup},
    {.name = "--step",
     .value = "N",
     .help = "how many steps were done, where the state does not say",
     .group = kStepGroup},
    {.name = "--beta1", .value = "BETA", .help = "of Adam; 0.9 by default", .group = kStepGroup},
    {.name = "--beta2", .value = "BETA", .help = "of Adam; 0.999 by default", .group = kStepGroup},
    {.name = "--epsilon",
     .value = "EPSILON",
     .help = "of Adam; 1e-8 by default",
     .group = kStepGroup},
    {.name = "--weight-decay",
     .value = "DECAY",
     .help = "of AdamW; 0 by default",
     .group = kStepGroup},
};

// A number of the step; nothing where it was not given.
Result<std::optional<double>> RealOf(const Arguments& arguments, std::string_view option) {
  if (!arguments.Has(option)) {
    return std::nullopt;
  }
  TRY(const TypedNumber number, ParseFiniteNumber(arguments.One(option), option));
  return number.nearest;
}

Result<void> RefuseBoth(const Arguments& arguments, std::string_view one, std::string_view other) {
  if (!arguments.Has(one) || !arguments.Has(other)) {
    return {};
  }
  return WrongUsage({.where = std::string(one),
                     .found = "given with " + std::string(other),
                     .expected = "expected one of the two"});
}

}  // namespace

std::span<const Option> AuditOptionRows() {
  return kRows;
}

bool AsksForStep(const Arguments& arguments) {
  return std::ranges::any_of(std::array{"--learning-rate", "--state", "--gradients"},
                             [&](const char* option) { return arguments.Has(option); });
}

bool AsksForValues(const Arguments& arguments) {
  return arguments.Has("--to") || arguments.Has("--against");
}

Result<void> CheckTogether(const Arguments& arguments) {
  TRY_VOID(RefuseBoth(arguments, "--to", "--against"));
  TRY_VOID(RefuseBoth(arguments, "--csv", "--markdown"));
  const bool step = AsksForStep(arguments);
  if (!step && !AsksForValues(arguments)) {
    return WrongUsage({.where = "--to",
                       .found = "not given",
                       .expected = "expected the formats to try",
                       .hint = "for example --to fp16 bf16 e4m3:scaled mxfp4"});
  }
  TRY_VOID(RefuseIdle(arguments, "--overflow", arguments.Has("--to"), "--to"));
  if (arguments.Has("--csv") && step && AsksForValues(arguments)) {
    return WrongUsage({.where = "--csv",
                       .found = "asked of the formats and of the step at once",
                       .expected = "expected one of the two: they are different tables",
                       .hint = "--json and --markdown have both"});
  }
  const bool has_updates = arguments.Has("--learning-rate") || arguments.Has("--state");
  for (const char* option :
       {"--moments", "--step", "--beta1", "--beta2", "--epsilon", "--weight-decay"}) {
    TRY_VOID(RefuseIdle(arguments, option, has_updates, "--learning-rate or --state"));
  }
  return {};
}

Result<AuditTargets> AuditTargetsOf(const Arguments& arguments) {
  AuditTargets targets;
  std::vector<BlockFormat> blocks;
  for (const std::string& list : arguments.All("--to")) {
    for (const std::string& name :
         FormatItemsOf(list)) {  // PATH leaves --to one word, which may be one
      TRY(AuditFormat format, FindAuditFormat(name));
      if (const auto* const block = std::get_if<BlockFormat>(&format.format)) {
        blocks.push_back(*block);
      }
      if (std::ranges::find(targets.formats, format.name, &AuditFormat::name) ==
          targets.formats.end()) {
        targets.formats.push_back(std::move(format));
      }
    }
  }
  TRY(targets.overflow, OverflowOf(arguments, Overflow::kSaturate));
  TRY_VOID(CheckBlocks(arguments, blocks, NearestEven(targets.overflow)));
  return targets;
}

Result<int> ThreadsOf(const Arguments& arguments) {
  if (!arguments.Has("--threads")) {
    return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  }
  constexpr Range kThreads = {.least = 1, .most = 256};
  TRY(const std::int64_t threads, ParseCount(arguments.One("--threads"), "--threads", kThreads));
  return static_cast<int>(threads);
}

Result<Thresholds> ThresholdsOf(const Arguments& arguments) {
  Thresholds thresholds = DefaultThresholds();
  for (const std::string& list : arguments.All("--threshold")) {
    for (const std::string& typed : ItemsOf(list)) {
      TRY_VOID(SetThreshold(thresholds, typed, "--threshold"));
    }
  }
  return thresholds;
}

Result<StepOptions> StepOptionsOf(const Arguments& arguments) {
  StepOptions options;
  TRY(options.thresholds, ThresholdsOf(arguments));
  TRY(options.learning_rate, RealOf(arguments, "--learning-rate"));
  TRY(options.beta1, RealOf(arguments, "--beta1"));
  TRY(options.beta2, RealOf(arguments, "--beta2"));
  TRY(options.epsilon, RealOf(arguments, "--epsilon"));
  TRY(options.weight_decay, RealOf(arguments, "--weight-decay"));
  TRY(options.step, RealOf(arguments, "--step"));
  if (arguments.Has("--moments")) {
    TRY(options.moments, ParseMomentPatterns(arguments.One("--moments")));
  }
  return options;
}

}  // namespace fourpiles::cli
