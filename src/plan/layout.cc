#include "plan/layout.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/try.h"
#include "plan/rank_network.h"

namespace fourpiles {
namespace {

// Layers of the first stage, of each between, and of the last.
struct StageSizes {
  std::int64_t first = 0;
  std::int64_t middle = 0;
  std::int64_t last = 0;
};

// As asked for; the other stages divide the rest.
std::optional<StageSizes> GivenSizes(const Layout& layout, std::int64_t layers) {
  const std::int64_t first = layout.first_stage_layers.value_or(0);
  const std::int64_t last = layout.last_stage_layers.value_or(0);
  const std::int64_t others =
      layout.pipeline - (layout.first_stage_layers ? 1 : 0) - (layout.last_stage_layers ? 1 : 0);
  const std::int64_t rest = layers - first - last;
  const bool divides = others == 0 ? rest == 0 : rest % others == 0;
  if (rest < 0 || !divides) {
    return std::nullopt;
  }
  const std::int64_t middle = others == 0 ? 0 : rest / others;
  return StageSizes{layout.first_stage_layers.value_or(middle), middle,
                    layout.last_stage_layers.value_or(middle)};
}

// Even, or with one layer fewer where the output layer stands, or there and where the embedding
// stands (Megatron-LM, account_for_embedding_in_pipeline_split, account_for_loss_in_pipeline_split;
// Grattafiori et al. 2024, arXiv 2407.21783, section 3.3.2).
std::optional<StageSizes> EvenSizes(std::int64_t stages, std::int64_t layers) {
  for (const StageSizes& fewer : {StageSizes{0, 0, 0}, StageSizes{0, 0, 1}, StageSizes{1, 0, 1}}) {
    const std::int64_t slots = layers + fewer.first + fewer.last;
    if (slots % stages == 0 && slots / stages > fewer.last) {
      const std::int64_t size = slots / stages;
      return StageSizes{size - fewer.first, size, size - fewer.last};
    }
  }
  return std::nullopt;
}

std::optional<StageSizes> SizesOf(const Layout& layout, std::int64_t layers) {
  if (layout.pipeline == 1) {
    return StageSizes{layers, 0, 0};
  }
  return layout.first_stage_layers || layout.last_stage_layers ? GivenSizes(layout, layers)
                                                               : EvenSizes(layout.pipeline, layers);
}

// Chunks are alike but for the first of the first stage and the last of the last.
std::optional<std::vector<std::int64_t>> ChunkSizes(const Layout& layout, const StageSizes& sizes,
                                                    std::int64_t stage) {
  const bool begins = stage == 0;
  const bool ends = stage == layout.pipeline - 1;
  const std::int64_t own = begins ? sizes.first : ends ? sizes.last : sizes.middle;
  const std::int64_t usual = layout.pipeline > 2 ? sizes.middle : std::max(sizes.first, sizes.last);
  if (layout.chunks == 1) {
    return std::vector<std::int64_t>{own};
  }
  if (usual % layout.chunks != 0) {
    return std::nullopt;
  }
  std::vector<std::int64_t> chunks(static_cast<std::size_t>(layout.chunks), usual / layout.chunks);
  std::int64_t& uneven = begins ? chunks.front() : chunks.back();
  uneven += own - usual;
  return uneven < 0 ? std::nullopt : std::optional(chunks);
}

std::vector<std::int64_t> DivisorsOf(std::int64_t number) {
  std::vector<std::int64_t> divisors;
  constexpr std::int64_t kMost = 1 << 12;
  for (std::int64_t divisor = 1; divisor <= std::min(number, kMost); ++divisor) {
    if (number % divisor == 0) {
      divisors.push_back(divisor);
    }
  }
  return divisors;
}

std::string Listed(std::int64_t number) {
  return fmt::format("{}", fmt::join(DivisorsOf(number), ", "));
}

Result<void> CheckDevices(const Layout& layout) {
  const std::int64_t model = layout.tensor * layout.pipeline * layout.context;
  if (layout.devices % model != 0) {
    return WrongUsage(
        {.where = "--devices",
         .found =
             fmt::format("{} devices, tensor {} × pipeline {} × context {} = {}", layout.devices,
                         layout.tensor, layout.pipeline, layout.context, model),
         .expected = fmt::format("expected a multiple of {}", model),
         .hint = fmt::format("divisors of {} are {}", layout.devices, Listed(layout.devices))});
  }
  if (layout.fsdp && DataRanks(layout) % layout.fsdp_ranks != 0) {
    return WrongUsage({.where = "--fsdp",
                       .found = fmt::format("shards over {} of {} data-parallel ranks",
                                            layout.fsdp_ranks, DataRanks(layout)),
                       .expected = fmt::format("expected one of {}", Listed(DataRanks(layout)))});
  }
  return {};
}

// The dimensions that tensor parallelism cuts; those of the vocabulary are filled up.
Result<void> CheckTensor(const Layout& layout, const Network& network) {
  if (layout.tensor == 1) {
    return {};
  }
  if (!OperatorsAreKnown(network) || network.blocks.empty()) {
    return WrongUsage({.where = "--tensor-parallel",
                       .found = "what the layers compute is not known",
                       .expected = "expected a model whose layers are known",
                       .hint = "a catalogue id or a config.json"});
  }
  if (!HeadsDivide(network, layout.tensor)) {
    return WrongUsage({.where = "--tensor-parallel",
                       .found = fmt::format("{} devices cannot share the heads", layout.tensor),
                       .expected = "expected a divisor of the attention heads",
                       .hint = fmt::format("divisors of {} heads are {}", HeadsOf(network),
                                           Listed(HeadsOf(network)))});
  }
  for (const Block& block : network.blocks) {
    for (const Parameter& parameter : block.parameters) {
      if (!parameter.cut || parameter.routed || !IsNumbered(block)) {
        continue;
      }
      const std::int64_t length = parameter.shape[static_cast<std::size_t>(*parameter.cut)];
      if (length % layout.tensor != 0) {
        return WrongUsage({.where = "--tensor-parallel",
                           .found = fmt::format("{} of {} rows or columns over {} devices",
                                                parameter.name, length, layout.tensor),
                           .expected = fmt::format("expected a divisor of {}", length),
                           .hint = fmt::format("those are {}", Listed(length))});
      }
    }
  }
  return {};
}

Result<void> CheckExperts(const Layout& layout, const Network& network) {
  const std::int64_t experts = ExpertsOf(network);
  if (layout.expert > 1 && experts == 0) {
    return WrongUsage({.where = "--expert-parallel",
                       .found = "the model has no routed experts",
                       .expected = "expected a mixture of experts",
                       .hint = "leave it out"});
  }
  if (experts > 0 && experts % layout.expert != 0) {
    return WrongUsage({.where = "--expert-parallel",
                       .found = fmt::format("{} experts over {} devices", experts, layout.expert),
                       .expected = fmt::format("expected a divisor of {}", experts),
                       .hint = fmt::format("those are {}", Listed(experts))});
  }
  const std::int64_t ranks = layout.devices / layout.pipeline;
  if (ranks % (layout.expert * layout.expert_tensor) != 0) {
    const std::int64_t groups = std::max<std::int64_t>(1, ranks / layout.expert_tensor);
    return WrongUsage({.where = "--expert-parallel",
                       .found = fmt::format("experts over {} × {} of {} ranks of a stage",
                                            layout.expert, layout.expert_tensor, ranks),
                       .expected = "expected a divisor of data × context parallel ranks",
                       .hint = layout.expert_tensor > 1
                                   ? "--expert-tensor-parallel 1 leaves every expert whole"
                                   : fmt::format("divisors of {} are {}", groups, Listed(groups))});
  }
  return {};
}

tl::unexpected<Error> RefuseStages(const Layout& layout, std::int64_t layers) {
  if (layout.first_stage_layers || layout.last_stage_layers) {
    return WrongUsage(
        {.where = layout.first_stage_layers ? "--first-stage-layers" : "--last-stage-layers",
         .found = fmt::format("{} layers over {} stages, {} in the first and {} in the last",
                              layers, layout.pipeline, layout.first_stage_layers.value_or(0),
                              layout.last_stage_layers.value_or(0)),
         .expected = "expected that the other stages divide the rest",
         .hint = "0 stands for an end that was not given, which is as the others"});
  }
  std::vector<std::int64_t> stages;
  for (Layout other = layout; other.pipeline > 0; --other.pipeline) {
    other.first_stage_layers.reset();
    other.last_stage_layers.reset();
    if (!StageLayers(other, layers).empty()) {
      stages.push_back(other.pipeline);
    }
  }
  std::ranges::reverse(stages);
  return WrongUsage(
      {.where = layout.chunks > 1 ? "--virtual-pipeline" : "--pipeline-parallel",
       .found = fmt::format("{} layers over {} stages{}", layers, layout.pipeline,
                            layout.chunks > 1 ? fmt::format(" of {} chunks", layout.chunks) : ""),
       .expected = stages.empty()
                       ? "expected fewer chunks"
                       : fmt::format("expected one of {} stages", fmt::join(stages, ", ")),
       .hint = "--first-stage-layers and --last-stage-layers say what the ends have"});
}

Result<void> CheckPipeline(const Layout& layout, const Network& network) {
  if (layout.pipeline == 1 && layout.chunks > 1) {
    return WrongUsage({.where = "--virtual-pipeline",
                       .found = "chunks of layers without a pipeline",
                       .expected = "expected --pipeline-parallel",
                       .hint = "--pipeline-parallel 4 --virtual-pipeline 2"});
  }
  if (layout.pipeline == 1) {
    return {};
  }
  if (!OperatorsAreKnown(network) || !network.num_hidden_layers) {
    return WrongUsage({.where = "--pipeline-parallel",
                       .found = "what the layers compute is not known",
                       .expected = "expected a model whose layers are known",
                       .hint = "a catalogue id or a config.json"});
  }
  if (!StageLayers(layout, *network.num_hidden_layers).empty()) {
    return {};
  }
  return RefuseStages(layout, *network.num_hidden_layers);
}

Result<void> CheckTogether(const Layout& layout) {
  if (layout.fsdp && layout.zero > 0) {
    return WrongUsage({.where = "--fsdp",
                       .found = fmt::format("beside --zero {}", layout.zero),
                       .expected = "expected one of them",
                       .hint = "--fsdp full shards what --zero 3 does"});
  }
  if (layout.pipeline > 1 && layout.zero >= 2) {
    return WrongUsage({.where = "--zero",
                       .found = fmt::format("{} beside a pipeline", layout.zero),
                       .expected = "expected 0 or 1",
                       .hint = "gradients of all micro-batches are added before they are sharded "
                               "(DeepSpeed, runtime/pipe/engine.py); --fsdp full goes with it"});
  }
  return {};
}

}  // namespace

std::string_view Name(PipelineSchedule schedule) {
  switch (schedule) {
    case PipelineSchedule::kGPipe:
      return "gpipe";
    case PipelineSchedule::kZeroBubble:
      return "zero-bubble";
    case PipelineSchedule::kOneForwardOneBackward:
      break;
  }
  return "1f1b";
}

std::string FsdpWord(const Layout& layout) {
  if (!layout.fsdp) {
    return "";
  }
  const bool is_hybrid = layout.fsdp_ranks < DataRanks(layout);
  return (is_hybrid ? fmt::format("hybrid:{}", layout.fsdp_ranks) : "full") +
         (!layout.reshards      ? ":keep"
          : layout.reshards_all ? ":always"
                                : "");
}

std::int64_t TokenPieces(const Layout& layout) {
  const std::int64_t ranks = layout.context * (layout.sequence_parallel ? layout.tensor : 1);
  return layout.context > 1 ? 2 * ranks : ranks;
}

std::int64_t InPieces(std::int64_t tokens, const Layout& layout) {
  const std::int64_t pieces = TokenPieces(layout);
  return (tokens + pieces - 1) / pieces * pieces;
}

Shares SharesOf(const Layout& layout) {
  if (layout.fsdp) {
    const ShardRanks all = {layout.fsdp_ranks,
                            std::min(layout.fsdp_ranks, ExpertDataRanks(layout))};
    return {.weights = all, .gradients = all, .optimizer_state = all};
  }
  const auto over = [&](int stage) {
    return layout.zero >= stage ? ShardRanks{DataRanks(layout), ExpertDataRanks(layout)}
                                : ShardRanks();
  };
  return {.weights = over(3), .gradients = over(2), .optimizer_state = over(1)};
}

std::int64_t DevicesOfOneReplica(const Layout& layout) {
  const std::int64_t ranks = layout.tensor * layout.context;
  const std::int64_t experts = layout.expert * layout.expert_tensor;
  const std::int64_t hybrid =
      layout.fsdp && layout.fsdp_ranks < DataRanks(layout) ? layout.fsdp_ranks * layout.tensor : 1;
  return layout.pipeline * std::lcm(std::lcm(ranks, experts), hybrid);
}

Layout WithDevices(Layout layout, std::int64_t devices) {
  const bool is_hybrid = layout.fsdp && layout.fsdp_ranks < DataRanks(layout);
  layout.devices = devices;
  layout.fsdp_ranks = is_hybrid ? layout.fsdp_ranks : DataRanks(layout);
  return layout;
}

std::vector<std::vector<LayerSpan>> StageLayers(const Layout& layout, std::int64_t layers) {
  const std::optional<StageSizes> sizes = SizesOf(layout, layers);
  if (!sizes) {
    return {};
  }
  std::vector<std::vector<LayerSpan>> stages;
  for (std::int64_t stage = 0; stage < layout.pipeline; ++stage) {
    const auto chunks = ChunkSizes(layout, *sizes, stage);
    if (!chunks) {
      return {};
    }
    std::vector<LayerSpan>& ranges = stages.emplace_back();
    for (const std::int64_t count : *chunks) {
      ranges.push_back({.layers = count});
    }
  }
  std::int64_t first = 0;
  for (std::size_t chunk = 0; chunk < static_cast<std::size_t>(layout.chunks); ++chunk) {
    for (std::vector<LayerSpan>& stage : stages) {
      stage[chunk].first = first;
      first += stage[chunk].layers;
    }
  }
  return stages;
}

Result<void> CheckLayout(const Layout& layout, const Network& network) {
  TRY_VOID(CheckDevices(layout));
  TRY_VOID(CheckTogether(layout));
  TRY_VOID(CheckTensor(layout, network));
  TRY_VOID(CheckExperts(layout, network));
  return CheckPipeline(layout, network);
}

}  // namespace fourpiles
