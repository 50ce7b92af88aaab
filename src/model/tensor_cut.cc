#include "model/tensor_cut.h"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace fourpiles {
namespace {

std::int64_t Share(std::int64_t amount, std::int64_t ranks) {
  return (amount + ranks - 1) / ranks;
}

// By the names that Llama's family gave them.
bool MakesKeysOrValues(std::string_view name) {
  if (name.find("qkv") != std::string_view::npos) {
    return false;
  }
  return std::ranges::any_of(
      std::initializer_list<std::string_view>{"k_proj", "v_proj", "k_norm"},
      [&](std::string_view part) { return name.find(part) != std::string_view::npos; });
}

std::int64_t KeyValueHeadsOf(const Block& block) {
  const auto attention =
      std::ranges::find(block.operators, OperatorKind::kAttention, &Operator::kind);
  return attention == block.operators.end() ? 0 : attention->key_value_heads;
}

// Ranks that share what makes keys and values: no more than there are heads.
std::int64_t RanksOf(std::string_view name, std::int64_t key_value_heads, std::int64_t ranks) {
  return MakesKeysOrValues(name) && key_value_heads > 0 ? std::min(ranks, key_value_heads) : ranks;
}

// What is known of a value: whether a rank has a part of its width, and all its tokens.
struct State {
  bool width_is_cut = false;
  bool tokens_are_cut = false;
};

// One block, operator by operator.
class BlockCutter {
 public:
  BlockCutter(const Network& network, Block& block, const TensorCut& cut)
      : network_(network), block_(block), cut_(cut) {
    for (const Operator& op : block.operators) {
      for (const Value output : op.outputs) {
        next_ = std::max(next_, output + 1);
      }
    }
    states_.resize(static_cast<std::size_t>(next_));
    At(0).tokens_are_cut = cut.sequence_parallel;
    key_value_heads_ = KeyValueHeadsOf(block);
  }

  void Cut() {
    std::vector<Operator> operators = std::exchange(block_.operators, {});
    for (Operator& op : operators) {
      Cut(op);
    }
    // From block to block tokens are cut.
    if (cut_.sequence_parallel && !block_.operators.empty() &&
        block_.operators.back().kind != OperatorKind::kLoss &&
        !At(block_.operators.back().outputs.front()).tokens_are_cut) {
      AddScatter();
    }
  }

 private:
  State& At(Value value) { return states_[static_cast<std::size_t>(value)]; }

  Value NewValue(const State& state) {
    states_.push_back(state);
    return next_++;
  }

  const Parameter* WeightOf(const Operator& op) const {
    if (op.parameters.empty()) {
      return nullptr;
    }
    const ParameterUse& use = op.parameters.front();
    const Block& of = use.block < 0 ? block_ : network_.blocks[static_cast<std::size_t>(use.block)];
    return &of.parameters[static_cast<std::size_t>(use.parameter)];
  }

  // All tokens of the input; one gathering serves all that read the value.
  void Gather(Operator& op, std::size_t number) {
    const Value input = op.inputs[number];
    if (!At(input).tokens_are_cut) {
      return;
    }
    auto found = std::ranges::find(gathered_, input, &std::pair<Value, Value>::first);
    if (found == gathered_.end()) {
      State whole = At(input);
      whole.tokens_are_cut = false;
      const Value all = NewValue(whole);
      block_.operators.push_back({.kind = OperatorKind::kGatherTokens,
                                  .name = op.name,
                                  .inputs = {input},
                                  .outputs = {all},
                                  .ranks = cut_.tensor});
      gathered_.emplace_back(input, all);
      found = std::prev(gathered_.end());
    }
    op.inputs[number] = found->second;
  }

  // Its output becomes the one of a scattering behind it.
  void AddScatter() {
    Operator& op = block_.operators.back();
    const Value output = op.outputs.front();
    const Value sums = NewValue(State());
    op.outputs.front() = sums;
    block_.operators.push_back({.kind = OperatorKind::kScatterTokens,
                                .name = op.name,
                                .inputs = {sums},
                                .outputs = {output},
                                .ranks = cut_.tensor});
    At(output) = {.tokens_are_cut = true};
  }

  void CutLinear(Operator& op) {
    const Parameter* weight = WeightOf(op);
    const std::optional<int> dimension = weight == nullptr ? std::nullopt : weight->cut;
    if (!dimension) {
      At(op.outputs.front()) = {.tokens_are_cut = At(op.inputs.front()).tokens_are_cut};
      block_.operators.push_back(std::move(op));
      return;
    }
    Gather(op, 0);
    const bool by_outputs = OutputsAreCut(op);
    if (by_outputs) {
      const std::int64_t ranks = RanksOf(op.name, key_value_heads_, cut_.tensor);
      op.widths.front() = Share(op.widths.front(), ranks);
    }
    At(op.outputs.front()) = {.width_is_cut = by_outputs};
    block_.operators.push_back(std::move(op));
    if (!by_outputs && cut_.sequence_parallel) {
      AddScatter();
    }
  }

