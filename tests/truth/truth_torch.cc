// truth_torch FILE: plays every measured configuration of the file, a JSON object a line, and
// compares with what PyTorch held (tests/truth/README.md). Prints one line a row, predicted and
// measured; exits 1 when a row misses: weights, gradients, optimizer state and saved activations
// must agree to the byte, the peak of the backward pass within the limits below.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/byte_source.h"
#include "base/json.h"
#include "step/state.h"
#include "tests/truth/networks.h"

namespace fourpiles::truth {
namespace {

// The limits of docs/ACTIVATIONS.md: the share of rows, and the largest difference they may have.
struct PeakLimit {
  double difference;
  double share;
};
constexpr PeakLimit kTokenRows[] = {{0.01, 0.98}, {0.025, 1.0}};
constexpr PeakLimit kOtherRows[] = {{0.025, 0.95}};

struct Figures {
  std::int64_t weights = 0;
  std::int64_t gradients = 0;
  std::int64_t optimizer = 0;
  std::int64_t saved = 0;
  std::int64_t peak_backward = 0;
};

std::int64_t NumberAt(const Json& json, std::initializer_list<std::string_view> path) {
  const Json* at = &json;
  for (const std::string_view key : path) {
    at = at == nullptr ? nullptr : at->Find(key);
  }
  return at == nullptr || at->AsInteger() == nullptr ? 0 : *at->AsInteger();
}

// The second step, which is a steady one.
Figures Measured(const Row& row) {
  const Json& step = row.json.Find("steps")->AsArray()->at(1);
  return {.weights = NumberAt(row.json, {"weights", "bytes"}),
          .gradients = NumberAt(step, {"grad_bytes"}),
          .optimizer = NumberAt(row.json, {"optimizer", "total_bytes"}) +
                       NumberAt(row.json, {"optimizer", "master_weight_bytes"}),
          .saved = NumberAt(row.json, {"activation_bytes_saved_for_backward"}),
          .peak_backward = NumberAt(step, {"peak_bwd"})};
}

NumberFormat Format(std::string_view name) {
  return FindFormat(name).value();
}

bool IsPureBfloat16(const Row& row) {
  return row.Text("mode") == "pure_bf16" || row.Text("mode") == "bf16_normfp32";
}

Recipe RecipeOf(const Row& row) {
  const NumberFormat weights = Format(IsPureBfloat16(row) ? "bfloat16" : "float32");
  Recipe recipe = {.weights = weights, .compute = weights, .gradients = weights, .states = weights};
  if (!row.Text("master").empty()) {
    recipe.master = recipe.states = Format("float32");
  }
  return recipe;
}

Optimizer OptimizerOf(const Row& row) {
  static const std::map<std::string, const char*> names = {
      {"sgd_mom", "sgd-momentum"},
      {"sgd_nesterov", "sgd-nesterov"},
      {"adam_amsgrad", "adam-amsgrad"},
      {"adam_l2", "adam"},
      {"rmsprop_mom", "rmsprop-momentum"},
      {"rmsprop_centered_mom", "rmsprop-centered"},
      {"lbfgs5", "lbfgs"}};
  const std::string name = row.Text("opt");
  const auto found = names.find(name);
  return FindOptimizer(found == names.end() ? name : found->second).value();
}

Profile ProfileOf(const Row& row) {
  const std::string attention = row.Setting("attn");
  ProfileChoices choices = {.attention = AttentionKind::kEager};
  if (attention == "flash_emu") {
    choices.attention = AttentionKind::kSdpa;
  } else if (attention == "flash_gqa_emu") {
    choices.attention = AttentionKind::kFlash;
  }
  Profile profile = FindProfile("pytorch-1.13-cpu", choices).value();
  profile.framework.dropout_keeps_float_mask =
      row.Setting("dropout_impl") != "native" || row.Text("arch") == "lstm";
  profile.framework.autocast_float32 = row.Text("mode") == "amp_bf16_cuda";
  if (row.Setting("rms_impl") == "fused") {
    UseFusedNorms(profile);
  }
  return profile;
}

Batch BatchOf(const Row& row, const Network& network) {
  Batch batch = {.micro_batch_size = row.Number("b"),
                 .sequence_length = network.tokens_per_sample.value_or(row.Number("s"))};
  if (const Json* layers = row.json.Find("moe_expert_tokens"); layers != nullptr) {
    for (const Json& layer : *layers->AsArray()) {
      std::vector<std::int64_t>& tokens = batch.expert_tokens.emplace_back();
      for (const Json& expert : *layer.AsArray()) {
        tokens.push_back(*expert.AsInteger());
      }
    }
  }
  return batch;
}

Recompute RecomputeOf(const Row& row) {
  const std::string kind = row.Setting("ckpt");
  return {.kind = kind.empty() ? RecomputeKind::kNone : RecomputeKind::kLayers,
          .every = kind.empty() || kind == "all" ? 1 : std::stoll(kind),
          .reentrant = row.Flag("ckpt_reentrant")};
}

// An expert that no token chose in a step gets no gradient, and one that was never chosen has no
// state of the optimizer. Which ones is a matter of the data; the row says how many tensors have
// what. Three tensors of equal size make an expert.
struct WithoutGradient {
  std::int64_t last_step = 0;   // tensors that got no gradient in the step that was measured
  std::int64_t first_step = 0;  // or in the one before it
  std::int64_t both = 0;
};
WithoutGradient TensorsWithoutGradient(const Row& row) {
  const Json* layers = row.json.Find("moe_expert_tokens");
  if (layers == nullptr) {
    return {};
  }
  const std::int64_t tensors = NumberAt(row.json, {"weights", "n_trainable_tensors"});
  const Json& step = row.json.Find("steps")->AsArray()->at(1);
  WithoutGradient without = {
      .last_step = tensors - NumberAt(step, {"n_grads"}),
      .both = tensors - NumberAt(row.json, {"optimizer", "by_key", "step"}) / 4};
  for (const Json& layer : *layers->AsArray()) {
    for (const Json& tokens : *layer.AsArray()) {
      without.first_step += *tokens.AsInteger() == 0 ? 3 : 0;
    }
  }
  return without;
}

std::int64_t Sum(const Resident& resident) {
  std::int64_t sum = 0;
  for (const Storage& storage : resident.storages) {
    sum += storage.bytes.expected.value();
  }
  return sum;
}

// At the end of the backward pass.
std::int64_t GradientBytes(const Tape& tape) {
  return PilesAt(tape, Place::kDevice, std::ssize(tape.moments) - 1).at(Pile::kGradients).value();
}

Part PartOf(const Row& row, const Network& network, const Resident& resident) {
  const bool autocast = row.Text("mode").starts_with("amp");
  const ElementType weights = TypeOf(RecipeOf(row).weights);
  const std::int64_t accumulation = *row.json.Find("accum")->AsInteger();
  return {.rank = "rank 0",
          .network = std::make_shared<const Network>(network),
          .resident = std::make_shared<const Resident>(resident),
          .schedule = TrainingSchedule(
              network, {.micro_batches = accumulation,
                        .every_layer = row.Text("arch") == "moe" || RecomputeOf(row).every > 1}),
          .batch = BatchOf(row, network),
          .numbers = {.weights = weights,
                      .compute = autocast ? TypeOf(Format("bfloat16")) : weights,
                      .autocast = autocast},
          .recompute = RecomputeOf(row)};
}

Figures Predicted(const Row& row) {
  const Network network = NetworkOf(row);
  const Recipe recipe = RecipeOf(row);
  Resident weights = WeightStorages(network, recipe.weights).value();
  const Resident gradients = GradientStorage(network, recipe).value();
  const Resident states = OptimizerStorages(network, recipe, OptimizerOf(row)).value();
  Figures figures = {
      .weights = Sum(weights), .gradients = Sum(gradients), .optimizer = Sum(states)};
  const Optimizer optimizer = OptimizerOf(row);
  const WithoutGradient without = TensorsWithoutGradient(row);
  const std::int64_t expert = row.Number("h") * row.Number("f") * (IsPureBfloat16(row) ? 2 : 4);
  const std::int64_t expert_state = expert * std::ssize(optimizer.states) + 4 * optimizer.scalars;
  figures.gradients -= without.last_step * expert;
  figures.optimizer -= without.both * expert_state;
  weights.Append(states);
  weights.Append(BufferStorages(network, recipe.weights).value());
  weights.Append(BatchStorages(network, BatchOf(row, network), recipe.weights).value());
  Part part = PartOf(row, network, weights);
  const bool* set_none = row.json.Find("set_none")->AsBool();
  if (set_none != nullptr && !*set_none) {
    weights.Append(gradients);
    part.resident = std::make_shared<const Resident>(weights);
    part.gradients = GradientUse::kAdded;
  }
  // On the processor the host's memory is the device's.
  std::int64_t host = 0;
  for (const Storage& storage : states.storages) {
    host += storage.place == Place::kHost ? storage.bytes.expected.value() : 0;
  }
  const Tape tape = Play(part, ProfileOf(row)).value();
  if (part.gradients == GradientUse::kBorn) {
    figures.gradients = GradientBytes(tape) - (without.last_step - without.first_step) * expert;
  }
  figures.saved = SavedActivations(tape).value();
  // The play leaves out gradients of the experts without tokens in the first step.
  figures.peak_backward = host - without.first_step * expert_state -
                          (without.last_step - without.first_step) * expert +
                          PeakOf(tape, Place::kDevice, ActionKind::kBackward).bytes.value();
  if (std::getenv("TRUTH_MOMENT") != nullptr) {
    const Moment moment = PeakOf(tape, Place::kDevice, ActionKind::kBackward).moment;
    fmt::print("    {} ({})\n", MomentName(tape, moment),
               tape.moments[static_cast<std::size_t>(moment)].kind->name);
  }
  if (std::getenv("TRUTH_TRACE") != nullptr) {
    for (Moment moment = 0; moment < std::ssize(tape.moments); ++moment) {
      std::int64_t alive = host;
      for (const auto& [pile, bytes] : PilesAt(tape, Place::kDevice, moment))
        alive += bytes.value();
      fmt::print("{} {} {}\n", alive, MomentName(tape, moment),
                 tape.moments[static_cast<std::size_t>(moment)].kind->name);
    }
  }
  return figures;
}

bool IsExact(const Figures& a, const Figures& b) {
  return a.weights == b.weights && a.gradients == b.gradients && a.optimizer == b.optimizer &&
         a.saved == b.saved;
}

bool IsTokenRow(const Row& row) {
  const std::string arch = row.Text("arch");
  return (arch == "gpt2" || arch == "llama" || arch == "bert" || arch == "moe") &&
         row.Setting("ckpt").empty();
}

class Comparison {
 public:
  void Add(const Row& row) {
    const Figures measured = Measured(row);
    const Figures predicted = Predicted(row);
    const double difference =
        static_cast<double>(predicted.peak_backward) / static_cast<double>(measured.peak_backward) -
        1;
    const bool exact = IsExact(predicted, measured);
    inexact_ += exact ? 0 : 1;
    (IsTokenRow(row) ? token_differences_ : other_differences_).push_back(std::abs(difference));
    fmt::print(
        "{:35} {} weights {} {} gradients {} {} optimizer {} {} saved {} {} peak {} {} {:+.2f} %\n",
        row.Text("id"), exact ? "exact" : "MISS", predicted.weights, measured.weights,
        predicted.gradients, measured.gradients, predicted.optimizer, measured.optimizer,
        predicted.saved, measured.saved, predicted.peak_backward, measured.peak_backward,
        100 * difference);
  }

