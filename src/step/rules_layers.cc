// What stands in most layers: lookups, linear layers, norms, activations, residuals.

#include <utility>

#include "step/rules.h"

namespace fourpiles {
namespace {

constexpr KernelKind kGelu = {"gelu", "derivatives.yaml: gelu keeps self"};
constexpr KernelKind kSilu = {"silu", "derivatives.yaml: silu keeps self"};
constexpr KernelKind kRelu = {"relu", "derivatives.yaml: relu keeps result"};
constexpr KernelKind kTanh = {"tanh", "derivatives.yaml: tanh keeps result"};
constexpr KernelKind kRoot = {"rsqrt", "derivatives.yaml: rsqrt keeps result"};
constexpr KernelKind kFusedNorm = {"rms_norm", "a fused kernel keeps its input and 1/rms"};
constexpr KernelKind kFusedGate = {"gate", "a fused kernel keeps both inputs"};

}  // namespace

void EmbeddingRule(Stage& stage, const Operator& op) {
  const Shape shape =
      ShapeOf({stage.batch.micro_batch_size, stage.batch.sequence_length, op.widths.front()});
  stage.Put(op, stage.kernels.Embedding(stage.Parameter(op, 0), Tensor(), shape));
}

// torch.arange(sequence)[None]: one row for all samples.
void PositionsRule(Stage& stage, const Operator& op) {
  const std::int64_t tokens = stage.batch.sequence_length;
  const Tensor positions = stage.kernels.Constant(ShapeOf({1, tokens}), kInt64, "positions");
  stage.Put(op, stage.kernels.Embedding(stage.Parameter(op, 0), positions,
                                        ShapeOf({1, tokens, op.widths.front()})));
}

void TokenTypesRule(Stage& stage, const Operator& op) {
  const std::int64_t batch = stage.batch.micro_batch_size;
  const std::int64_t tokens = stage.batch.sequence_length;
  const Tensor types = stage.kernels.Constant(ShapeOf({batch, tokens}), kInt64, "token types");
  stage.Put(op, stage.kernels.Embedding(stage.Parameter(op, 0), types,
                                        ShapeOf({batch, tokens, op.widths.front()})));
}

void ConstantRule(Stage& stage, const Operator& op) {
  Tensor parameter = stage.Parameter(op, 0);
  stage.Put(op, std::move(parameter));
}

// (Hu et al. 2021, LoRA, section 4.1; peft/tuners/lora/layer.py).
Tensor WithAdapter(Stage& stage, const Operator& op, Tensor x, Tensor y) {
  Kernels& kernels = stage.kernels;
  const Tensor down = stage.Parameter(op, op.parameters.size() - 2);
  const Tensor up = stage.Parameter(op, op.parameters.size() - 1);
  if (down.type.bits > x.type.bits && !kernels.numbers().autocast) {
    x = kernels.Cast(std::move(x), down.type);
  }
  if (op.adapter_dropout) {
    x = kernels.Dropout(std::move(x));
  }
  Tensor z = kernels.Linear(std::move(x), down, Tensor(), op.adapter_rank);
  z = kernels.Linear(std::move(z), up, Tensor(), op.widths.front());
  z = kernels.Scale(z);
  z = kernels.Cast(std::move(z), y.type);
  return kernels.Add(y, z);
}

void LinearRule(Stage& stage, const Operator& op) {
  Tensor x = stage.Take(op);
  const std::size_t own = op.parameters.size() - (op.adapter_rank > 0 ? 2 : 0);
  const Tensor bias = own > 1 ? stage.Parameter(op, 1) : Tensor();
  if (op.adapter_rank == 0) {
    stage.Put(op,
              stage.kernels.Linear(std::move(x), stage.Parameter(op, 0), bias, op.widths.front()));
    return;
  }
  Tensor y = stage.kernels.Linear(x, stage.Parameter(op, 0), bias, op.widths.front());
  stage.Put(op, WithAdapter(stage, op, std::move(x), std::move(y)));
}

// In float32 where its weights are; the result goes back unless autocast is on.
void LayerNormRule(Stage& stage, const Operator& op) {
  Kernels& kernels = stage.kernels;
  Tensor x = stage.Take(op);
  const Tensor weight = stage.Parameter(op, 0);
  const ElementType type = x.type;
  Tensor y =
      kernels.LayerNorm(kernels.Cast(std::move(x), weight.type), weight, stage.Parameter(op, 1));
  stage.Put(op, kernels.numbers().autocast ? std::move(y) : kernels.Cast(std::move(y), type));
}

// As Hugging Face writes it (models/llama/modeling_llama.py, LlamaRMSNorm): in float32, then the
// weight times the result in the format of the input.
void ComposedRmsNormRule(Stage& stage, const Operator& op) {
  Kernels& kernels = stage.kernels;
  Tensor x = stage.Take(op);
  const ElementType type = x.type;
  x = kernels.Cast(std::move(x), kFloat32);
  Tensor root;
  {
    const Tensor variance = kernels.Mean(kernels.Square(x), x.shape.WithLast(1));
    root = kernels.KeepOutput(kRoot, kernels.Scale(variance));
  }
  x = kernels.Multiply(x, root);
  x = kernels.Cast(std::move(x), type);
  stage.Put(op, kernels.Multiply(stage.Parameter(op, 0), x));
}

void FusedRmsNormRule(Stage& stage, const Operator& op) {
  const Tensor x = stage.Take(op);
  const Tensor weight = stage.Parameter(op, 0);
  const Tensor root = stage.kernels.Constant(x.shape.WithLast(1), kFloat32, "1/rms");
  const ElementType& type = weight.type.bits > x.type.bits ? weight.type : x.type;
  Tensor y = stage.kernels.Fused(kFusedNorm, x.shape, type, {{x}, {weight}}, {&x, &root});
  stage.Put(op, stage.kernels.Elementwise(std::move(y), {&x, &root}));
}

namespace {

// 0.5 × x × (1 + tanh(√(2/π) × (x + 0.044715 × x³))), term by term (transformers/activations.py,
// NewGELUActivation).
Tensor ComposedGelu(Kernels& kernels, const Tensor& x) {
  const Tensor half = kernels.Scale(x);
  const Tensor inner = kernels.Add(x, kernels.Scale(kernels.Square(x)));
  const Tensor tanh = kernels.KeepOutput(kTanh, kernels.Scale(inner));
  return kernels.Multiply(half, kernels.Scale(tanh));
}

Tensor Activate(Kernels& kernels, Tensor x, Activation activation) {
  switch (activation) {
    case Activation::kGelu:
    case Activation::kGeluTanh:
      return kernels.KeepInput(kGelu, x);
    case Activation::kSilu:
      return kernels.KeepInput(kSilu, x);
    case Activation::kRelu:
      return kernels.KeepOutput(kRelu, x);
    case Activation::kReluInPlace:
      return kernels.KeepInPlace(kRelu, std::move(x));
    case Activation::kTanh:
      return kernels.KeepOutput(kTanh, x);
    case Activation::kSquaredRelu:
      return kernels.Square(kernels.KeepOutput(kRelu, x));
    case Activation::kGeluComposed:
      break;
  }
  return ComposedGelu(kernels, x);
}

}  // namespace

void ActivationRule(Stage& stage, const Operator& op) {
  stage.Put(op, Activate(stage.kernels, stage.Take(op), op.activation));
}

void ComposedGateRule(Stage& stage, const Operator& op) {
  const Tensor gate = Activate(stage.kernels, stage.Take(op, 0), op.activation);
  stage.Put(op, stage.kernels.Multiply(gate, stage.Take(op, 1)));
}

void FusedGateRule(Stage& stage, const Operator& op) {
  const Tensor gate = stage.Take(op, 0);
  const Tensor up = stage.Take(op, 1);
  Tensor y = stage.kernels.Fused(kFusedGate, gate.shape, gate.type, {{gate}, {up}}, {&gate, &up});
  stage.Put(op, stage.kernels.Elementwise(std::move(y), {&gate, &up}));
}

void MultiplyRule(Stage& stage, const Operator& op) {
  const Tensor a = stage.Take(op, 0);
  stage.Put(op, stage.kernels.Multiply(a, stage.Take(op, 1)));
}

void ScaleRule(Stage& stage, const Operator& op) {
  stage.Put(op, stage.kernels.Scale(stage.Take(op)));
}

void AddRule(Stage& stage, const Operator& op) {
  Tensor a = stage.Take(op, 0);
  const Tensor b = stage.Take(op, 1);
  stage.Put(op, op.in_place ? stage.kernels.AddInPlace(std::move(a), b) : stage.kernels.Add(a, b));
}

void DropoutRule(Stage& stage, const Operator& op) {
  stage.Put(op, stage.kernels.Dropout(stage.Take(op)));
}

void SplitRule(Stage& stage, const Operator& op) {
  std::vector<Tensor> parts = stage.kernels.Split(stage.Take(op), op.widths);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    stage.Put(op, std::move(parts[i]), i);
  }
}

