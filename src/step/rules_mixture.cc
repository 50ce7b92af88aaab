// Routed experts, as Hugging Face wrote them for Mixtral (transformers 4.36 to 4.57,
// models/mixtral/modeling_mixtral.py, MixtralSparseMoeBlock): no token is dropped, and one expert
// runs after the other on the tokens that chose it. Its descendants differ in the router and in
// where float32 is used: models/qwen3_moe (Qwen3MoeSparseMoeBlock), models/deepseek_v3
// (DeepseekV3MoE, DeepseekV3TopkRouter), models/gpt_oss (GptOssExperts, as it trains).

#include <cmath>
#include <utility>
#include <vector>

#include "step/rules.h"

namespace fourpiles {
namespace {

constexpr KernelKind kTopK = {"topk", "derivatives.yaml: topk keeps indices"};
constexpr KernelKind kDivide = {"divide", "derivatives.yaml: div keeps self and other"};
constexpr KernelKind kGather = {"index", "derivatives.yaml: index keeps its indices"};
constexpr KernelKind kGatherScores = {"gather", "derivatives.yaml: gather keeps self and index"};
constexpr KernelKind kIndexAdd = {"index_add",
                                  "derivatives.yaml: index_add keeps source and index"};

// How many of the tokens the expert gets: as given, or an equal share.
std::int64_t TokensOf(const Stage& stage, const Operator& op, std::int64_t expert,
                      std::int64_t tokens) {
  const auto layer = static_cast<std::size_t>(stage.layer);
  if (layer < stage.batch.expert_tokens.size()) {
    return stage.batch.expert_tokens[layer][static_cast<std::size_t>(expert)];
  }
  // Ranks that experts are spread over send as many tokens each.
  const Checked sent = Checked(tokens) * op.experts_per_token * op.expert_ranks;
  const auto routed =
      std::llround(static_cast<double>(OrLargest(sent)) * stage.batch.expert_imbalance);
  return routed / op.experts + (expert < routed % op.experts ? 1 : 0);
}

// An expert that runs, and for how many alike.
struct ExpertRun {
  std::int64_t number = 0;
  std::int64_t tokens = 0;
  std::int64_t alike = 1;
};

// Those of this rank that get tokens. Of more than three that get as many, the first and the last
// run for themselves, and one for all between: from one to the next memory grows or falls by the
// same amount.
std::vector<ExpertRun> ExpertRuns(const Stage& stage, const Operator& op, std::int64_t tokens) {
  std::vector<ExpertRun> runs;
  const std::int64_t experts = op.experts / op.expert_ranks;
  for (std::int64_t first = 0, end = 0; first < experts; first = end) {
    const std::int64_t chosen = TokensOf(stage, op, first, tokens);
    end = first + 1;
    while (end < experts && TokensOf(stage, op, end, tokens) == chosen) {
      ++end;
    }
    constexpr std::int64_t kAtTheEnds = 2;
    const std::int64_t alike = end - first;
    const std::int64_t between =
        stage.batch.each_expert || alike <= kAtTheEnds + 1 ? 1 : alike - kAtTheEnds;
    for (std::int64_t number = first; chosen > 0 && number < end;) {
      const std::int64_t stands_for = number == first + 1 ? between : 1;
      runs.push_back({number, chosen, stands_for});
      number += stands_for;
    }
  }
  return runs;
}

// The weights of the experts that each token chooses, (tokens, chosen).
Tensor Chosen(Kernels& kernels, const Operator& op, Tensor scores, std::int64_t tokens) {
  const Shape best = ShapeOf({tokens, op.experts_per_token});
  if (op.routing == Routing::kSoftmaxOfChosen) {
    const Tensor indices = kernels.Constant(best, kInt64, "experts chosen");
    return kernels.Softmax(kernels.Fused(kTopK, best, scores.type, {{scores}}, {&indices}));
  }
  scores = kernels.Cast(std::move(scores), kFloat32);
  // Sigmoids are chosen from with a correction that has no gradient, and then gathered.
  const bool gathered = op.routing == Routing::kSigmoid;
  scores = gathered ? Activate(kernels, std::move(scores), Activation::kSigmoid)
                    : kernels.Softmax(std::move(scores));
  const Tensor indices = kernels.Constant(best, kInt64, "experts chosen");
  return gathered ? kernels.Fused(kGatherScores, best, kFloat32, {{scores}}, {&scores, &indices})
                  : kernels.Fused(kTopK, best, kFloat32, {{scores}}, {&indices});
}

// The router: a linear layer, with a bias where `bias` is a parameter of the operator.
Tensor Route(Stage& stage, const Operator& op, Tensor x, std::size_t bias) {
  Kernels& kernels = stage.kernels;
  const std::int64_t tokens = x.shape.lengths[0];
  const ElementType type = op.float32 ? kFloat32 : x.type;
  Tensor weight = stage.Parameter(op, 0);
  if (op.float32) {
    x = kernels.Cast(std::move(x), kFloat32);
    weight = kernels.Cast(std::move(weight), kFloat32);
  }
  Tensor scores = kernels.Linear(std::move(x), weight, stage.Parameter(op, bias), op.experts);
  Tensor top = Chosen(kernels, op, std::move(scores), tokens);
  if (op.normalized) {
    const Tensor sum = kernels.Sum(top, ShapeOf({tokens, 1}));
    top = kernels.Fused(kDivide, top.shape, top.type, {{top}, {sum}}, {&top, &sum});
  }
  return kernels.Cast(std::move(top), type);
}

// One expert on the tokens that chose it.
using Expert = Tensor (*)(Stage& stage, const Operator& op, const Tensor& x, std::int64_t expert);

// down(silu(gate(x)) × up(x)).
Tensor SeparateExpert(Stage& stage, const Operator& op, const Tensor& x, std::int64_t expert) {
  Kernels& kernels = stage.kernels;
  const std::int64_t width = op.widths[1];
  const auto linear = [&](Tensor input, std::size_t which, std::int64_t out) {
    return kernels.Linear(std::move(input), stage.Parameter(op, which, expert), Tensor(), out);
  };
  const Tensor gate = Activate(kernels, linear(x, 1, width), op.activation);
  return linear(kernels.Multiply(gate, linear(x, 2, width)), 3, op.widths[0]);
}

// The same with tensors that hold all experts: a slice of each is used, whose gradient is as large
// as the whole.
Tensor StackedExpert(Stage& stage, const Operator& op, const Tensor& x, std::int64_t /*expert*/) {
  Kernels& kernels = stage.kernels;
  const auto product = [&](Tensor input, std::size_t which, std::int64_t out) {
    const std::int64_t in = input.shape.Last();
    const Shape shape = input.shape.WithLast(out);
    const Tensor weight = kernels.Slice(stage.Parameter(op, which), ShapeOf({in, out}));
    Tensor y = kernels.MatMul(std::move(input), weight, shape);
    const std::size_t bias = which + 3;
    return bias < op.parameters.size()
               ? kernels.Add(y, kernels.Slice(stage.Parameter(op, bias), ShapeOf({out})))
               : y;
  };
  const std::int64_t width = op.widths[1];
  std::vector<Tensor> both = kernels.Split(product(x, 1, 2 * width), {width, width});
  Tensor gated =
      Gated(kernels, std::exchange(both[0], {}), std::exchange(both[1], {}), op.activation);
  return product(std::move(gated), 2, op.widths[0]);
}

// The experts one after the other; each adds to the tokens that chose it.
void RunExperts(Stage& stage, const Operator& op, std::size_t router_bias, Expert run) {
  Kernels& kernels = stage.kernels;
  Tensor x = stage.Take(op);
  const Shape whole = x.shape;
  const std::int64_t width = x.shape.Last();
  const std::int64_t tokens = OrLargest(Checked(x.shape.lengths[0]) * x.shape.lengths[1]);
  x = kernels.View(std::move(x), ShapeOf({tokens, width}));
  const Tensor weights = Route(stage, op, x, router_bias);
  Tensor output = kernels.Constant(x.shape, op.float32 ? kFloat32 : x.type, "output");
  for (const ExpertRun& expert : ExpertRuns(stage, op, tokens)) {
    kernels.StandFor(expert.alike);
    // torch.where: two columns of one tensor.
    const Tensor places = kernels.Constant(ShapeOf({expert.tokens, 2}), kInt64, "tokens chosen");
    const Tensor input =
        kernels.Fused(kGather, ShapeOf({expert.tokens, width}), x.type, {{x}}, {&places});
    const Tensor weight =
        kernels.Fused(kGather, ShapeOf({expert.tokens, 1}), weights.type, {{weights}}, {&places});
    Tensor result = kernels.Multiply(run(stage, op, input, expert.number), weight);
    result = kernels.Cast(std::move(result), output.type);
    output = kernels.InPlace(kIndexAdd, std::move(output), result, {&result, &places});
  }
  kernels.StandFor(1);
  stage.Put(op, kernels.View(kernels.Cast(std::move(output), x.type), whole));
}

// No parameter of the operator.
constexpr std::size_t kNoBias = SIZE_MAX;

}  // namespace

void ExpertsRule(Stage& stage, const Operator& op) {
  RunExperts(stage, op, kNoBias, SeparateExpert);
}

void StackedExpertsRule(Stage& stage, const Operator& op) {
  RunExperts(stage, op, 3, StackedExpert);
}

}  // namespace fourpiles