  // 0 where everything holds.
  int Finish() const {
    const std::size_t rows = token_differences_.size() + other_differences_.size();
    fmt::print("{} rows, {} not exact\n", rows, inexact_);
    bool holds = inexact_ == 0 && rows > 0;
    for (const PeakLimit& limit : kTokenRows) {
      holds = Holds("token rows", token_differences_, limit) && holds;
    }
    for (const PeakLimit& limit : kOtherRows) {
      holds = Holds("other rows", other_differences_, limit) && holds;
    }
    return holds ? 0 : 1;
  }

 private:
  static bool Holds(const char* what, const std::vector<double>& differences,
                    const PeakLimit& limit) {
    const auto within =
        std::count_if(differences.begin(), differences.end(),
                      [&](double difference) { return difference <= limit.difference; });
    fmt::print("backward peak of {}: {} of {} within {} %\n", what, within, differences.size(),
               100 * limit.difference);
    return static_cast<double>(within) >= limit.share * static_cast<double>(differences.size());
  }

  int inexact_ = 0;
  std::vector<double> token_differences_ = {};
  std::vector<double> other_differences_ = {};
};

int Main(const char* path) {
  const Result<std::string> text = ReadWholeFile(path, std::int64_t{1} << 30);
  if (!text) {
    fmt::print(stderr, "{}: {}\n", text.error().text.where, text.error().text.found);
    return 3;
  }
  Comparison comparison;
  std::size_t start = 0;
  while (start < text->size()) {
    const std::size_t end = std::min(text->find('\n', start), text->size());
    const Json json = ReadJson(std::string_view(*text).substr(start, end - start), path).value();
    comparison.Add({json});
    start = end + 1;
  }
  return comparison.Finish();
}

}  // namespace
}  // namespace fourpiles::truth

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: truth_torch FILE.jsonl\n");
    return 2;
  }
  return fourpiles::truth::Main(argv[1]);
}
