#include "plan/layer_work.h"

#include <algorithm>
#include <vector>

namespace fourpiles {
namespace {

std::size_t Index(std::int64_t number) {
  return static_cast<std::size_t>(number);
}

const Parameter& ParameterOf(const Network& network, const Block& block, const ParameterUse& use) {
  const Block& of = use.block < 0 ? block : network.blocks[Index(use.block)];
  return of.parameters[Index(use.parameter)];
}

// A value within a block: its elements a token, and which share of the tokens a rank has.
struct ValueSize {
  double width = 0;
  double share = 1;
};

class Counter {
 public:
  Counter(const Network& network, const Block& block, std::int64_t tensor)
      : network_(network), block_(block) {
    std::int32_t last = 0;
    bool gathers = false;
    for (const Operator& op : block.operators) {
      for (const Value output : op.outputs) {
        last = std::max(last, output);
      }
      gathers = gathers || op.kind == OperatorKind::kGatherTokens;
    }
    values_.resize(Index(last) + 1);
    values_[0] = {static_cast<double>(network.hidden_size.value_or(0)),
                  gathers ? 1 / static_cast<double>(tensor) : 1};
  }

  LayerWork Count() {
    for (const Operator& op : block_.operators) {
      Count(op);
    }
    return work_;
  }

 private:
  ValueSize& At(Value value) { return values_[Index(value)]; }

  double WeightElements(const Operator& op) const {
    return op.parameters.empty() ? 0
                                 : static_cast<double>(ElementsOf(
                                       ParameterOf(network_, block_, op.parameters.front())));
  }

  // All outputs as wide as that, or as the operator says.
  void Put(const Operator& op, ValueSize size) {
    const bool says = op.kind != OperatorKind::kRotary;
    for (std::size_t i = 0; i < op.outputs.size(); ++i) {
      At(op.outputs[i]) = {
          says && i < op.widths.size() ? static_cast<double>(op.widths[i]) : size.width,
          size.share};
    }
  }

  void Product(const Operator& op, const ValueSize& input) {
    const double weights = WeightElements(op);
    work_.matrix_flops += 2 * weights * input.share;
    work_.matrix_elements += weights;
    Put(op, input);
  }

  void Attention(const Operator& op, const ValueSize& query) {
    const double values =
        static_cast<double>(op.heads) * static_cast<double>(op.widths.empty() ? 0 : op.widths[0]);
    work_.attention_flops += 2 * (query.width + values);
    for (std::size_t i = 1; i < op.inputs.size(); ++i) {
      work_.context_elements += At(op.inputs[i]).width;
    }
    At(op.outputs.front()) = {values, query.share};
  }

  // Every token is multiplied with its router and with the experts that it chose.
  void Experts(const Operator& op, const ValueSize& input) {
    const auto experts = static_cast<double>(op.experts) / static_cast<double>(op.expert_ranks);
    const auto chosen = static_cast<double>(op.experts_per_token);
    for (const ParameterUse& use : op.parameters) {
      const Parameter& parameter = ParameterOf(network_, block_, use);
      const auto elements = static_cast<double>(ElementsOf(parameter));
      const double used = parameter.routed ? elements / experts * chosen : elements;
      work_.matrix_flops += 2 * used * input.share;
      work_.matrix_elements += elements;
    }
    work_.routed_elements += chosen * input.width * input.share;
    At(op.outputs.front()) = input;
  }

  void Exchange(const Operator& op, const ValueSize& input) {
    const auto ranks = static_cast<double>(op.ranks);
    const bool gathers = op.kind == OperatorKind::kGatherTokens;
    work_.tensor_elements += input.width;
    At(op.outputs.front()) = {input.width, gathers ? input.share * ranks : input.share / ranks};
  }

  void Move(const Operator& op, const ValueSize& input) {
    for (const Value value : op.inputs) {
      work_.moved_elements += At(value).width * At(value).share;
    }
    Put(op, input);
    for (const Value value : op.outputs) {
      work_.moved_elements += At(value).width * At(value).share;
    }
  }

  // The logits are made and read.
  void Loss(const Operator& op, const ValueSize& input) {
    Product(op, input);
    work_.moved_elements += 2 * At(op.outputs.front()).width * input.share;
  }

  void Count(const Operator& op) {
    const ValueSize input = op.inputs.empty() ? values_[0] : At(op.inputs.front());
    switch (op.kind) {
      case OperatorKind::kLinear:
      case OperatorKind::kPatches:
        return Product(op, input);
      case OperatorKind::kLoss:
        return Loss(op, input);
      case OperatorKind::kAttention:
        return Attention(op, input);
      case OperatorKind::kExperts:
      case OperatorKind::kStackedExperts:
        return Experts(op, input);
      case OperatorKind::kGatherTokens:
      case OperatorKind::kScatterTokens:
        return Exchange(op, input);
      case OperatorKind::kSplit:
      case OperatorKind::kGatherContext:
        return Put(op, input);
      case OperatorKind::kExpand:
        At(op.outputs.front()) = {input.width * static_cast<double>(op.heads), input.share};
        return;
      case OperatorKind::kConcat:
        Move(op, input);
        At(op.outputs.front()).width = input.width + At(op.inputs[1]).width;
        return;
      default:
        return Move(op, input);
    }
  }

  const Network& network_;
  const Block& block_;
  std::vector<ValueSize> values_ = {};
  LayerWork work_ = {};
};

}  // namespace

double MeanTokensSeen(const SequenceView& view) {
  const auto tokens = static_cast<double>(view.tokens);
  const double seen = view.causal ? tokens / 2 : tokens;
  return view.window ? std::min(seen, static_cast<double>(*view.window)) : seen;
}

// Of a bare count no more is known than its weights, each of which is multiplied with every token.
LayerWork WorkOf(const Network& network, const Block& block, std::int64_t tensor) {
  const bool known = std::ranges::any_of(
      network.blocks, [](const Block& other) { return !other.operators.empty(); });
  if (known) {
    return block.operators.empty() ? LayerWork() : Counter(network, block, tensor).Count();
  }
  double weights = 0;
  for (const Parameter& parameter : block.parameters) {
    weights += static_cast<double>(ElementsOf(parameter));
  }
  return {.matrix_flops = 2 * weights, .matrix_elements = weights};
}

SequenceView ViewOf(const Network& network, const Block& block, std::int64_t tokens) {
  SequenceView view = {.tokens = tokens};
  for (const Operator& op : block.operators) {
    if (op.kind == OperatorKind::kAttention) {
      view.causal = op.mask != Mask::kNone && op.mask != Mask::kPadding;
    }
  }
  const auto cache = std::ranges::find(network.caches, block.first, &Cache::layer);
  if (IsNumbered(block) && cache != network.caches.end()) {
    view.window = cache->window;
  }
  return view;
}

}  // namespace fourpiles
