// Routed experts, as Hugging Face wrote them for Mixtral (transformers 4.36 to 4.57,
// models/mixtral/modeling_mixtral.py, MixtralSparseMoeBlock): no token is dropped, and one expert
// runs after the other on the tokens that chose it.

#include <utility>

#include "step/rules.h"

namespace fourpiles {
namespace {

constexpr KernelKind kTopK = {"topk", "derivatives.yaml: topk keeps indices"};
constexpr KernelKind kDivide = {"divide", "derivatives.yaml: div keeps self and other"};
constexpr KernelKind kGather = {"index", "derivatives.yaml: index keeps its indices"};
constexpr KernelKind kIndexAdd = {"index_add",
                                  "derivatives.yaml: index_add keeps source and index"};
constexpr KernelKind kSilu = {"silu", "derivatives.yaml: silu keeps self"};

// How many of the tokens the expert gets: as given, or an equal share.
std::int64_t TokensOf(const Stage& stage, const Operator& op, std::int64_t expert,
                      std::int64_t tokens) {
  const auto layer = static_cast<std::size_t>(stage.layer);
  if (layer < stage.batch.expert_tokens.size()) {
    return stage.batch.expert_tokens[layer][static_cast<std::size_t>(expert)];
  }
  const std::int64_t routed = tokens * op.experts_per_token;
  return routed / op.experts + (expert < routed % op.experts ? 1 : 0);
}

// Scores of all experts, the best of them, and their weights, which sum to 1.
Tensor Route(Stage& stage, const Operator& op, const Tensor& x, std::int64_t tokens) {
  Kernels& kernels = stage.kernels;
  Tensor scores = kernels.Linear(x, stage.Parameter(op, 0), Tensor(), op.experts);
  scores = kernels.Softmax(kernels.Cast(std::move(scores), kFloat32));
  const Shape best = ShapeOf({tokens, op.experts_per_token});
  const Tensor indices = kernels.Constant(best, kInt64, "experts chosen");
  const Tensor top = kernels.Fused(kTopK, best, kFloat32, {{scores}}, {&indices});
  const Tensor sum = kernels.Sum(top, ShapeOf({tokens, 1}));
  return kernels.Cast(kernels.Fused(kDivide, best, kFloat32, {{top}, {sum}}, {&top, &sum}), x.type);
}

// down(silu(gate(x)) × up(x)).
Tensor Expert(Stage& stage, const Operator& op, const Tensor& x, std::int64_t expert) {
  Kernels& kernels = stage.kernels;
  const std::int64_t width = op.widths[1];
  const auto linear = [&](Tensor input, std::size_t which, std::int64_t out) {
    return kernels.Linear(std::move(input), stage.Parameter(op, which, expert), Tensor(), out);
  };
  const Tensor gate = kernels.KeepInput(kSilu, linear(x, 1, width));
  return linear(kernels.Multiply(gate, linear(x, 2, width)), 3, op.widths[0]);
}

}  // namespace

void ExpertsRule(Stage& stage, const Operator& op) {
  Kernels& kernels = stage.kernels;
  Tensor x = stage.Take(op);
  const Shape whole = x.shape;
  const std::int64_t width = x.shape.Last();
  const std::int64_t tokens = x.shape.lengths[0] * x.shape.lengths[1];
  x = kernels.View(std::move(x), ShapeOf({tokens, width}));
  const Tensor weights = Route(stage, op, x, tokens);
  Tensor output = kernels.Constant(x.shape, x.type, "output");
  for (std::int64_t expert = 0; expert < op.experts; ++expert) {
    const std::int64_t chosen = TokensOf(stage, op, expert, tokens);
    if (chosen == 0) {
      continue;
    }
    // torch.where: two columns of one tensor.
    const Tensor places = kernels.Constant(ShapeOf({chosen, 2}), kInt64, "tokens chosen");
    const Tensor input = kernels.Fused(kGather, ShapeOf({chosen, width}), x.type, {{x}}, {&places});
    const Tensor weight =
        kernels.Fused(kGather, ShapeOf({chosen, 1}), weights.type, {{weights}}, {&places});
    Tensor result = kernels.Multiply(Expert(stage, op, input, expert), weight);
    result = kernels.Cast(std::move(result), x.type);
    output = kernels.InPlace(kIndexAdd, std::move(output), result, {&result, &places});
  }
  stage.Put(op, kernels.View(std::move(output), whole));
}

}  // namespace fourpiles
