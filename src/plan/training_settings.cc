// The settings of a training step.

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/try.h"
#include "plan/setting_reader.h"
#include "units/parse.h"

namespace fourpiles {
namespace {

constexpr std::string_view kDefaultRecipe = "mixed-bf16";
constexpr std::string_view kDefaultOptimizer = "adamw";
constexpr std::string_view kExact = "exact";
constexpr std::string_view kLowerBoundWord = "lower-bound";

// "none", "selective", "selective-op", "full", "every:K".
Result<Recompute> ReadRecompute(SettingReader& reader) {
  const SetValue set = reader.Text("recompute", "none");
  constexpr std::string_view kEvery = "every:";
  if (set.text == "none") {
    return Recompute();
  }
  if (set.text == "selective") {
    return Recompute{.kind = RecomputeKind::kAttention};
  }
  if (set.text == "selective-op") {
    return Recompute{.kind = RecomputeKind::kOperators};
  }
  if (set.text == "full") {
    return Recompute{.kind = RecomputeKind::kLayers};
  }
  if (set.text.starts_with(kEvery)) {
    TRY(const std::int64_t every,
        ParseCount(set.text.substr(kEvery.size()), set.where, {1, 1 << 12}));
    return Recompute{.kind = RecomputeKind::kLayers, .every = every};
  }
  return WrongUsage({.where = set.where,
                     .found = fmt::format("unknown word \"{}\"", set.text),
                     .expected = "expected none, selective, selective-op, full or every:K",
                     .hint = "every:2 runs every second layer again"});
}

struct Loss {
  std::optional<LossKind> kind = {};
  std::int64_t chunks = 1;
};

// "plain", "fused", "chunked:N"; without it the implementation's own.
Result<Loss> ReadLoss(const SettingReader& reader) {
  const SetValue* set = reader.Find("loss");
  constexpr std::string_view kChunked = "chunked:";
  if (set == nullptr) {
    return Loss();
  }
  if (set->text == "plain") {
    return Loss{.kind = LossKind::kPlain};
  }
  if (set->text == "fused") {
    return Loss{.kind = LossKind::kFused};
  }
  if (set->text.starts_with(kChunked)) {
    TRY(const std::int64_t chunks,
        ParseCount(set->text.substr(kChunked.size()), set->where, {1, 1 << 16}));
    return Loss{.kind = LossKind::kChunked, .chunks = chunks};
  }
  return WrongUsage({.where = set->where,
                     .found = fmt::format("unknown word \"{}\"", set->text),
                     .expected = "expected plain, fused or chunked:N",
                     .hint = "chunked:8 makes the logits of an eighth of the tokens at a time"});
}

Result<std::optional<AttentionKind>> ReadAttention(const SettingReader& reader) {
  const SetValue* set = reader.Find("attention");
  if (set == nullptr) {
    return std::nullopt;
  }
  constexpr std::pair<std::string_view, AttentionKind> kKinds[] = {
      {"eager", AttentionKind::kEager},
      {"sdpa", AttentionKind::kSdpa},
      {"flash", AttentionKind::kFlash}};
  for (const auto& [name, kind] : kKinds) {
    if (set->text == name) {
      return kind;
    }
  }
  return WrongUsage({.where = set->where,
                     .found = fmt::format("unknown word \"{}\"", set->text),
                     .expected = "expected eager, sdpa or flash",
                     .hint = "sdpa is what transformers uses"});
}

// "exact" plays the operators of the network; a bare count has none.
Result<void> ReadActivations(SettingReader& reader, const Job& job, TrainingJob& training) {
  const bool known = OperatorsAreKnown(job.model.network) && !job.bare_count;
  const SetValue set = reader.Text("activations", known ? kExact : kLowerBoundWord);
  if (set.text == kExact && !known) {
    return WrongUsage({.where = set.where,
                       .found = fmt::format("the operators of {} are not known", job.model.name),
                       .expected = "expected lower-bound",
                       .hint = "a model with a config.json of a described architecture"});
  }
  if (set.text != kExact && set.text != kLowerBoundWord) {
    return WrongUsage({.where = set.where,
                       .found = fmt::format("unknown word \"{}\"", set.text),
                       .expected = "expected exact or lower-bound"});
  }
  training.lower_bound = set.text == kLowerBoundWord;
  return {};
}

Result<void> ReadImplementation(SettingReader& reader, TrainingJob& training) {
  TRY(training.attention, ReadAttention(reader));
  TRY(const Loss loss, ReadLoss(reader));
  training.loss = loss.kind;
  training.loss_chunks = loss.chunks;
  const SetValue implementation = reader.Text("implementation", ImplementationNames().front());
  ProfileChoices choices = {.attention = training.attention, .loss = training.loss};
  const SetValue* attention = reader.Find("attention");
  choices.attention_where = attention == nullptr ? choices.attention_where : attention->where;
  const SetValue* set_loss = reader.Find("loss");
  choices.loss_where = set_loss == nullptr ? choices.loss_where : set_loss->where;
  TRY(training.profile, FindProfile(implementation.text, choices, implementation.where));
  for (const char* const setting : {"adapter", "freeze", "train-only", "evaluate", "offload"}) {
    const SetValue* set = reader.Find(setting);
    if (set != nullptr && set->text != "none" && training.profile.allocates_once) {
      return WrongUsage({.where = set->where,
                         .found = fmt::format("{} has none", training.profile.name),
                         .expected = "expected another implementation",
                         .hint = "--implementation pytorch has it"});
    }
  }
  training.implementation = implementation.text;
  if (training.lower_bound) {
    training.profile = LowerBound();
  }
  TRY(training.recompute, ReadRecompute(reader));
  // Recipes with a master copy come from frameworks whose optimizers are fused kernels (apex,
  // DeepSpeed FusedAdam); PyTorch's own run over all tensors kernel by kernel on CUDA, where an
  // optimizer has such kernels.
  static constexpr std::array<std::string_view, 4> kKernels = {"loop", "foreach", "fused",
                                                               "in-backward"};
  const std::size_t own = training.optimizer.foreach_temporaries ? 1 : 0;
  const std::size_t usual = training.lower_bound || (own == 1 && training.recipe.master) ? 2 : own;
  TRY(const std::size_t kernels, reader.Word("optimizer-kernels", kKernels, usual));
  training.step_kernels = static_cast<StepKernels>(kernels);
  return {};
}

bool CodesAny(const Network& network, const WeightScheme& scheme) {
  return std::ranges::any_of(network.blocks, [&](const Block& block) {
    return std::ranges::any_of(block.parameters, [&](const Parameter& parameter) {
      return !StaysPlain(block, parameter, scheme);
    });
  });
}

// Of frozen linear layers: bitsandbytes' and the like.
Result<void> ReadBase(SettingReader& reader, const Job& job, TrainingJob& training) {
  const SetValue* set = reader.Find("base-format");
  if (set == nullptr) {
    return {};
  }
  if (TrainableParameterCount(job.model.network) == ParameterCount(job.model.network)) {
    return WrongUsage({.where = set->where,
                       .found = "no weight is frozen",
                       .expected = "expected an adapter, or frozen parts",
                       .hint = "--adapter lora:rank=16 freezes the rest"});
  }
  TRY(WeightScheme scheme, FindWeightScheme(set->text, set->where));
  if (scheme.coding == WeightCoding::kPlain) {
    return WrongUsage({.where = set->where,
                       .found = fmt::format("\"{}\" has no scales", set->text),
                       .expected = "expected codes with scales, nf4 or another",
                       .hint = "--recipe says the format of all weights"});
  }
  scheme.plain = training.recipe.weights;
  scheme.of_frozen = true;
  scheme.with_output_layer = training.profile.codes_output_layer;
  if (!CodesAny(job.model.network, scheme)) {
    return WrongUsage({.where = set->where,
                       .found = fmt::format("{} codes no frozen weight of this model", set->text),
                       .expected = "expected a scheme for frozen linear layers",
                       .hint = "nf4 codes the matrices of the layers, where they are frozen"});
  }
  training.base = std::move(scheme);
  training.base_format = set->text;
  return {};
}

// "activations", "optimizer", "parameters", several joined by +.
Result<void> ReadOffload(const SettingReader& reader, TrainingJob& training) {
  const SetValue* set = reader.Find("offload");
  if (set == nullptr) {
    return {};
  }
  std::string_view rest = set->text;
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find('+'));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    if (word == "activations") {
      training.offloads_activations = true;
    } else if (word == "optimizer") {
      training.offloads_optimizer = true;
    } else if (word == "parameters") {
      training.offloads_parameters = true;
    } else {
      return WrongUsage({.where = set->where,
                         .found = fmt::format("unknown word \"{}\"", word),
                         .expected = "expected activations, optimizer or parameters",
                         .hint = "several are joined: optimizer+activations"});
    }
  }
  return {};
}

