// What stands in most layers: lookups, linear layers, norms, activations, residuals.

#include <utility>

#include "step/rules.h"

namespace fourpiles {
namespace {

constexpr KernelKind kGelu = {"gelu", "derivatives.yaml: gelu keeps self"};
constexpr KernelKind kSilu = {"silu", "derivatives.yaml: silu keeps self"};
constexpr KernelKind kRelu = {"relu", "derivatives.yaml: relu keeps result"};
constexpr KernelKind kTanh = {"tanh", "derivatives.yaml: tanh keeps result"};
constexpr KernelKind kSigmoid = {"sigmoid", "derivatives.yaml: sigmoid keeps result"};
constexpr KernelKind kClamp = {"clamp", "derivatives.yaml: clamp keeps self"};
constexpr KernelKind kRoot = {"rsqrt", "derivatives.yaml: rsqrt keeps result"};
constexpr KernelKind kFusedNorm = {"rms_norm", "a fused kernel keeps its input and 1/rms"};
constexpr KernelKind kFusedGate = {"gate", "a fused kernel keeps both inputs"};

}  // namespace

void EmbeddingRule(Stage& stage, const Operator& op) {
  const std::int64_t tokens = stage.batch.sequence_length - stage.batch.prompt_tokens;
  const Shape shape = ShapeOf({stage.batch.micro_batch_size, tokens, op.widths.front()});
  Tensor x = stage.kernels.Embedding(stage.Parameter(op, 0), Tensor(), shape);
  stage.Put(op, EmbeddingWithAdapter(stage, op, std::move(x)));
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

void LinearRule(Stage& stage, const Operator& op) {
  stage.Put(op, LinearWithAdapter(stage, op, stage.Take(op)));
}

namespace {

// Heads as a dimension of their own, so that each has its statistics.
Tensor OfHeads(Stage& stage, const Operator& op, Tensor x) {
  if (op.heads == 1) {
    return x;
  }
  const Shape shape =
      ShapeOf({x.shape.lengths[0], x.shape.lengths[1], op.heads, x.shape.Last() / op.heads});
  return stage.kernels.View(std::move(x), shape);
}

// x × 1/√(mean of squares), in float32.
Tensor DividedByRoot(Kernels& kernels, const Tensor& x) {
  const Tensor variance = kernels.Mean(kernels.Square(x), x.shape.WithLast(1));
  return kernels.Multiply(x, kernels.KeepOutput(kRoot, kernels.Scale(variance)));
}

// (x - mean) / deviation × weight, in float32 (models/cohere/modeling_cohere.py, CohereLayerNorm).
Tensor ComposedLayerNorm(Kernels& kernels, const Tensor& x, const Tensor& weight) {
  Tensor root;
  Tensor centered;
  {
    const Tensor mean = kernels.Mean(x, x.shape.WithLast(1));
    const Tensor variance = kernels.Mean(kernels.Square(kernels.Add(x, mean)), x.shape.WithLast(1));
    centered = kernels.Add(x, mean);
    root = kernels.KeepOutput(kRoot, kernels.Scale(variance));
  }
  const Tensor normed = kernels.Multiply(centered, root);
  return kernels.Multiply(kernels.Cast(weight, kFloat32), normed);
}

}  // namespace

// In float32 where its weights are; the result goes back unless autocast is on.
void LayerNormRule(Stage& stage, const Operator& op) {
  Kernels& kernels = stage.kernels;
  Tensor x = stage.Take(op);
  const Shape whole = x.shape;
  const Tensor weight = stage.Parameter(op, 0);
  const ElementType type = x.type;
  x = OfHeads(stage, op, std::move(x));
  if (op.norm == NormForm::kComposed) {
    x = kernels.Cast(std::move(x), kFloat32);
    x = kernels.Cast(ComposedLayerNorm(kernels, x, weight), type);
  } else {
    x = kernels.LayerNorm(kernels.Cast(std::move(x), weight.type), weight, stage.Parameter(op, 1));
    x = kernels.numbers().autocast ? std::move(x) : kernels.Cast(std::move(x), type);
  }
  stage.Put(op, kernels.View(std::move(x), whole));
}

// As Hugging Face writes it, in float32. Llama goes back to the format of the input before the
// product with the weight (models/llama/modeling_llama.py, LlamaRMSNorm), OLMo 2 after it
// (models/olmo2, Olmo2RMSNorm), and so does Gemma, with 1 + weight in float32 (models/gemma,
// GemmaRMSNorm).
void ComposedRmsNormRule(Stage& stage, const Operator& op) {
  Kernels& kernels = stage.kernels;
  Tensor x = stage.Take(op);
  const Shape whole = x.shape;
  const ElementType type = x.type;
  const Tensor weight = stage.Parameter(op, 0);
  x = kernels.Cast(OfHeads(stage, op, std::move(x)), kFloat32);
  x = DividedByRoot(kernels, x);
  if (op.norm == NormForm::kPlain) {
    x = kernels.Cast(std::move(x), type);
    x = kernels.Multiply(weight, x);
  } else if (op.norm == NormForm::kShifted) {
    const Tensor shifted = kernels.Scale(kernels.Cast(weight, kFloat32));
    x = kernels.Cast(kernels.Multiply(x, shifted), type);
  } else {
    x = kernels.Cast(kernels.Multiply(weight, x), type);
  }
  stage.Put(op, kernels.View(std::move(x), whole));
}

void FusedRmsNormRule(Stage& stage, const Operator& op) {
  Tensor x = stage.Take(op);
  const Shape whole = x.shape;
  x = OfHeads(stage, op, std::move(x));
  const Tensor weight = stage.Parameter(op, 0);
  const Tensor root = stage.kernels.Constant(x.shape.WithLast(1), kFloat32, "1/rms");
  const ElementType& type = weight.type.bits > x.type.bits ? weight.type : x.type;
  Tensor y = stage.kernels.Fused(kFusedNorm, x.shape, type, {{x}, {weight}}, {&x, &root});
  y = stage.kernels.Elementwise(std::move(y), {&x, &root});
  stage.Put(op, stage.kernels.View(std::move(y), whole));
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

}  // namespace

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
    case Activation::kSigmoid:
      return kernels.KeepOutput(kSigmoid, x);
    case Activation::kSquaredRelu:
      return kernels.Square(kernels.KeepOutput(kRelu, x));
    case Activation::kClampedSwish:  // x × sigmoid(1.702 × x)
      return kernels.Multiply(x, kernels.KeepOutput(kSigmoid, kernels.Scale(x)));
    case Activation::kGeluComposed:
      break;
  }
  return ComposedGelu(kernels, x);
}