void ConcatRule(Stage& stage, const Operator& op) {
  const Tensor a = stage.Take(op, 0);
  const Tensor b = stage.Take(op, 1);
  stage.Put(op, stage.kernels.Concat(a, b, a.shape.WithLast(a.shape.Last() + b.shape.Last())));
}

// x.requires_grad_(True): adapters in the layers behind need it where the embedding is frozen and
// layers are run again (transformers, enable_input_require_grads).
void InputGradientRule(Stage& stage, const Operator& op) {
  Tensor x = stage.Take(op);
  stage.kernels.RequireGradient(x);
  stage.Put(op, std::move(x));
}

// torch.cat((token.expand(batch), x), 1).
void PrependTokenRule(Stage& stage, const Operator& op) {
  const Tensor x = stage.Take(op);
  const Tensor token = stage.Parameter(op, 0);
  Shape shape = x.shape;
  ++shape.lengths[1];
  // Of one sample the expansion is none, and the token's gradient a view of that of all tokens.
  stage.Put(op, stage.kernels.Concat(token, x, shape,
                                     shape.lengths[0] == 1 ? Gradient::kPart : Gradient::kNew));
}

// x[:, 0]: a view of a view, of all samples and of their first tokens; it keeps all tokens alive.
void FirstTokenRule(Stage& stage, const Operator& op) {
  const Tensor x = stage.Take(op);
  const Tensor all = stage.kernels.Slice(x, x.shape);
  stage.Put(op, stage.kernels.Slice(all, ShapeOf({x.shape.lengths[0], x.shape.Last()})));
}

}  // namespace fourpiles
