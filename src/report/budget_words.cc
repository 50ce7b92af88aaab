#include "report/budget_words.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/terminal_text.h"
#include "plan/adapter_setting.h"
#include "step/lines.h"
#include "units/print.h"

namespace fourpiles {
namespace {

bool IsServing(const Budget& budget) {
  return budget.job.kind == JobKind::kServe;
}

bool ShowsAnother(const Budget& budget) {
  return !budget.shown_rank.empty() && budget.shown_rank != budget.worst_rank;
}

std::string DeviceCount(const Budget& budget) {
  if (budget.ranks.size() > 1) {
    const bool other = ShowsAnother(budget);
    return fmt::format(", {} of {} devices{}", other ? budget.shown_rank : budget.worst_rank,
                       budget.job.devices, other ? "; the most have " + budget.worst_rank : "");
  }
  return budget.job.devices == 1 ? "" : fmt::format(", each of {} devices", budget.job.devices);
}

std::string SolutionWords(const Budget& budget) {
  const std::string_view unknown = Name(*budget.job.solve);
  return budget.solution ? fmt::format("Solved: {} {}.", unknown, *budget.solution)
                         : fmt::format("Solved: no {} fits.", unknown);
}

std::string FileWords(const Budget::FileShare& file, const BudgetStyle& style) {
  return fmt::format("Training needs {:.3g} × this file's weights ({} in {}).", file.times,
                     PrintBytes(file.weights, style.unit), file.format);
}

std::string DefaultWords(const std::vector<Default>& defaults) {
  std::vector<std::string> words;
  words.reserve(defaults.size());
  for (const Default& unset : defaults) {
    words.push_back(unset.key + " " + unset.value);
  }
  return fmt::format("Defaults: {}.", fmt::join(words, ", "));
}

std::string PoolWords(const ServingFigures& figures, const BudgetStyle& style) {
  if (!figures.pool) {
    return fmt::format("; {} tokens in all.", PrintGrouped(figures.cache_tokens));
  }
  if (figures.pool->bytes == Bytes(0)) {
    return "; nothing is left for a pool of it.";
  }
  return fmt::format("; the pool of {} holds {} tokens in {} blocks of {}.",
                     PrintBytes(figures.pool->bytes, style.unit),
                     PrintGrouped(figures.pool->tokens), PrintGrouped(figures.pool->blocks),
                     figures.pool->block_tokens);
}

// The output layer counts as one.
std::string GpuLayersWords(const Budget& budget) {
  const std::optional<std::int64_t>& fit = budget.serving->gpu_layers;
  if (!fit) {
    return "";
  }
  const std::int64_t all = budget.job.model.network.num_hidden_layers.value_or(0) + 1;
  return fmt::format(" {}{} layers fit the device{}, the output layer as one.",
                     *fit >= all ? "All " : fmt::format("At most {} of ", *fit), all,
                     budget.job.devices == 1 ? "" : "s");
}

std::string ServingWords(const Budget& budget, const BudgetStyle& style) {
  const ServingFigures& figures = *budget.serving;
  std::string words =
      fmt::format("A token takes {} of cache", PrintBytes(figures.cache_per_token, style.unit));
  if (figures.state_per_request != Bytes(0)) {
    words +=
        fmt::format(", a request {} besides", PrintBytes(figures.state_per_request, style.unit));
  }
  words += PoolWords(figures, style) + GpuLayersWords(budget);
  if (figures.max_concurrency) {
    words += fmt::format(" At most {} requests of {} tokens fit.",
                         PrintGrouped(*figures.max_concurrency),
                         PrintGrouped(TokensOf(budget.job.serving)));
  }
  return words;
}

// The verdict is that of the fullest rank, whichever is shown.
std::string WhoseVerdict(const Budget& budget) {
  return ShowsAnother(budget) ? fmt::format(" ({})", budget.worst_rank) : "";
}

std::string TotalWords(const Budget& budget, const BudgetStyle& style) {
  const Band& total = budget.total;
  const std::string expected = PrintBytes(total.expected, style.unit);
  return total.low == total.high
             ? fmt::format("In all {}{}.", expected, WhoseVerdict(budget))
             : fmt::format("In all {}, between {} and {}{}.", expected,
                           PrintBytes(total.low, style.unit), PrintBytes(total.high, style.unit),
                           WhoseVerdict(budget));
}

// Of a training step that does not fit. What was not decided may be enough.
bool NoneIsEnough(const Budget& budget) {
  return !IsServing(budget) && !budget.advice.empty() &&
         std::ranges::all_of(budget.advice,
                             [](const Advice& advice) { return advice.enough == false; });
}

// One screen has no room for more.
constexpr std::size_t kMostAdvice = 8;

void AddAdvice(const Budget& budget, const BudgetStyle& style, std::vector<std::string>& remarks) {
  const std::size_t shown = std::min(budget.advice.size(), kMostAdvice);
  for (std::size_t i = 0; i < shown; ++i) {
    const Advice& advice = budget.advice[i];
    remarks.push_back(
        fmt::format("Saves {} at the peak{}: {} ({}).", PrintBytes(advice.saves, style.unit),
                    advice.enough.value_or(false) ? ", enough" : "", advice.change, advice.costs));
  }
  if (shown < budget.advice.size()) {
    remarks.push_back(
        fmt::format("{} more that save less: see --json.", budget.advice.size() - shown));
  }
  if (NoneIsEnough(budget)) {
    remarks.emplace_back("None of these is enough alone.");
  }
}

// "Recipe "bf16" is read as bf16, 8.0 bytes a parameter; it may mean mixed-bf16 (16.0), …"
std::string ReadingWords(const Budget& budget) {
  const std::string& assumed = budget.job.training.recipe.names.id;
  std::string read;
  std::vector<std::string> others;
  for (const RecipeReading& reading : budget.readings) {
    if (reading.recipe == assumed) {
      read = fmt::format("{}, {:.1f} bytes a parameter", assumed, reading.bytes_per_parameter);
    } else {
      others.push_back(fmt::format("{} ({:.1f})", reading.recipe, reading.bytes_per_parameter));
    }
  }
  return fmt::format("Recipe \"{}\" is read as {}; it may mean {}.",
                     budget.job.training.recipe_word, read, fmt::join(others, ", "));
}

}  // namespace

std::vector<Pile> PilesOf(const Budget& budget) {
  std::vector<Pile> piles = {Pile::kWeights, Pile::kGradients, Pile::kOptimizerState,
                             Pile::kActivations};
  if (IsServing(budget)) {
    piles = {Pile::kWeights, Pile::kKvCache};
  } else if (budget.job.training.evaluates) {
    piles = {Pile::kWeights, Pile::kActivations, Pile::kWorkspace};
  }
  for (const Pile pile : {Pile::kWorkspace, Pile::kOverhead}) {
    const bool listed = std::ranges::find(piles, pile) != piles.end();
    if (!listed && budget.piles.at(pile) != Bytes(0)) {
      piles.push_back(pile);
    }
  }
  return piles;
}

std::string PileWords(Pile pile) {
  std::string words(Name(pile));
  std::ranges::replace(words, '_', ' ');
  return pile == Pile::kKvCache ? "KV cache" : words;
}

std::string PileAmount(const Budget& budget, Pile pile, const BudgetStyle& style) {
  const bool has_shapes = pile == Pile::kActivations || pile == Pile::kKvCache;
  return has_shapes && !budget.shapes_known ? "not known"
                                            : PrintBytes(budget.piles.at(pile), style.unit);
}

std::string PileFormats(const Budget& budget, Pile pile) {
  std::vector<std::string> names;
  const auto piles = FormatsAt(budget.tape, Place::kDevice, budget.peak.moment);
  if (const auto found = piles.find(pile); found != piles.end()) {
    for (const auto& [format, bytes] : found->second) {
      names.push_back(format);
    }
  }
  return fmt::format("{}", fmt::join(names, " and "));
}

std::string Title(const Budget& budget) {
  const std::string_view step = budget.job.training.evaluates ? "an evaluation" : "a training step";
  const std::string_view what = IsServing(budget) ? "serving" : step;
  return fmt::format("{}: {}{}", EscapeForTerminal(budget.job.model.name), what,
                     DeviceCount(budget));
}

std::string ServingSettingsWords(const ServingJob& serving) {
  std::string words = fmt::format(
      "weights {}{}{}, cache {}, {} request{} × {} tokens",
      serving.weights.as_stored ? "as stored" : serving.weights.name,
      serving.weights.why.empty() ? "" : " ", serving.weights.why,
      serving.key_format == serving.value_format
          ? std::string(serving.key_format->name)
          : fmt::format("{} and {}", serving.key_format->name, serving.value_format->name),
      serving.concurrency, serving.concurrency == 1 ? "" : "s", TokensOf(serving));
  return serving.engine ? serving.engine->names.id + ", " + words : words;
}

// "tensor 8 with sequence parallel, pipeline 16 × 8 chunks, data 64, ZeRO 1"; empty on one device.
std::string LayoutWords(const Layout& layout) {
  std::vector<std::string> words;
  const auto add = [&](std::string_view what, std::int64_t ranks) {
    if (ranks > 1) {
      words.push_back(fmt::format("{} {}", what, ranks));
    }
  };
  add(layout.sequence_parallel ? "tensor and sequence" : "tensor", layout.tensor);
  add("pipeline", layout.pipeline);
  add("chunks", layout.chunks);
  add("context", layout.context);
  add("expert", layout.expert);
  if (layout.tensor * layout.pipeline * layout.context > 1) {
    add("data", DataParallel(layout));
  }
  if (layout.fsdp) {
    words.push_back(fmt::format("FSDP over {}", layout.fsdp_ranks));
  }
  if (layout.zero > 0) {
    words.push_back(fmt::format("ZeRO {}", layout.zero));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string TrainingSettingsWords(const TrainingJob& training) {
  const std::string batch = fmt::format("micro-batch {} × {} tokens", training.micro_batch_size,
                                        training.sequence_length);
  std::string words = fmt::format("recipe {}, ", training.recipe.names.id);
  words += training.evaluates ? batch : training.optimizer.names.id + ", " + batch;
  if (training.gradient_accumulation > 1 && !training.evaluates) {
    words += fmt::format(", {} micro-batches a step", training.gradient_accumulation);
  }
  if (training.adapter) {
    words += ", adapter " + AdapterSpec(*training.adapter);
  }
  if (!training.freeze.empty()) {
    words += ", frozen: " + training.freeze;
  }
  if (!training.train_only.empty()) {
    words += ", trained: " + training.train_only;
  }
  const std::string layout = LayoutWords(training.layout);
  return layout.empty() ? words : words + ", " + layout;
}

std::string SettingsWords(const Budget& budget) {
  return IsServing(budget) ? ServingSettingsWords(budget.job.serving)
                           : TrainingSettingsWords(budget.job.training);
}

std::string ParameterWords(const Budget& budget) {
  const Network& network = budget.job.model.network;
  std::string words = PrintGrouped(ParameterCount(network)) + " parameters";
  const TrainingJob& training = budget.job.training;
  if (training.adapter || !training.freeze.empty() || !training.train_only.empty()) {
    words += fmt::format(", {} of them trained", PrintGrouped(TrainableParameterCount(network)));
  }
  return words;
}

std::string FitWords(const Budget& budget) {
  std::string words = budget.verdict ? std::string(Name(*budget.verdict)) : "";
  std::ranges::replace(words, '_', ' ');
  return words;
}

namespace {

// What is offloaded and does not fit its host; empty: it does, or its memory is not given.
std::string HostVerdict(const Budget& budget, const BudgetStyle& style) {
  const std::optional<Bytes>& memory = budget.job.host_memory;
  if (!memory || budget.host <= *memory) {
    return "";
  }
  return fmt::format("does not fit the host: {} too much ({} of {})",
                     PrintBytes(budget.host - *memory, style.unit),
                     PrintBytes(budget.host, style.unit), PrintBytes(*memory, style.unit));
}

// What all devices of one host have on it.
std::string HostWords(const Budget& budget, const BudgetStyle& style) {
  const Layout& layout = budget.job.training.layout;
  return fmt::format("On the host: {}, of {} device{}.", PrintBytes(budget.host, style.unit),
                     std::min(layout.per_host, layout.devices), layout.devices == 1 ? "" : "s");
}

bool Offloads(const TrainingJob& training) {
  return training.offloads_activations || training.offloads_optimizer ||
         training.offloads_parameters;
}

}  // namespace

std::string VerdictWords(const Budget& budget, const BudgetStyle& style) {
  if (!budget.verdict) {
    return "";
  }
  if (std::string host = HostVerdict(budget, style); !host.empty()) {
    return host;
  }
  const std::string amount = PrintBytes(
      *budget.headroom < Bytes(0) ? Bytes(0) - *budget.headroom : *budget.headroom, style.unit);
  switch (*budget.verdict) {
    case Fit::kFits:
      return (budget.shapes_known ? "fits: " : "what is known fits: ") + amount + " to spare" +
             WhoseVerdict(budget);
    case Fit::kTight:
      return "tight: " + amount + " to spare if all goes as expected" + WhoseVerdict(budget);
    case Fit::kDoesNotFit:
      break;
  }
  return "does not fit: " + amount + " too much" + WhoseVerdict(budget);
}

std::vector<std::string> Remarks(const Budget& budget, const BudgetStyle& style) {
  std::vector<std::string> remarks;
  if (budget.job.solve) {
    remarks.push_back(SolutionWords(budget));
  }
  if (budget.serving) {
    remarks.push_back(ServingWords(budget, style));
  }
  const bool has_engine = budget.serving && budget.job.serving.engine;
  if (has_engine || (!IsServing(budget) && budget.total.low != budget.total.high)) {
    remarks.push_back(TotalWords(budget, style));
  }
  if (!IsServing(budget) && Offloads(budget.job.training)) {
    remarks.push_back(HostWords(budget, style));
  }
  AddAdvice(budget, style, remarks);
  if (!budget.readings.empty()) {
    remarks.push_back(ReadingWords(budget));
  }
  if (budget.file) {
    remarks.push_back(FileWords(*budget.file, style));
  }
  if (!IsServing(budget) && budget.shapes_known) {
    remarks.push_back(fmt::format("Kept for the backward pass: {}.",
                                  PrintBytes(budget.saved_activations, style.unit)));
  }
  remarks.push_back(fmt::format("Not counted: {}.", fmt::join(budget.unknowns, "; ")));
  if (!budget.job.defaults.empty()) {
    remarks.push_back(DefaultWords(budget.job.defaults));
  }
  return remarks;
}

}  // namespace fourpiles
