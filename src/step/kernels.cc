#include "step/kernels.h"

#include <algorithm>
#include <utility>

#include "formats/storage.h"

namespace fourpiles {
namespace {

constexpr KernelKind kCast = {"cast", "derivatives.yaml: _to_copy keeps nothing"};
constexpr KernelKind kCopy = {"copy", "derivatives.yaml: clone keeps nothing"};
constexpr KernelKind kRepeat = {"repeat", "derivatives.yaml: expand, clone keep nothing"};
constexpr KernelKind kSplit = {"split", "derivatives.yaml: split keeps nothing"};
constexpr KernelKind kSlice = {"slice", "derivatives.yaml: slice keeps nothing"};
constexpr KernelKind kConcat = {"concat", "derivatives.yaml: cat keeps nothing"};
constexpr KernelKind kScale = {"scale", "derivatives.yaml: mul by a number keeps nothing"};
constexpr KernelKind kAdd = {"add", "derivatives.yaml: add keeps nothing"};
constexpr KernelKind kMultiply = {"multiply", "derivatives.yaml: mul keeps self and other"};
constexpr KernelKind kSquare = {"square", "derivatives.yaml: pow keeps self"};
constexpr KernelKind kMean = {"mean",
                              "derivatives.yaml: mean kept self up to 2.1 (pytorch#109935)"};
constexpr KernelKind kReduce = {"sum", "derivatives.yaml: sum keeps nothing"};
constexpr KernelKind kDropout = {"dropout", "derivatives.yaml: native_dropout keeps the mask"};
constexpr KernelKind kMask = {"mask", "derivatives.yaml: masked_fill and where keep the mask"};
constexpr KernelKind kLinear = {"linear", "derivatives.yaml: addmm keeps mat1 and mat2"};
constexpr KernelKind kCodedLinear = {
    "linear of codes",
    "bitsandbytes, autograd/_functions.py, MatMul4Bit: the weight as numbers, for a moment"};
constexpr KernelKind kMatMul = {"matmul", "derivatives.yaml: bmm keeps self and mat2"};
constexpr KernelKind kSoftmax = {"softmax", "derivatives.yaml: _softmax keeps result"};
constexpr KernelKind kConvolution = {"convolution",
                                     "derivatives.yaml: convolution keeps input and weight where "
                                     "any of them needs a gradient"};
constexpr KernelKind kLayerNorm = {
    "layer_norm", "derivatives.yaml: native_layer_norm keeps input, mean and 1/deviation"};
constexpr KernelKind kEmbedding = {"embedding", "derivatives.yaml: embedding keeps indices"};
constexpr KernelKind kConstant = {"constant", "needs no gradient"};

const Tensor* If(bool condition, const Tensor& tensor) {
  return condition ? &tensor : nullptr;
}

const ElementType& Wider(const ElementType& a, const ElementType& b) {
  return a.bits >= b.bits ? a : b;
}

// Sizes past 2^53 are the largest; the play ends with an error anyway.
std::int64_t CountOf(const Shape& shape) {
  return OrLargest(shape.Elements());
}

bool IsSmaller(const Tensor& a, const Tensor& b) {
  return CountOf(a.shape) < CountOf(b.shape);
}

Checked BytesOf(const Tensor& x) {
  return StorageBytes(x.shape.Elements(), x.type.bits);
}

// Elements that a convolution needs besides its tensors.
struct ConvolutionWork {
  std::int64_t forward = 0;
  std::int64_t backward = 0;
};

// PyTorch 1.13 on a processor with AVX2, one thread (ATen/native/Convolution.cpp, use_mkldnn).
// oneDNN reorders input and weight into blocks of channels, and in the backward pass input and
// output's gradient, or the weight's gradient, whichever is more; the few channels of an image stay
// as they are and only the output is reordered; an image smaller than the kernel is left to a
// matrix product. The others unfold the input into columns, unless the kernel is one pixel.
// Measured for each case: tests/truth/README.md.
ConvolutionWork WorkOnProcessor(const Tensor& x, const Tensor& weight, const Shape& output) {
  constexpr std::int64_t kBlock = 8;  // channels
  constexpr std::int64_t kFewChannels = 4;
  constexpr std::int64_t kSmallInput = 20'480;
  const std::int64_t samples = x.shape.lengths[0];
  const std::int64_t kernel = weight.shape.Last();
  const std::int64_t out = weight.shape.lengths[0];
  const std::int64_t inputs = CountOf(x.shape);
  const std::int64_t outputs = CountOf(output);
  const std::int64_t weights = CountOf(weight.shape);
  const std::int64_t pixels = outputs / samples / out;
  const std::int64_t columns = weights / out * pixels;  // of a sample
  if (kernel == 1 && pixels == inputs / samples / x.shape.lengths[1]) {
    return {};
  }
  const bool reorders = samples > 1 || kernel > 3 || inputs > kSmallInput;
  if (x.type.bits < 32 || !reorders) {
    return {samples * columns, samples * columns};
  }
  if (x.shape.lengths[1] < kFewChannels) {
    return {outputs, outputs};
  }
  const std::int64_t out_in_blocks = (out + kBlock - 1) / kBlock * kBlock;
  const std::int64_t blocked_weights = weights / out * out_in_blocks;
  const std::int64_t blocked_outputs = outputs / out * out_in_blocks;
  if (inputs / samples / x.shape.lengths[1] < kernel * kernel) {
    return {inputs + weights, 4 * weights + columns};
  }
  return {inputs + blocked_weights + blocked_outputs - outputs,
          std::max(inputs + blocked_outputs + blocked_weights - weights, blocked_weights)};
}

}  // namespace

// NOLINTBEGIN(performance-unnecessary-value-param): a tensor that the caller gives up is let go of
// when the kernel has run.

void Kernels::SetPlace(std::int32_t action, std::int32_t op) {
  place_ = {.action = action, .op = op};
}

Moment Kernels::Now() const {
  return memory_.NowMoment();
}

void Kernels::Begin(const KernelKind& kind) {
  place_.kind = &kind;
  memory_.Begin(place_);
}

Tensor Kernels::Fused(const KernelKind& kind, const Shape& shape, const ElementType& type,
                      std::initializer_list<Input> inputs,
                      std::initializer_list<const Tensor*> saved) {
  Begin(kind);
  Tensor output = graph_.New(shape, type);
  graph_.Record(output, inputs, saved);
  return output;
}

Tensor Kernels::GatheredAgain(const KernelKind& kind, const Tensor& x, const Shape& shape) {
  Tensor whole = Fused(kind, shape, x.type, {{x}}, {});
  if (whole.RequiresGradient()) {
    whole.is_gathered = true;
    whole.made_of = std::make_shared<const std::vector<Tensor>>(std::vector<Tensor>{Stored(x)});
  }
  return whole;
}

Tensor Kernels::FusedKeepingOutput(const KernelKind& kind, const Shape& shape,
                                   const ElementType& type, std::initializer_list<Input> inputs,
                                   std::initializer_list<const Tensor*> saved) {
  Tensor output = Fused(kind, shape, type, inputs, saved);
  graph_.KeepOutput(output);
  return output;
}

Tensor Kernels::InPlace(const KernelKind& kind, Tensor x, const Tensor& other,
                        std::initializer_list<const Tensor*> saved, Gradient gradient) {
  Begin(kind);
  Tensor output = x;
  graph_.Record(output, {{x, gradient}, {other}}, saved);
  return output;
}

Tensor Kernels::Into(const KernelKind& kind, const Tensor& buffer,
                     std::initializer_list<Input> inputs,
                     std::initializer_list<const Tensor*> saved) {
  Begin(kind);
  Tensor output = buffer;
  graph_.Record(output, inputs, saved);
  return output;
}

Tensor Kernels::Elementwise(Tensor output, std::initializer_list<const Tensor*> sources) const {
  if (!framework_.recomputes_elementwise || !output.RequiresGradient()) {
    return output;
  }
  std::vector<Tensor> made_of;
  const auto add = [&](const Tensor& source) {
    const bool is_new =
        std::ranges::find(made_of, source.storage, &Tensor::storage) == made_of.end();
    if (source.storage != kNothing && is_new) {
      made_of.push_back(source);
    }
  };
  for (const Tensor* source : sources) {
    if (source->made_of) {
      std::ranges::for_each(*source->made_of, add);
    } else {
      add(*source);
    }
  }
  output.made_of = std::make_shared<const std::vector<Tensor>>(std::move(made_of));
  return output;
}

Tensor Kernels::Constant(const Shape& shape, const ElementType& type, const char* slot) {
  Begin(kConstant);
  return graph_.New(shape, type, slot);
}

Tensor Kernels::Cast(Tensor x, const ElementType& type) {
  if (x.type.name == type.name) {
    return x;
  }
  return Elementwise(Fused(kCast, x.shape, type, {{x}}, {}), {&x});
}

Tensor Kernels::Copy(Tensor x) {
  return Fused(kCopy, x.shape, x.type, {{x, Gradient::kSame}}, {});
}

Tensor Kernels::Repeat(Tensor x, const Shape& shape) {
  return Elementwise(Fused(kRepeat, shape, x.type, {{x}}, {}), {&x});
}

Tensor Kernels::View(Tensor x, const Shape& shape) const {
  x.shape = shape;
  return x;
}

std::vector<Tensor> Kernels::Split(const Tensor& x, const std::vector<std::int64_t>& widths) {
  Begin(kSplit);
  std::vector<Tensor> parts;
  parts.reserve(widths.size());
  for (const std::int64_t width : widths) {
    parts.push_back(x);
    parts.back().shape = x.shape.WithLast(width);
  }
  graph_.RecordParts(x, parts);
  return parts;
}

std::vector<Tensor> Kernels::SplitRows(const Tensor& x, std::int64_t rows, std::int64_t parts) {
  Begin(kSplit);
  const std::int64_t most = (rows + parts - 1) / parts;
  std::vector<Tensor> views;
  for (std::int64_t done = 0; done < rows; done += most) {
    views.push_back(x);
    views.back().shape = ShapeOf({std::min(most, rows - done), x.shape.Last()});
  }
  graph_.RecordParts(x, views);
  return views;
}

Tensor Kernels::Slice(const Tensor& x, const Shape& shape) {
  Begin(kSlice);
  Tensor part = x;
  part.shape = shape;
  graph_.RecordParts(x, {&part, 1});
  return part;
}

Tensor Kernels::Concat(const Tensor& a, const Tensor& b, const Shape& shape, Gradient first) {
  return Fused(kConcat, shape, Wider(a.type, b.type), {{a, first}, {b, Gradient::kSame}}, {});
}

Tensor Kernels::Scale(const Tensor& x) {
  return Elementwise(Fused(kScale, x.shape, x.type, {{x}}, {}), {&x});
}

Tensor Kernels::Add(const Tensor& a, const Tensor& b) {
  const bool alike = IsSmaller(a, b) == IsSmaller(b, a);
  const Tensor& larger = IsSmaller(a, b) ? b : a;
  const auto gradient = [&](const Tensor& x) {
    const bool same = (alike || &x == &larger) && x.type.bits == Wider(a.type, b.type).bits;
    return same ? Gradient::kSame : Gradient::kNew;
  };
  const Tensor sum =
      Fused(kAdd, larger.shape, Wider(a.type, b.type), {{a, gradient(a)}, {b, gradient(b)}}, {});
  // A sum of two tensors is as large as either: it is kept rather than both.
  Tensor again = Elementwise(sum, {&a, &b});
  return again.made_of && again.made_of->size() == 1 ? again : sum;
}

Tensor Kernels::AddInPlace(Tensor a, const Tensor& b) {
  Begin(kAdd);
  Tensor sum = a;
  const Gradient same = a.type.bits == b.type.bits ? Gradient::kSame : Gradient::kNew;
  graph_.Record(sum, {{a, Gradient::kSame}, {b, same}}, {});
  return sum;
}

Tensor Kernels::Multiply(const Tensor& a, const Tensor& b) {
  const Tensor& larger = IsSmaller(a, b) ? b : a;
  return Elementwise(Fused(kMultiply, larger.shape, Wider(a.type, b.type), {{a}, {b}},
                           {If(b.RequiresGradient(), a), If(a.RequiresGradient(), b)}),
                     {&a, &b});
}

Tensor Kernels::Square(const Tensor& x) {
  Begin(kSquare);
  Tensor square = graph_.New(x.shape, x.type);
  // grad × (2 × x^1): both in parentheses are tensors of their own (FunctionsManual.cpp,
  // pow_backward).
  graph_.Record(square, {{x}}, {&x}, BytesOf(x) * 2);
  return Elementwise(std::move(square), {&x});
}

Tensor Kernels::Sum(const Tensor& x, const Shape& shape) {
  return Fused(kReduce, shape, x.type, {{x}}, {});
}

Tensor Kernels::Mean(const Tensor& x, const Shape& shape) {
  return Fused(kMean, shape, x.type, {{x}}, {If(framework_.mean_keeps_input, x)});
}

Tensor Kernels::KeepInput(const KernelKind& kind, const Tensor& x) {
  return Elementwise(Fused(kind, x.shape, x.type, {{x}}, {&x}), {&x});
}

Tensor Kernels::KeepOutput(const KernelKind& kind, const Tensor& x) {
  if (framework_.recomputes_elementwise) {
    return KeepInput(kind, x);
  }
  return FusedKeepingOutput(kind, x.shape, x.type, {{x}}, {});
}

Tensor Kernels::KeepInPlace(const KernelKind& kind, Tensor x) {
  Begin(kind);
  Tensor output = x;
  graph_.Record(output, {{x}}, {&output});
  return output;
}

Tensor Kernels::Stack(const KernelKind& kind, std::span<const Tensor> parts, const Shape& shape) {
  Begin(kind);
  Tensor output = graph_.New(shape, parts.front().type);
  graph_.RecordStack(output, parts);
  return output;
}

Tensor Kernels::Dropout(Tensor x) {
  if (framework_.recomputes_elementwise) {
    return Elementwise(Fused(kDropout, x.shape, x.type, {{x}}, {}), {&x});
  }
  Begin(kDropout);
  const bool float_mask = framework_.dropout_keeps_float_mask;
  const Tensor mask = graph_.New(x.shape, float_mask ? x.type : kBool, "mask");
  Tensor output = graph_.New(x.shape, x.type);
  // The processor's native_dropout casts the mask first (ATen/native/Dropout.cpp).
  const bool casts = framework_.on_processor && !float_mask;
  graph_.Record(output, {{x}}, {&mask}, casts ? BytesOf(x) : Checked(0));
  return output;
}

Tensor Kernels::Masked(const Tensor& x, Mask kind, const Tensor& mask) {
  if (kind == Mask::kAdd || kind == Mask::kPadding) {
    return Add(x, mask);
  }
  Begin(kMask);
  Tensor output = graph_.New(x.shape, x.type);
  if (kind == Mask::kWhere) {
    graph_.Record(output, {{x}}, {});
    return output;
  }
  // mask == 0 makes a new one, without a dimension for the batch.
  const Tensor zero = graph_.New(ShapeOf({x.shape.lengths[2], x.shape.Last()}), kBool, "mask");
  graph_.Record(output, {{x}}, {&zero});
  return output;
}

// Autocast keeps the cast copy of a weight that is trained, and casts one that is not at each use
// (ATen/autocast_mode.cpp, cached_cast).
Tensor Kernels::CastWeight(const Tensor& weight) {
  if (weight.type.name == numbers_.compute.name || weight.type.bits == 0) {
    return weight;
  }
  if (!weight.RequiresGradient()) {
    return Cast(weight, numbers_.compute);
  }
  const auto found = casts_.find(weight.edge);
  if (found != casts_.end()) {
    return found->second;
  }
  Tensor cast = Cast(weight, numbers_.compute);
  casts_.emplace(weight.edge, cast);
  return cast;
}

// The numbers are there while the product runs, and again for the gradient of its input.
Tensor Kernels::CodedLinear(const Tensor& x, const Tensor& weight, const Tensor& bias,
                            std::int64_t out) {
  const bool casts = framework_.codes_are_of_float16 && x.type.name != "float16";
  Checked bytes = StorageBytes(weight.shape.Elements(), x.type.bits);
  bytes = casts ? bytes + StorageBytes(weight.shape.Elements(), 16) : bytes;
  Begin(kCodedLinear);
  const Tensor numbers = graph_.New(ShapeOf({OrLargest(bytes)}), kByte, "numbers");
  Tensor output = graph_.New(x.shape.WithLast(out), x.type);
  graph_.Record(output, {{x}, {bias}}, {}, bytes);
  if (framework_.coded_product_keeps_input && output.RequiresGradient()) {
    memory_.Keep(x.storage);
    memory_.LetGo(x.storage);
    held_inputs_.push_back(x);
  }
  return output;
}

Tensor Kernels::Linear(Tensor x, const Tensor& weight, const Tensor& bias, std::int64_t out) {
  Tensor cast_weight = weight;
  Tensor cast_bias = bias;
  if (numbers_.autocast) {
    x = Cast(std::move(x), numbers_.compute);
    cast_weight = IsCoded(weight.type) ? weight : CastWeight(weight);
    cast_bias = CastWeight(bias);
  }
  if (IsCoded(weight.type)) {
    return CodedLinear(x, weight, cast_bias, out);
  }
  const Gradient of_weight =
      framework_.direct_gradients == DirectGradients::kLinear ? Gradient::kDirect : Gradient::kNew;
  const Tensor stored = Stored(x);
  const bool is_dear = IsDearProduct(bias);
  const auto product = is_dear ? &Kernels::Dear : &Kernels::Fused;
  return (this->*product)(
      kLinear, x.shape.WithLast(out), x.type, {{x}, {cast_weight, of_weight}, {cast_bias}},
      {If(cast_weight.RequiresGradient(), stored), If(x.RequiresGradient(), cast_weight)});
}

Tensor Kernels::MatMul(Tensor a, Tensor b, const Shape& shape) {
  if (numbers_.autocast) {
    a = Cast(std::move(a), numbers_.compute);
    b = Cast(std::move(b), numbers_.compute);
  }
  return Fused(kMatMul, shape, a.type, {{a}, {b}},
               {If(b.RequiresGradient(), Stored(a)), If(a.RequiresGradient(), Stored(b))});
}

Tensor Kernels::Softmax(Tensor x) {
  return FusedKeepingOutput(kSoftmax, x.shape, x.type, {{x}}, {});
}

Tensor Kernels::LossWithTwoTemporaries(const KernelKind& kind, const Tensor& x) {
  Begin(kind);
  Tensor loss = graph_.New(ShapeOf({1}), kFloat32);
  graph_.Record(loss, {{x}}, {&x}, BytesOf(x) * 2);
  return loss;
}

Tensor Kernels::Convolution(Tensor x, const Tensor& weight, const Tensor& bias,
                            const Shape& shape) {
  Tensor cast_weight = weight;
  Tensor cast_bias = bias;
  if (numbers_.autocast) {
    x = Cast(std::move(x), numbers_.compute);
    cast_weight = CastWeight(weight);
    cast_bias = CastWeight(bias);
  }
  Begin(kConvolution);
  const ConvolutionWork work =
      framework_.on_processor ? WorkOnProcessor(x, cast_weight, shape) : ConvolutionWork();
  Tensor output = graph_.New(shape, x.type);
  { const Tensor temporaries = graph_.New(ShapeOf({work.forward}), x.type, "temporaries"); }
  graph_.Record(output, {{x}, {cast_weight}, {cast_bias}}, {&x, &cast_weight},
                DivideRoundingUp(Checked(work.backward) * x.type.bits, 8));
  return output;
}

Tensor Kernels::LayerNorm(Tensor x, const Tensor& weight, const Tensor& bias) {
  Begin(kLayerNorm);
  Shape rows = x.shape;
  --rows.rank;
  const ElementType& type = framework_.norms_keep_input_format ? x.type : kFloat32;
  const Tensor mean = graph_.New(rows, type, "mean");
  const Tensor deviation = graph_.New(rows, type, "1/deviation");
  Tensor output = graph_.New(x.shape, x.type);
  graph_.Record(output, {{x}, {weight}, {bias}}, {&x, &mean, &deviation});
  return Elementwise(std::move(output), {&x, &mean, &deviation});
}

Tensor Kernels::Embedding(const Tensor& weight, const Tensor& indices, const Shape& shape) {
  return Fused(kEmbedding, shape, weight.type, {{weight}}, {&indices});
}

// NOLINTEND(performance-unnecessary-value-param)

}  // namespace fourpiles
