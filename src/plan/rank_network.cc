#include "plan/rank_network.h"

#include <algorithm>
#include <optional>
#include <string_view>

namespace fourpiles {
namespace {

std::int64_t Share(std::int64_t amount, std::int64_t ranks) {
  return (amount + ranks - 1) / ranks;
}

// The numbered block that the last layers are in; blocks of that name are the layers of the
// language model, others with a number are towers of images or sound.
std::string_view LayerPattern(const Network& network) {
  const auto last = std::find_if(network.blocks.rbegin(), network.blocks.rend(), IsNumbered);
  return last == network.blocks.rend() ? std::string_view() : std::string_view(last->name);
}

bool IsVocabulary(const Network& network, const Parameter& parameter) {
  return network.vocab_size && parameter.shape.size() == 2 &&
         parameter.shape.front() >= *network.vocab_size;
}

bool HasVocabulary(const Network& network, const Block& block) {
  return std::ranges::any_of(block.parameters, [&](const Parameter& parameter) {
    return IsVocabulary(network, parameter);
  });
}

// Blocks that stand once and belong to a stage: those before the layers to the first, those behind
// to the last.
class Cutter {
 public:
  Cutter(const Network& network, const LayerStage& stage, const ServingLayout& layout)
      : network_(network), stage_(stage), layout_(layout), pattern_(LayerPattern(network)) {}

  std::vector<Block> Blocks() const {
    std::vector<Block> blocks;
    bool behind = false;
    bool has_output = false;
    for (const Block& block : network_.blocks) {
      if (!pattern_.empty() && block.name == pattern_) {
        AddLayers(blocks, block);
        behind = true;
        continue;
      }
      has_output = has_output || (behind && HasVocabulary(network_, block));
      if (behind ? stage_.ends : stage_.begins) {
        blocks.push_back(Cut(block));
      }
    }
    if (stage_.ends && !stage_.begins && !has_output) {
      AddTiedOutput(blocks);
    }
    return blocks;
  }

  std::vector<Cache> Caches() const {
    std::vector<Cache> caches;
    for (Cache cache : network_.caches) {
      if (stage_.first <= cache.layer && cache.layer < stage_.first + stage_.layers) {
        const std::int64_t heads = std::max<std::int64_t>(1, cache.heads);
        const std::int64_t local = std::max<std::int64_t>(1, heads / layout_.tensor);
        cache.key_elements_per_token = cache.key_elements_per_token / heads * local;
        cache.value_elements_per_token = cache.value_elements_per_token / heads * local;
        cache.heads = local;
        cache.full_heads = Share(cache.full_heads, layout_.tensor);
        cache.full_key_elements = Share(cache.full_key_elements, layout_.tensor);
        cache.full_value_elements = Share(cache.full_value_elements, layout_.tensor);
        cache.convolution_elements_per_request =
            Share(cache.convolution_elements_per_request, layout_.tensor);
        cache.recurrent_elements_per_request =
            Share(cache.recurrent_elements_per_request, layout_.tensor);
        caches.push_back(cache);
      }
    }
    return caches;
  }

 private:
  void AddLayers(std::vector<Block>& blocks, const Block& block) const {
    const std::int64_t first = std::max(block.first, stage_.first);
    const std::int64_t end = std::min(block.first + block.repeat, stage_.first + stage_.layers);
    if (first < end) {
      Block layers = Cut(block);
      layers.first = first;
      layers.repeat = end - first;
      blocks.push_back(std::move(layers));
    }
  }

  void AddTiedOutput(std::vector<Block>& blocks) const {
    for (const Block& block : network_.blocks) {
      for (const Parameter& parameter : block.parameters) {
        if (IsVocabulary(network_, parameter)) {
          blocks.push_back({.name = block.name, .parameters = {Cut(parameter, {})}});
          return;
        }
      }
    }
  }

  Block Cut(const Block& block) const {
    Block cut = block;
    const auto cache = std::ranges::find_if(network_.caches, [&](const Cache& one) {
      return one.layer == block.first && one.key_elements_per_token > 0;
    });
    const std::optional<std::int64_t> heads =
        block.name == pattern_ && cache != network_.caches.end() ? std::optional(cache->heads)
                                                                 : std::nullopt;
    for (Parameter& parameter : cut.parameters) {
      parameter = Cut(std::move(parameter), heads);
    }
    return cut;
  }

  // Keys and values are cut by whole heads.
  Parameter Cut(Parameter parameter, std::optional<std::int64_t> heads) const {
    if (parameter.routed && layout_.expert > 1) {
      std::int64_t& experts = parameter.name.find("{}") != std::string::npos
                                  ? parameter.copies
                                  : parameter.shape.front();
      experts = Share(experts, layout_.expert);
      if (parameter.cut && layout_.tensor > layout_.expert) {  // each by the ranks that remain
        std::int64_t& length = parameter.shape[static_cast<std::size_t>(*parameter.cut)];
        length = Share(length, layout_.tensor / layout_.expert);
      }
      return parameter;
    }
    if (parameter.cut) {
      std::int64_t& length = parameter.shape[static_cast<std::size_t>(*parameter.cut)];
      const bool of_heads = parameter.name.find("k_proj.") != std::string::npos ||
                            parameter.name.find("v_proj.") != std::string::npos;
      const std::int64_t ranks =
          of_heads && heads && *heads > 1 ? std::min(layout_.tensor, *heads) : layout_.tensor;
      length = Share(length, ranks);
    }
    return parameter;
  }

  const Network& network_;
  const LayerStage& stage_;
  const ServingLayout& layout_;
  std::string_view pattern_;
};

}  // namespace

std::vector<LayerStage> LayerStagesOf(const Network& network, std::int64_t stages) {
  const std::int64_t layers = network.num_hidden_layers.value_or(0);
  const std::int64_t remaining = layers % stages;
  std::vector<LayerStage> list;
  std::int64_t first = 0;
  for (std::int64_t i = 0; i < stages; ++i) {
    const std::int64_t from_last = stages - 1 - i;
    const bool one_more = from_last >= 1 && from_last <= remaining;
    const std::int64_t count = layers / stages + (one_more ? 1 : 0);
    list.push_back({.first = first, .layers = count, .begins = i == 0, .ends = i == stages - 1});
    first += count;
  }
  return list;
}

Network RankNetwork(const Network& network, const LayerStage& stage, const ServingLayout& layout) {
  Network rank = network;
  const Cutter cutter(network, stage, layout);
  rank.blocks = cutter.Blocks();
  rank.caches = cutter.Caches();
  return rank;
}

bool HeadsDivide(const Network& network, std::int64_t ranks) {
  const auto shares_queries = [&](const Operator& op) {
    return op.kind != OperatorKind::kAttention || op.heads % ranks == 0;
  };
  return std::ranges::all_of(network.caches,
                             [&](const Cache& cache) {
                               const std::int64_t heads = std::max<std::int64_t>(1, cache.heads);
                               return cache.key_elements_per_token == 0 || heads % ranks == 0 ||
                                      ranks % heads == 0;
                             }) &&
         std::ranges::all_of(network.blocks, [&](const Block& block) {
           return std::ranges::all_of(block.operators, shares_queries);
         });
}

std::int64_t ExpertsOf(const Network& network) {
  for (const Block& block : network.blocks) {
    for (const Parameter& parameter : block.parameters) {
      if (parameter.routed) {
        return parameter.name.find("{}") != std::string::npos ? parameter.copies
                                                              : parameter.shape.front();
      }
    }
  }
  return 0;
}

}  // namespace fourpiles
