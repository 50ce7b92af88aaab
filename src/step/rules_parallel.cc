// What ranks that share a layer send to one another.

#include "step/rules.h"

namespace fourpiles {
namespace {

constexpr KernelKind kAllGather = {
    "all-gather", "torch.distributed: its output is a tensor of all ranks' tokens"};
constexpr KernelKind kReduceScatter = {"reduce-scatter",
                                       "torch.distributed: its output is a tensor of its own"};

Shape WithTokens(const Tensor& x, std::int64_t tokens) {
  Shape shape = x.shape;
  shape.lengths[1] = tokens;
  return shape;
}

}  // namespace

// The layers behind keep what was gathered (torch/distributed/tensor/parallel/style.py,
// PrepareModuleInput).
void GatherTokensRule(Stage& stage, const Operator& op) {
  const Tensor x = stage.Take(op);
  stage.Put(op, stage.kernels.Fused(kAllGather, WithTokens(x, x.shape.lengths[1] * op.ranks),
                                    x.type, {{x}}, {}));
}

// The layers behind keep this rank's tokens, and gather the others again (Megatron-LM,
// core/tensor_parallel/layers.py; Korthikanti et al. 2022, arXiv 2205.05198, section 4.2.2). Keys
// and values of a sequence that is cut are those of other ranks for as long as attention runs
// (Transformer Engine, pytorch/attention.py, AttnFuncWithCPAndKVP2P; PyTorch,
// distributed/tensor/experimental/_attention.py).
void GatherTokensAgainRule(Stage& stage, const Operator& op) {
  const Tensor x = stage.Take(op);
  stage.Put(
      op, stage.kernels.GatheredAgain(kAllGather, x, WithTokens(x, x.shape.lengths[1] * op.ranks)));
}

void ScatterTokensRule(Stage& stage, const Operator& op) {
  const Tensor x = stage.Take(op);
  const std::int64_t tokens = (x.shape.lengths[1] + op.ranks - 1) / op.ranks;
  stage.Put(op, stage.kernels.Dear(kReduceScatter, WithTokens(x, tokens), x.type, {{x}}, {}));
}

}  // namespace fourpiles