  // Of a linear layer: GPT-2's weights stand the other way round, so the input tells.
  bool OutputsAreCut(const Operator& op) { return !At(op.inputs.front()).width_is_cut; }

  void CutHeads(Operator& op) {
    if (At(op.inputs.front()).width_is_cut) {
      op.heads =
          op.heads == 1 ? 1 : Share(op.heads, RanksOf(op.name, key_value_heads_, cut_.tensor));
    }
  }

  void CutAttention(Operator& op) {
    for (std::size_t input = 0; input < op.inputs.size(); ++input) {
      Gather(op, input);
    }
    const bool is_cut = At(op.inputs.front()).width_is_cut;
    if (is_cut) {
      op.heads = Share(op.heads, cut_.tensor);
      op.key_value_heads = std::max<std::int64_t>(1, op.key_value_heads / cut_.tensor);
    }
    if (cut_.context > 1) {
      for (std::size_t input = 1; input < op.inputs.size(); ++input) {
        const Value all = NewValue(At(op.inputs[input]));
        block_.operators.push_back({.kind = OperatorKind::kGatherContext,
                                    .name = op.name,
                                    .inputs = {op.inputs[input]},
                                    .outputs = {all},
                                    .ranks = cut_.context});
        op.inputs[input] = all;
      }
      op.ranks = cut_.context;
    }
    At(op.outputs.front()) = {.width_is_cut = is_cut};
    block_.operators.push_back(std::move(op));
  }

  // Tokens go to the ranks that have their experts; as many come.
  void CutExperts(Operator& op) {
    if (cut_.expert_tensor > 1) {
      Gather(op, 0);
    }
    op.expert_ranks = cut_.expert;
    op.widths[1] = Share(op.widths[1], cut_.expert_tensor);
    const bool tokens_are_cut = At(op.inputs.front()).tokens_are_cut;
    At(op.outputs.front()) = {.tokens_are_cut = tokens_are_cut};
    block_.operators.push_back(std::move(op));
    if (cut_.sequence_parallel && !tokens_are_cut) {
      AddScatter();
    }
  }

  void CutSplit(Operator& op) {
    const State state = At(op.inputs.front());
    for (std::size_t i = 0; i < op.outputs.size(); ++i) {
      op.widths[i] = state.width_is_cut ? Share(op.widths[i], cut_.tensor) : op.widths[i];
      At(op.outputs[i]) = state;
    }
    block_.operators.push_back(std::move(op));
  }

  void CutExpand(Operator& op) {
    Gather(op, 0);
    op.heads = Share(op.heads, cut_.tensor);
    At(op.outputs.front()) = {.width_is_cut = true};
    block_.operators.push_back(std::move(op));
  }

  void CutLoss(Operator& op) {
    Gather(op, 0);
    const Parameter* weight = WeightOf(op);
    if (weight != nullptr && weight->cut) {
      op.widths.front() = Share(op.widths.front(), cut_.tensor);
      op.ranks = cut_.tensor;
    }
    block_.operators.push_back(std::move(op));
  }

  // What stands between: as its inputs are.
  void Pass(Operator& op) {
    State state;
    bool all_are_cut = !op.inputs.empty();
    for (const Value input : op.inputs) {
      state.width_is_cut = state.width_is_cut || At(input).width_is_cut;
      all_are_cut = all_are_cut && At(input).tokens_are_cut;
    }
    for (std::size_t input = 0; !all_are_cut && input < op.inputs.size(); ++input) {
      Gather(op, input);
    }
    state.tokens_are_cut = all_are_cut;
    for (const Value output : op.outputs) {
      At(output) = state;
    }
    block_.operators.push_back(std::move(op));
  }

  void Cut(Operator& op) {
    switch (op.kind) {
      case OperatorKind::kLinear:
        return CutLinear(op);
      case OperatorKind::kAttention:
        return CutAttention(op);
      case OperatorKind::kExperts:
      case OperatorKind::kStackedExperts:
        return CutExperts(op);
      case OperatorKind::kSplit:
        return CutSplit(op);
      case OperatorKind::kExpand:
        return CutExpand(op);
      case OperatorKind::kLoss:
        return CutLoss(op);
      case OperatorKind::kRotary:
      case OperatorKind::kFirstToken:
        Gather(op, 0);
        break;
      case OperatorKind::kLayerNorm:
      case OperatorKind::kRmsNorm:
        CutHeads(op);
        break;
      default:
        break;
    }
    Pass(op);
  }

