// One kernel by itself: losses over logits, and output layers with their loss.

#include <array>
#include <charconv>
#include <memory>

#include <fmt/format.h>

#include "base/checked.h"
#include "base/try.h"
#include "plan/validate_fields.h"
#include "plan/validate_training.h"
#include "step/profile.h"
#include "step/schedule.h"
#include "step/state.h"

namespace fourpiles {
namespace {

struct KernelRun {
  bool liger = false;
  bool with_output_layer = false;
  std::int64_t tokens = 0;  // 0: the row does not say
  std::int64_t hidden_size = 0;
  std::int64_t vocabulary = 0;
  NumberFormat format = {};
};

// The number behind "vocab size=".
std::optional<std::int64_t> CountBehind(std::string_view text, std::string_view name) {
  if (!text.starts_with(name)) {
    return std::nullopt;
  }
  text.remove_prefix(name.size());
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && count > 0 && count < kLargestAmount ? std::optional(count) : std::nullopt;
}

Result<void> ReadSpecials(KernelRun& run, const Fields& row) {
  TRY(const auto specials, row.Texts("special"));
  for (const std::string_view special : specials) {
    if (special == "liger" || special == "huggingface") {
      run.liger = special == "liger";
    } else if (const auto words = CountBehind(special, "vocab size=")) {
      run.vocabulary = *words;
    } else if (const auto rows = CountBehind(special, "B x T=")) {
      run.tokens = *rows;
    } else {
      return NotExpressible(fmt::format("special: \"{}\" is not in the vocabulary", special));
    }
  }
  return {};
}

// What the figure is of: anything else is not what is played here.
Result<void> CheckFigure(const Fields& row) {
  struct Wanted {
    std::string_view field;
    std::string_view word;
  };
  constexpr Wanted kWanted[] = {
      {"mode", "kernel fwd+bwd peak"}, {"metric", "allocated"}, {"measures", "kernel"}};
  for (const auto& [field, word] : kWanted) {
    if (const std::string text = RunText(row, field); text != word) {
      return NotExpressible(fmt::format("{}: \"{}\" of a kernel is not \"{}\"", field, text, word));
    }
  }
  TRY(const auto usable, row.OptionalBool("usable"));
  if (usable && !*usable) {
    return NotExpressible("the row is marked as contradicting itself");
  }
  return {};
}

Result<void> CheckSizes(const KernelRun& run) {
  if (run.tokens == 0) {
    return NotExpressible("no fields arch.B and arch.T, or \"B x T=\" in special");
  }
  if (run.vocabulary == 0) {
    return NotExpressible("no field arch.V, or \"vocab size=\" in special");
  }
  return run.hidden_size == 0 && run.with_output_layer ? NotExpressible("no field arch.H")
                                                       : Result<void>();
}

Result<KernelRun> KernelRunOf(const Fields& row) {
  TRY_VOID(CheckFigure(row));
  KernelRun run;
  const std::string model = RunText(row, "model");
  run.with_output_layer = model == "fused_linear_cross_entropy kernel";
  if (!run.with_output_layer && model != "cross_entropy kernel") {
    return NotExpressible(fmt::format("model: \"{}\" is no kernel that is described", model));
  }
  const std::string precision = RunText(row, "precision");
  const std::string_view name = precision.starts_with("torch.")
                                    ? std::string_view(precision).substr(6)
                                    : std::string_view(precision);
  TRY(run.format, FindFormat(name));
  const Checked tokens = Checked(CountOr(row, {"B"}, 0)) * CountOr(row, {"T"}, 0);
  if (!tokens.ok()) {
    return NotExpressible("arch.B × arch.T passes 2^53");
  }
  run.tokens = tokens.value();
  run.hidden_size = CountOr(row, {"H"}, 0);
  run.vocabulary = CountOr(row, {"V"}, 0);
  TRY_VOID(ReadSpecials(run, row));
  TRY_VOID(CheckSizes(run));
  return run;
}

// The inputs are parameters here: they are there before and after, and have gradients.
Network NetworkOf(const KernelRun& run) {
  Network network;
  const std::int64_t width = run.with_output_layer ? run.hidden_size : run.vocabulary;
  Block block = {.parameters = {{.name = "input", .shape = {run.tokens, width}}}};
  if (run.with_output_layer) {
    block.parameters.push_back({.name = "lin.weight", .shape = {run.vocabulary, run.hidden_size}});
  }
  Operator loss = {
      .kind = OperatorKind::kLoss, .inputs = {1}, .outputs = {2}, .widths = {run.vocabulary}};
  if (run.with_output_layer) {
    loss.parameters = {{.parameter = 1}};
  }
  block.operators = {{.kind = OperatorKind::kConstant,
                      .outputs = {1},
                      .parameters = {{.parameter = 0}},
                      .widths = {width}},
                     loss};
  network.blocks.push_back(std::move(block));
  return network;
}

// The benchmark makes the modules of both implementations, each with weights of its own
// (Liger-Kernel, benchmark/scripts/benchmark_fused_linear_cross_entropy.py).
Result<void> AddOtherModule(Resident& resident, const KernelRun& run) {
  if (!run.with_output_layer) {
    return {};
  }
  Network other;
  other.blocks = {{.parameters = {{.name = "lin.weight of the other implementation",
                                   .shape = {run.vocabulary, run.hidden_size}}}}};
  TRY(Resident weights, WeightStorages(other, run.format));
  resident.Append(std::move(weights));
  return {};
}

// The benchmark runs the kernel again and again, so that gradients are there already; those of a
// loss that writes them in place of its input are that input.
bool HasGradientsBefore(const KernelRun& run) {
  return run.with_output_layer || !run.liger;
}

}  // namespace

Result<Prediction> PredictKernelRun(const Fields& row) {
  TRY(const KernelRun run, KernelRunOf(row));
  const Network network = NetworkOf(run);
  TRY_VOID(CheckNetwork(network, "arch"));
  Recipe recipe = {.weights = run.format, .compute = run.format, .gradients = run.format};
  TRY(Resident resident, WeightStorages(network, run.format));
  TRY_VOID(AddOtherModule(resident, run));
  if (HasGradientsBefore(run)) {
    TRY(Resident gradients, GradientStorage(network, recipe));
    resident.Append(std::move(gradients));
  }
  const Part part = {.network = std::make_shared<const Network>(network),
                     .resident = std::make_shared<const Resident>(std::move(resident)),
                     .schedule = TrainingSchedule(network, {}),
                     .numbers = {.weights = TypeOf(run.format), .compute = TypeOf(run.format)},
                     .gradients = GradientUse::kAdded};
  ProfileChoices choices;
  if (run.liger && !run.with_output_layer) {
    choices.loss = LossKind::kFused;
  }
  TRY(Profile profile,
      FindProfile(run.liger && run.with_output_layer ? "liger" : "pytorch", choices));
  if (!run.liger) {
    UseUncastLoss(profile);
  }
  TRY(const Tape tape, Play(part, profile));
  return Prediction{
      .value = static_cast<double>(PeakOf(tape, Place::kDevice).bytes.value()),
      .unit = "bytes",
      .closeness = RunText(row, "confidence") == "low" ? Closeness::kShown : Closeness::kBand,
      // torch.cuda.max_memory_allocated() / 2**20 (benchmark/scripts/utils.py).
      .means_unit = RunText(row, "unit") == "MB" ? "MiB" : ""};
}

}  // namespace fourpiles