Tensor SoftCapped(Kernels& kernels, Tensor x) {
  x = kernels.Scale(x);
  x = kernels.KeepOutput(kTanh, x);
  return kernels.Scale(x);
}

// gpt-oss bounds the gate from above and the input to both sides, and adds 1 to the input
// (models/gpt_oss/modeling_gpt_oss.py, GptOssExperts).
Tensor Gated(Kernels& kernels, Tensor gate, Tensor up, Activation activation) {
  if (activation != Activation::kClampedSwish) {
    gate = Activate(kernels, std::move(gate), activation);
    return kernels.Multiply(gate, up);
  }
  gate = kernels.KeepInput(kClamp, gate);
  up = kernels.KeepInput(kClamp, up);
  gate = Activate(kernels, std::move(gate), activation);
  return kernels.Multiply(kernels.Scale(up), gate);
}

void ActivationRule(Stage& stage, const Operator& op) {
  stage.Put(op, Activate(stage.kernels, stage.Take(op), op.activation));
}

void ComposedGateRule(Stage& stage, const Operator& op) {
  Tensor gate = stage.Take(op, 0);
  stage.Put(op, Gated(stage.kernels, std::move(gate), stage.Take(op, 1), op.activation));
}

void FusedGateRule(Stage& stage, const Operator& op) {
  const Tensor gate = stage.Take(op, 0);
  const Tensor up = stage.Take(op, 1);
  Tensor y = stage.kernels.Fused(kFusedGate, gate.shape, gate.type, {{gate}, {up}}, {&gate, &up});
  stage.Put(op, stage.kernels.Elementwise(std::move(y), {&gate, &up}));
}

// The gradients take the place of what was kept (Liger-Kernel, ops/swiglu.py, geglu.py).
void LigerGateRule(Stage& stage, const Operator& op) {
  const Tensor gate = stage.Take(op, 0);
  const Tensor up = stage.Take(op, 1);
  stage.Put(op,
            stage.kernels.Fused(kFusedGate, gate.shape, gate.type,
                                {{gate, Gradient::kKept}, {up, Gradient::kKept}}, {&gate, &up}));
}

// Dropout that the framework has not.
void PassRule(Stage& stage, const Operator& op) {
  stage.Put(op, stage.Take(op));
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

void ExpandRule(Stage& stage, const Operator& op) {
  const Tensor x = stage.Take(op);
  stage.Put(op, stage.kernels.Slice(x, x.shape.WithLast(op.heads * x.shape.Last())));
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
  if (op.prefix_tokens > 0) {
    stage.Put(op, WithPrompt(stage, op, x));
    return;
  }
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