  const Network& network_;
  Block& block_;
  const TensorCut& cut_;
  std::int64_t key_value_heads_ = 1;
  Value next_ = 1;
  std::vector<State> states_ = {};
  std::vector<std::pair<Value, Value>> gathered_ = {};
};

void CutExpert(Parameter& parameter, const TensorCut& cut) {
  std::int64_t& experts =
      parameter.name.find("{}") != std::string::npos ? parameter.copies : parameter.shape.front();
  experts = Share(experts, cut.expert);
  if (parameter.cut) {
    std::int64_t& length = parameter.shape[static_cast<std::size_t>(*parameter.cut)];
    length = Share(length, cut.expert_tensor);
  }
}

void CutParameters(Block& block, std::int64_t key_value_heads, const TensorCut& cut) {
  for (Parameter& parameter : block.parameters) {
    if (parameter.routed) {
      CutExpert(parameter, cut);
    } else if (parameter.cut) {
      std::int64_t& length = parameter.shape[static_cast<std::size_t>(*parameter.cut)];
      length = Share(length, RanksOf(parameter.name, key_value_heads, cut.tensor));
    }
  }
}

// Numbers of the blocks that go with a stage, in the order of the forward pass.
class StageCutter {
 public:
  explicit StageCutter(const Network& network) : network_(network) {
    const auto last =
        std::ranges::find_if(network.blocks.rbegin(), network.blocks.rend(), IsNumbered);
    pattern_ = last == network.blocks.rend() ? std::string_view() : std::string_view(last->name);
  }

  StageNetwork Cut(const std::vector<LayerSpan>& chunks, bool begins, bool ends) {
    stage_.network = network_;
    stage_.network.blocks.clear();
    for (std::size_t chunk = 0; chunk < chunks.size(); ++chunk) {
      const std::size_t first = stage_.network.blocks.size();
      if (begins && chunk == 0) {
        AddOthers(false);
      }
      AddLayers(chunks[chunk]);
      if (ends && chunk + 1 == chunks.size()) {
        AddOthers(true);
      }
      stage_.chunks.emplace_back(first, stage_.network.blocks.size());
    }
    AddTied();
    stage_.chunks.back().second = stage_.network.blocks.size();
    return std::move(stage_);
  }

 private:
  bool IsLayer(const Block& block) const { return !pattern_.empty() && block.name == pattern_; }

  void Add(std::size_t number, Block block) {
    places_.emplace_back(number, stage_.network.blocks.size());
    stage_.network.blocks.push_back(std::move(block));
  }

  // Blocks before the layers, or behind them.
  void AddOthers(bool behind) {
    bool is_behind = false;
    for (std::size_t i = 0; i < network_.blocks.size(); ++i) {
      const Block& block = network_.blocks[i];
      is_behind = is_behind || IsLayer(block);
      if (!IsLayer(block) && is_behind == behind) {
        Add(i, block);
      }
    }
  }

  void AddLayers(const LayerSpan& span) {
    for (std::size_t i = 0; i < network_.blocks.size(); ++i) {
      const Block& block = network_.blocks[i];
      const std::int64_t first = std::max(block.first, span.first);
      const std::int64_t end = std::min(block.first + block.repeat, span.first + span.layers);
      if (IsLayer(block) && first < end) {
        Block layers = block;
        layers.first = first;
        layers.repeat = end - first;
        Add(i, std::move(layers));
      }
    }
  }

  // Blocks whose parameters are used here and stand in another stage have a copy behind all others,
  // which runs nothing and comes and goes with the last chunk.
  void AddTied() {
    std::vector<Block>& blocks = stage_.network.blocks;
    const std::size_t own = blocks.size();
    for (std::size_t i = 0; i < own; ++i) {
      for (std::size_t op = 0; op < blocks[i].operators.size(); ++op) {
        for (std::size_t use = 0; use < blocks[i].operators[op].parameters.size(); ++use) {
          const ParameterUse old = blocks[i].operators[op].parameters[use];
          if (old.block >= 0) {
            const ParameterUse now = {PlaceOf(static_cast<std::size_t>(old.block)), old.parameter};
            blocks[i].operators[op].parameters[use] = now;
          }
        }
      }
    }
  }

  std::int32_t PlaceOf(std::size_t number) {
    auto place = std::ranges::find(places_, number, &std::pair<std::size_t, std::size_t>::first);
    if (place == places_.end()) {
      Block copy = network_.blocks[number];
      copy.operators.clear();
      Add(number, std::move(copy));
      place = std::prev(places_.end());
    }
    return static_cast<std::int32_t>(place->second);
  }

  const Network& network_;
  std::string_view pattern_ = {};
  StageNetwork stage_ = {};
  std::vector<std::pair<std::size_t, std::size_t>> places_ = {};  // old number, new one
};

}  // namespace

Network CutByTensors(Network network, const TensorCut& cut) {
  const Network whole = network;
  for (std::size_t i = 0; i < network.blocks.size(); ++i) {
    BlockCutter(whole, network.blocks[i], cut).Cut();
    CutParameters(network.blocks[i], KeyValueHeadsOf(whole.blocks[i]), cut);
  }
  return network;
}

StageNetwork CutByLayers(const Network& network, const std::vector<LayerSpan>& chunks, bool begins,
                         bool ends) {
  return StageCutter(network).Cut(chunks, begins, ends);
}

std::int64_t HeadsOf(const Network& network) {
  for (const Block& block : network.blocks) {
    for (const Operator& op : block.operators) {
      if (op.kind == OperatorKind::kAttention) {
        return op.heads;
      }
    }
  }
  return 0;
}

}  // namespace fourpiles
