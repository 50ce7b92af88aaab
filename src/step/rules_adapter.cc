// What adapters add to the layer that they stand beside, as peft's modules compute it, from two
// matrices A and B of low rank or from vectors. Those in float32 make the input float32 as well,
// where autocast does not decide, and what comes out goes back to the format of the layer.
//
// Without dropout, of N tokens with `in` inputs and `out` outputs, what is kept beside the layer's
// own in float32, measured with PyTorch 1.13.1 (adapters_test.cc):
//   LoRA  4 N (in + r)
//   DoRA  4 (N (in + r + 2 out) + 3 out)
//   VeRA  4 N (r + out)
//   IA3   4 (N out + out), or 4 (N in + in)

#include <utility>

#include "step/rules.h"

namespace fourpiles {
namespace {

constexpr KernelKind kDivide = {"divide",
                                "derivatives.yaml: div keeps other, and self where other "
                                "needs a gradient"};
constexpr KernelKind kVectorNorm = {"norm",
                                    "derivatives.yaml: linalg_vector_norm; of a detached "
                                    "tensor"};

std::size_t AdapterParameters(const Operator& op) {
  switch (op.adapter) {
    case AdapterForm::kNone:
      break;
    case AdapterForm::kLowRank:
    case AdapterForm::kScaledRandom:
      return 2;
    case AdapterForm::kDecomposed:
      return 3;
    case AdapterForm::kScaledOutput:
    case AdapterForm::kScaledInput:
      return 1;
  }
  return 0;
}

// The number'th of the adapter's own.
Tensor AdapterParameter(const Stage& stage, const Operator& op, std::size_t number) {
  return stage.Parameter(op, OwnParameters(op) + number);
}

// What the matrices read.
Tensor AdapterInput(Stage& stage, const Operator& op, Tensor x, const Tensor& matrix) {
  Kernels& kernels = stage.kernels;
  if (matrix.type.bits > x.type.bits && !kernels.numbers().autocast) {
    x = kernels.Cast(std::move(x), matrix.type);
  }
  return op.adapter_dropout ? kernels.Dropout(std::move(x)) : x;
}

// B A x.
Tensor Product(Stage& stage, const Operator& op, Tensor x) {
  const Tensor z =
      stage.kernels.Linear(std::move(x), AdapterParameter(stage, op, 0), Tensor(), op.adapter_rank);
  return stage.kernels.Linear(z, AdapterParameter(stage, op, 1), Tensor(), op.widths.front());
}

Tensor AddedTo(Kernels& kernels, const Tensor& y, Tensor z) {
  return kernels.Add(y, kernels.Cast(std::move(z), y.type));
}

// y + B A x × scale (Hu et al. 2021, LoRA, section 4.1; peft/tuners/lora/layer.py).
Tensor WithLora(Stage& stage, const Operator& op, Tensor x, const Tensor& y) {
  x = AdapterInput(stage, op, std::move(x), AdapterParameter(stage, op, 0));
  return AddedTo(stage.kernels, y, stage.kernels.Scale(Product(stage, op, std::move(x))));
}

Tensor Detached(Tensor x) {
  x.edge = kNothing;
  return x;
}

// What DoRA has at hand until its layer is done: the layer's weight in the format of its input, and
// B A as it comes out for an identity matrix, so that sharded parameters are gathered
// (peft/tuners/lora/dora.py, DoraLinearLayer.forward).
struct WholeWeight {
  Tensor identity = {};
  Tensor down = {};
  Tensor product = {};
  Tensor weight = {};
  Tensor lengths = {};  // of the rows of both, a constant to the backward pass (section 4.3)
};

WholeWeight WholeWeightOf(Stage& stage, const Operator& op, const Tensor& x) {
  Kernels& kernels = stage.kernels;
  const std::int64_t in = x.shape.Last();
  const std::int64_t out = op.widths.front();
  WholeWeight whole;
  whole.identity = kernels.Constant(ShapeOf({in, in}), x.type, "identity");
  whole.down = kernels.Linear(whole.identity, Detached(AdapterParameter(stage, op, 0)), Tensor(),
                              op.adapter_rank);
  whole.product =
      kernels.Linear(whole.down, Detached(AdapterParameter(stage, op, 1)), Tensor(), out);
  whole.weight = kernels.Cast(Detached(stage.Parameter(op, 0)), x.type);
  const Tensor sum = kernels.Add(whole.weight, kernels.Scale(whole.product));
  whole.lengths = kernels.Fused(kVectorNorm, ShapeOf({out}), sum.type, {{sum}}, {});
  return whole;
}

// (m - 1) × W x + m × B A x × scale, where m is the trained length of each row by the length it
// has. `base` is W x; an empty one is computed anew.
Tensor DoraOf(Stage& stage, const Operator& op, const Tensor& x, Tensor base) {
  Kernels& kernels = stage.kernels;
  const WholeWeight whole = WholeWeightOf(stage, op, x);
  const Tensor magnitude = AdapterParameter(stage, op, 2);
  const Tensor factor = kernels.Fused(kDivide, magnitude.shape, magnitude.type,
                                      {{magnitude}, {whole.lengths}}, {&whole.lengths});
  const Tensor product = Product(stage, op, x);
  if (base.storage == kNothing) {
    base = kernels.Linear(x, whole.weight, Tensor(), op.widths.front());
  }
  const Tensor of_base = kernels.Multiply(kernels.Scale(factor), base);
  const Tensor of_product = kernels.Scale(kernels.Multiply(factor, product));
  return kernels.Add(of_base, of_product);
}

// It is added to y. W x is y without its bias, but where x has dropout that of what is left of x.
Tensor WithDora(Stage& stage, const Operator& op, Tensor x, const Tensor& y) {
  Kernels& kernels = stage.kernels;
  Tensor base = op.adapter_dropout ? Tensor() : y;
  if (base.storage != kNothing && OwnParameters(op) > 1) {
    base = kernels.Add(y, stage.Parameter(op, 1));
  }
  x = AdapterInput(stage, op, std::move(x), AdapterParameter(stage, op, 0));
  const Tensor added = DoraOf(stage, op, x, std::move(base));
  return kernels.Cast(kernels.Add(y, added), y.type);
}

// y + b × B (d × A x) (Kopiczko et al. 2023, VeRA, equation 2; peft/tuners/vera/layer.py). A and B
// are views of buffers that all layers share.
Tensor WithVera(Stage& stage, const Operator& op, Tensor x, const Tensor& y) {
  Kernels& kernels = stage.kernels;
  const Tensor of_rank = AdapterParameter(stage, op, 0);
  const Tensor of_output = AdapterParameter(stage, op, 1);
  x = AdapterInput(stage, op, std::move(x), of_rank);
  Tensor matrix = of_rank;
  matrix.edge = kNothing;
  matrix.shape = ShapeOf({op.adapter_rank, x.shape.Last()});
  Tensor z = kernels.Linear(std::move(x), matrix, Tensor(), op.adapter_rank);
  z = kernels.Multiply(of_rank, z);
  matrix.shape = ShapeOf({op.widths.front(), op.adapter_rank});
  z = kernels.Linear(std::move(z), matrix, Tensor(), op.widths.front());
  return AddedTo(kernels, y, kernels.Multiply(of_output, z));
}

// The vector is multiplied by 1 first, which makes a tensor of its own; an input is cast to its
// format, an output is not (peft/tuners/ia3/layer.py).
Tensor TimesVector(Stage& stage, const Operator& op, Tensor x) {
  Kernels& kernels = stage.kernels;
  const ElementType type = x.type;
  const Tensor vector = kernels.Scale(AdapterParameter(stage, op, 0));
  if (op.adapter == AdapterForm::kScaledInput) {
    x = kernels.Cast(std::move(x), vector.type);
  }
  return kernels.Cast(kernels.Multiply(x, vector), type);
}

}  // namespace

std::size_t OwnParameters(const Operator& op) {
  return op.parameters.size() - AdapterParameters(op);
}

Tensor LinearWithAdapter(Stage& stage, const Operator& op, Tensor x) {
  Kernels& kernels = stage.kernels;
  const Tensor weight = stage.Parameter(op, 0);
  const Tensor bias = OwnParameters(op) > 1 ? stage.Parameter(op, 1) : Tensor();
  const std::int64_t out = op.widths.front();
  if (op.adapter == AdapterForm::kNone) {
    return kernels.Linear(std::move(x), weight, bias, out);
  }
  if (op.adapter == AdapterForm::kScaledInput) {
    return kernels.Linear(TimesVector(stage, op, std::move(x)), weight, bias, out);
  }
  Tensor y = kernels.Linear(x, weight, bias, out);
  switch (op.adapter) {
    case AdapterForm::kDecomposed:
      return WithDora(stage, op, std::move(x), y);
    case AdapterForm::kScaledRandom:
      return WithVera(stage, op, std::move(x), y);
    case AdapterForm::kScaledOutput:
      return TimesVector(stage, op, std::move(y));
    default:
      return WithLora(stage, op, std::move(x), y);
  }
}

// Rows of A are looked up as those of the weight are (peft/tuners/lora/layer.py, Embedding).
Tensor EmbeddingWithAdapter(Stage& stage, const Operator& op, Tensor y) {
  if (op.adapter == AdapterForm::kNone) {
    return y;
  }
  Kernels& kernels = stage.kernels;
  Tensor z = kernels.Embedding(AdapterParameter(stage, op, 0), Tensor(),
                               y.shape.WithLast(op.adapter_rank));
  z = kernels.Linear(std::move(z), AdapterParameter(stage, op, 1), Tensor(), op.widths.front());
  return AddedTo(kernels, y, kernels.Scale(z));
}

// Trained embeddings before those of the tokens; peft looks them up for every sample
// (peft/peft_model.py, get_prompt, forward).
Tensor WithPrompt(Stage& stage, const Operator& op, const Tensor& x) {
  Kernels& kernels = stage.kernels;
  Shape shape = x.shape;
  const std::int64_t batch = shape.lengths[0];
  const Tensor numbers = kernels.Constant(ShapeOf({batch, op.prefix_tokens}), kInt64, "numbers");
  Tensor prompt = kernels.Embedding(stage.Parameter(op, 0), numbers,
                                    ShapeOf({batch, op.prefix_tokens, shape.Last()}));
  prompt = kernels.Cast(std::move(prompt), x.type);
  shape.lengths[1] += op.prefix_tokens;
  return kernels.Concat(prompt, x, shape, Gradient::kSame);
}

// Trained keys and values before those of the tokens, looked up for every sample; a cache holds
// them while the forward pass runs (peft/peft_model.py, get_prompt; transformers, DynamicCache).
void AddPrefix(Stage& stage, const Operator& op, Tensor& key, Tensor& value) {
  if (op.prefix_tokens == 0) {
    return;
  }
  Kernels& kernels = stage.kernels;
  const std::int64_t batch = key.shape.lengths[0];
  const Tensor trained = stage.Parameter(op, op.parameters.size() - 1);
  const Tensor numbers = kernels.Constant(ShapeOf({batch, op.prefix_tokens}), kInt64, "numbers");
  Tensor prefix =
      kernels.Embedding(trained, numbers, ShapeOf({batch, op.prefix_tokens, trained.shape.Last()}));
  prefix = kernels.Cast(std::move(prefix), key.type);
  stage.pass->prefixes.push_back(prefix);
  const std::vector<Tensor> parts = kernels.Split(prefix, {key.shape.Last(), value.shape.Last()});
  const auto longer = [&](const Tensor& first, const Tensor& x) {
    Shape shape = x.shape;
    shape.lengths[1] += op.prefix_tokens;
    return kernels.Concat(first, x, shape);
  };
  key = longer(parts[0], key);
  value = longer(parts[1], value);
}

}  // namespace fourpiles