// A step with every gradient as it comes, beside what needs them all.
Result<void> CheckStepInBackward(const SettingReader& reader, const TrainingJob& training) {
  struct Conflict {
    bool stands;
    std::string_view beside;
    std::string_view hint;
  };
  const Conflict conflicts[] = {
      {training.gradient_accumulation > 1, "gradient accumulation", "--gradient-accumulation 1"},
      {training.layout.zero > 0 || training.layout.fsdp, "sharded gradients", "leave one out"},
      {training.recipe.loss_scaler, "a loss scaler, which looks at all gradients first",
       "--recipe amp-bf16 has none"},
      {training.optimizer.names.id == "lbfgs", "L-BFGS, which steps over all parameters at once",
       "--optimizer adamw"},
      {training.profile.allocates_once, "an implementation that allocates everything once",
       "--implementation pytorch has it"},
      {training.evaluates, "--evaluate, which makes no step", "leave one out"}};
  for (const Conflict& conflict : conflicts) {
    if (training.step_kernels == StepKernels::kInBackward && conflict.stands) {
      return WrongUsage({.where = reader.Find("optimizer-kernels")->where,
                         .found = fmt::format("in-backward beside {}", conflict.beside),
                         .expected = "expected another kind",
                         .hint = std::string(conflict.hint)});
    }
  }
  return {};
}

