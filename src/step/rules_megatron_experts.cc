// Routed experts of Megatron-LM (megatron/core/transformer/moe): tokens are put in the order of
// their experts, sent to the ranks that have them, run through all experts by one grouped product a
// layer, sent back, and added up where they came from. No token is dropped. The weight of an expert
// is multiplied in its activation, so that what experts put out is not kept (experts.py,
// TEGroupedMLP.forward; token_dispatcher.py, MoEAlltoAllTokenDispatcher; moe_utils.py).

#include <algorithm>
#include <cmath>
#include <utility>

#include "step/rules.h"

namespace fourpiles {
namespace {

constexpr KernelKind kRouter = {"router",
                                "Megatron-LM, core/transformer/moe/moe_utils.py: top-k and its "
                                "softmax or sigmoids, in float32"};
constexpr KernelKind kPermute = {"permute",
                                 "Megatron-LM, core/transformer/moe/moe_utils.py, permute: keeps "
                                 "where each row came from"};
constexpr KernelKind kAllToAll = {"all-to-all",
                                  "Megatron-LM, core/tensor_parallel/mappings.py, _AllToAll"};
constexpr KernelKind kSortChunks = {"sort chunks",
                                    "Megatron-LM, core/transformer/moe/moe_utils.py, "
                                    "sort_chunks_by_idxs: by experts rather than by senders"};
constexpr KernelKind kGrouped = {"grouped linear",
                                 "Transformer Engine, pytorch/module/grouped_linear.py: keeps its "
                                 "input and the weights"};
constexpr KernelKind kWeightedGate = {"weighted gate",
                                      "Megatron-LM, core/fusions/fused_bias_swiglu.py, "
                                      "weighted_bias_swiglu_impl: keeps its input and the weights"};
constexpr KernelKind kUnpermute = {"unpermute",
                                   "Megatron-LM, core/transformer/moe/moe_utils.py, unpermute"};

struct Sizes {
  std::int64_t tokens = 1;
  std::int64_t width = 1;
  std::int64_t sent = 1;     // rows that this rank's tokens make
  std::int64_t rows = 1;     // that come to this rank's experts
  std::int64_t experts = 1;  // of this rank
};

Sizes SizesOf(const Stage& stage, const Operator& op, const Tensor& x) {
  Sizes sizes = {.tokens = OrLargest(Checked(x.shape.lengths[0]) * x.shape.lengths[1]),
                 .width = x.shape.Last(),
                 .experts = std::max<std::int64_t>(1, op.experts / op.expert_ranks)};
  sizes.sent = OrLargest(Checked(sizes.tokens) * op.experts_per_token);
  sizes.rows = std::max<std::int64_t>(
      1, std::llround(static_cast<double>(sizes.sent) * stage.batch.expert_imbalance));
  return sizes;
}

// The parameters of one of the two products: fc1 may be two, gate and up, and either may have a
// bias.
struct Product {
  std::size_t weight = 1;
  std::size_t other = SIZE_MAX;
  std::int64_t out = 1;
};

// Every expert on its rows, all into one tensor.
Tensor Grouped(Stage& stage, const Operator& op, const Tensor& x, const Product& product) {
  Kernels& kernels = stage.kernels;
  const std::int64_t rows = x.shape.lengths[0];
  const std::int64_t experts = std::max<std::int64_t>(1, op.experts / op.expert_ranks);
  const Gradient of_weight = kernels.framework().direct_gradients == DirectGradients::kLinear
                                 ? Gradient::kDirect
                                 : Gradient::kNew;
  Tensor y = kernels.Constant(ShapeOf({rows, product.out}), x.type, "output");
  std::int64_t expert = 0;
  for (const Tensor& part : kernels.SplitRows(x, rows, experts)) {
    const Tensor weight = stage.Parameter(op, product.weight, expert);
    const Tensor other = stage.Parameter(op, product.other, expert++);
    y = kernels.Into(kGrouped, y,
                     {{y, Gradient::kSame}, {part}, {weight, of_weight}, {other, of_weight}},
                     {&part, &weight, &other});
  }
  return y;
}

// The same router for every implementation of experts: logits, and the weights of those chosen in
// a row of all experts.
Tensor RouterWeights(Stage& stage, const Operator& op, const Tensor& x, const Sizes& sizes) {
  Kernels& kernels = stage.kernels;
  const Tensor logits = kernels.Linear(x, stage.Parameter(op, 0), Tensor(), op.experts);
  const Shape chosen = ShapeOf({sizes.tokens, op.experts_per_token});
  const Tensor weights = kernels.Constant(chosen, kFloat32, "weights of the experts chosen");
  const Tensor indices = kernels.Constant(chosen, kInt64, "experts chosen");
  return kernels.Fused(kRouter, ShapeOf({sizes.tokens, op.experts}), kFloat32, {{logits}},
                       {&weights, &indices});
}

Tensor Activated(Kernels& kernels, const Operator& op, Tensor hidden, const Tensor& weights,
                 bool gated) {
  const Shape shape = hidden.shape.WithLast(op.widths[1]);
  if (gated) {
    return kernels.Fused(kWeightedGate, shape, hidden.type, {{hidden}, {weights}},
                         {&hidden, &weights});
  }
  const ElementType type = hidden.type;
  const Tensor plain = Activate(kernels, std::move(hidden), op.activation);
  return kernels.Cast(kernels.Multiply(plain, weights), type);
}

Tensor Moved(Kernels& kernels, const KernelKind& kind, const Tensor& x, std::int64_t rows) {
  return kernels.Fused(kind, ShapeOf({rows, x.shape.Last()}), x.type, {{x}}, {});
}

}  // namespace

void MegatronExpertsRule(Stage& stage, const Operator& op) {
  Kernels& kernels = stage.kernels;
  Tensor x = stage.Take(op);
  const Shape whole = x.shape;
  const Sizes sizes = SizesOf(stage, op, x);
  x = kernels.View(std::move(x), ShapeOf({sizes.tokens, sizes.width}));
  const Tensor chosen = RouterWeights(stage, op, x, sizes);
  const Tensor places =
      kernels.Constant(ShapeOf({sizes.tokens, op.experts}), kInt64, "places of rows");
  const bool spread = op.expert_ranks > 1;
  const auto to_experts = [&](const Tensor& tokens, std::int64_t width) {
    Tensor rows =
        kernels.Fused(kPermute, ShapeOf({sizes.sent, width}), tokens.type, {{tokens}}, {&places});
    rows = spread ? Moved(kernels, kAllToAll, rows, sizes.rows) : rows;
    return spread && sizes.experts > 1 ? Moved(kernels, kSortChunks, rows, sizes.rows) : rows;
  };
  const Tensor weights = to_experts(chosen, 1);
  Tensor rows = to_experts(std::exchange(x, {}), sizes.width);
  // Gate and up apart, as checkpoints of other frameworks have them; or fc1, fc2 and their biases.
  const bool apart = op.parameters.size() == 4;
  const bool biased = op.parameters.size() == 5;
  const bool gated = apart || stage.Parameter(op, 1).shape.lengths[0] == 2 * op.widths[1];
  const Product first = {.weight = 1,
                         .other = apart    ? std::size_t{2}
                                  : biased ? std::size_t{3}
                                           : SIZE_MAX,
                         .out = (gated ? 2 : 1) * op.widths[1]};
  const Product second = {.weight = apart ? std::size_t{3} : std::size_t{2},
                          .other = biased ? std::size_t{4} : SIZE_MAX,
                          .out = sizes.width};
  Tensor hidden = Grouped(stage, op, std::exchange(rows, {}), first);
  Tensor inner = Activated(kernels, op, std::exchange(hidden, {}), weights, gated);
  Tensor result = Grouped(stage, op, std::exchange(inner, {}), second);
  result = spread && sizes.experts > 1 ? Moved(kernels, kSortChunks, result, sizes.rows) : result;
  result = spread ? Moved(kernels, kAllToAll, result, sizes.sent) : result;
  Tensor y = kernels.Fused(kUnpermute, ShapeOf({sizes.tokens, sizes.width}), result.type,
                           {{result}}, {&places});
  stage.Put(op, kernels.View(std::move(y), whole));
}

}  // namespace fourpiles