// Codes of experts that are spread over devices already are not sharded once more.
Result<void> CheckCodes(const SettingReader& reader, const TrainingJob& training) {
  const ShardRanks ranks = SharesOf(training.layout).weights;
  if (training.base && ranks.dense != ranks.experts) {
    return WrongUsage({.where = reader.Find("base-format")->where,
                       .found = "coded experts that are spread and sharded",
                       .expected = "expected --expert-parallel or sharded weights",
                       .hint = "not in this version: leave one out"});
  }
  return {};
}

// What makes no sense side by side.
Result<void> CheckTogether(const SettingReader& reader, const TrainingJob& training) {
  TRY_VOID(CheckStepInBackward(reader, training));
  TRY_VOID(CheckCodes(reader, training));
  if (training.offloads_activations && (training.lower_bound || training.evaluates)) {
    return WrongUsage(
        {.where = reader.Find("offload")->where,
         .found = training.lower_bound ? "a lower bound has no activations to move"
                                       : "--evaluate keeps no activations",
         .expected =
             training.lower_bound ? "expected --activations exact" : "expected a training step",
         .hint = training.lower_bound ? "give a model with layers" : "leave one out"});
  }
  return {};
}

}  // namespace

namespace {

// As many as keep a pipeline full.
Result<void> ReadMicroBatches(SettingReader& reader, TrainingJob& training) {
  const Layout& layout = training.layout;
  const std::int64_t usual = layout.pipeline > 1 ? 2 * layout.pipeline : 1;
  TRY(training.gradient_accumulation, reader.Count("gradient-accumulation", usual, kSizes));
  if (layout.chunks > 1 && training.gradient_accumulation % layout.pipeline != 0) {
    return WrongUsage(
        {.where = "--gradient-accumulation",
         .found = fmt::format("{} micro-batches of an interleaved pipeline of {} stages",
                              training.gradient_accumulation, layout.pipeline),
         .expected = fmt::format("expected a multiple of {}", layout.pipeline),
         .hint = "Megatron-LM's interleaved schedule runs them in groups of as many as there are "
                 "stages"});
  }
  return {};
}

// Every rank has as many tokens. A sample is filled up to that.
Result<void> DealTokens(TrainingJob& training, bool fills) {
  const Layout& layout = training.layout;
  const std::int64_t pieces = TokenPieces(layout);
  if (fills) {
    training.sequence_length = InPieces(training.sequence_length, layout);
  }
  if (training.sequence_length % pieces != 0) {
    return WrongUsage(
        {.where = layout.context > 1 ? "--context-parallel" : "--sequence-parallel",
         .found = fmt::format("{} tokens in {} pieces", training.sequence_length, pieces),
         .expected = fmt::format("expected a multiple of {} tokens", pieces),
         .hint = fmt::format("--sequence-length {}",
                             (training.sequence_length / pieces + 1) * pieces)});
  }
  return {};
}

}  // namespace

Result<TrainingJob> ReadTraining(SettingReader& reader, const Job& job) {
  const Network& network = job.model.network;
  TrainingJob training;
  const SetValue recipe = reader.Text("recipe", kDefaultRecipe);
  TRY(training.recipe, FindRecipe(recipe.text, recipe.where));
  training.recipe_word = reader.Find("recipe") == nullptr ? "" : recipe.text;
  const SetValue optimizer = reader.Text("optimizer", kDefaultOptimizer);
  TRY(training.optimizer, FindOptimizer(optimizer.text, optimizer.where));
  TRY(training.micro_batch_size, reader.Count("micro-batch-size", 1, kSizes));
  const std::int64_t longest = network.max_position_embeddings.value_or(kDefaultSequenceLength);
  const std::int64_t usual = std::min(longest, kDefaultSequenceLength);
  TRY(training.sequence_length,
      reader.Count("sequence-length", network.tokens_per_sample.value_or(usual), kSizes));
  TRY(training.layout, ReadLayout(reader, job));
  TRY(training.shown_rank, ReadRank(reader, training.layout));
  TRY_VOID(ReadMicroBatches(reader, training));
  TRY_VOID(ReadActivations(reader, job, training));
  TRY(training.activation_format, reader.Format("activation-format", training.recipe.compute));
  TRY_VOID(ReadImplementation(reader, training));
  training.evaluates = reader.Find("evaluate") != nullptr;
  training.expandable_segments = reader.Flag("expandable-segments");
  static constexpr std::array<std::string_view, 2> kBatches = {"alike", "shorter"};
  // A default to be told only where something is held over.
  if (training.profile.framework.loop_holds_logits || reader.Find("later-batches") != nullptr) {
    TRY(const std::size_t batches, reader.Word("later-batches", kBatches, 0));
    training.later_batches_are_shorter = batches == 1;
  }
  TRY_VOID(ReadBase(reader, job, training));
  TRY_VOID(ReadOffload(reader, training));
  training.first_step = reader.Flag("first-step");
  TRY_VOID(CheckTogether(reader, training));
  TRY_VOID(DealTokens(training, reader.Find("length-histogram") != nullptr));
  return training;
}

}  // namespace fourpiles
