// What networks on images are made of. Images are (batch, channels, height, width).

#include <utility>

#include "step/rules.h"

namespace fourpiles {
namespace {

constexpr KernelKind kBatchNorm = {
    "batch_norm", "derivatives.yaml: native_batch_norm keeps input, mean and 1/deviation"};
constexpr KernelKind kGroupNorm = {
    "group_norm", "derivatives.yaml: native_group_norm keeps input, mean and 1/deviation"};
constexpr KernelKind kMaxPool = {"max_pool", "derivatives.yaml: max_pool2d keeps self and indices"};
constexpr KernelKind kUpsample = {"upsample", "derivatives.yaml: upsample_nearest keeps nothing"};

// Side of an output: kernel and stride, with the padding that keeps the side at stride 1.
std::int64_t OutputSide(std::int64_t side, const Operator& op) {
  return (side + 2 * (op.kernel / 2) - op.kernel) / op.stride + 1;
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): given up by the caller
Tensor Norm(Stage& stage, const Operator& op, const KernelKind& kind, Tensor x,
            const Shape& statistics) {
  Kernels& kernels = stage.kernels;
  const ElementType& type =
      kernels.framework().norms_keep_input_format && !kernels.numbers().autocast ? x.type
                                                                                 : kFloat32;
  const Tensor mean = kernels.Constant(statistics, type, "mean");
  const Tensor deviation = kernels.Constant(statistics, type, "1/deviation");
  return kernels.Fused(kind, x.shape, x.type,
                       {{x}, {stage.Parameter(op, 0)}, {stage.Parameter(op, 1)}},
                       {&x, &mean, &deviation});
}

}  // namespace

// The batch itself, which is resident.
void ImagesRule(Stage& stage, const Operator& op) {
  Tensor images;
  images.shape = ShapeOf({stage.batch.micro_batch_size});
  for (const std::int64_t width : op.widths) {
    images.shape.lengths[static_cast<std::size_t>(images.shape.rank++)] = width;
  }
  images.type = stage.kernels.numbers().weights;
  stage.Put(op, std::move(images));
}

void ConcatChannelsRule(Stage& stage, const Operator& op) {
  const Tensor a = stage.Take(op, 0);
  const Tensor b = stage.Take(op, 1);
  Shape shape = a.shape;
  shape.lengths[1] += b.shape.lengths[1];
  stage.Put(op, stage.kernels.Concat(a, b, shape));
}

void BroadcastAddRule(Stage& stage, const Operator& op) {
  const Tensor image = stage.Take(op, 0);
  stage.Put(op, stage.kernels.Add(image, stage.Take(op, 1)));
}

// Kernels that do not overlap; the outputs are tokens, (batch, patches, width). The input is the
// batch itself, cast by autocast.
void PatchesRule(Stage& stage, const Operator& op) {
  Kernels& kernels = stage.kernels;
  const std::int64_t batch = stage.batch.micro_batch_size;
  const std::int64_t patches = stage.batch.sequence_length - 1;  // without the class token
  Tensor image;
  image.shape = ShapeOf({batch, op.channels, patches, op.kernel * op.kernel});
  image.type = kernels.numbers().weights;
  stage.Put(op,
            kernels.Convolution(std::move(image), stage.Parameter(op, 0), stage.Parameter(op, 1),
                                ShapeOf({batch, patches, op.widths.front()})));
}

void ConvolutionRule(Stage& stage, const Operator& op) {
  Tensor x = stage.Take(op);
  const Shape shape =
      ShapeOf({x.shape.lengths[0], op.widths.front(), OutputSide(x.shape.lengths[2], op),
               OutputSide(x.shape.lengths[3], op)});
  const Tensor bias = op.parameters.size() > 1 ? stage.Parameter(op, 1) : Tensor();
  stage.Put(op, stage.kernels.Convolution(std::move(x), stage.Parameter(op, 0), bias, shape));
}

void BatchNormRule(Stage& stage, const Operator& op) {
  Tensor x = stage.Take(op);
  const Shape channels = ShapeOf({x.shape.lengths[1]});
  stage.Put(op, Norm(stage, op, kBatchNorm, std::move(x), channels));
}

void GroupNormRule(Stage& stage, const Operator& op) {
  Kernels& kernels = stage.kernels;
  Tensor x = stage.Take(op);
  if (kernels.numbers().autocast) {
    x = kernels.Cast(std::move(x), stage.Parameter(op, 0).type);
  }
  const Shape groups = ShapeOf({x.shape.lengths[0], op.groups});
  stage.Put(op, Norm(stage, op, kGroupNorm, std::move(x), groups));
}

void MaxPoolRule(Stage& stage, const Operator& op) {
  const Tensor x = stage.Take(op);
  Shape shape = x.shape;
  shape.lengths[2] = OutputSide(x.shape.lengths[2], op);
  shape.lengths[3] = OutputSide(x.shape.lengths[3], op);
  const Tensor indices = stage.kernels.Constant(shape, kInt64, "indices");
  stage.Put(op, stage.kernels.Fused(kMaxPool, shape, x.type, {{x}}, {&x, &indices}));
}

void MeanPoolRule(Stage& stage, const Operator& op) {
  const Tensor x = stage.Take(op);
  stage.Put(op, stage.kernels.Mean(x, ShapeOf({x.shape.lengths[0], x.shape.lengths[1]})));
}

void UpsampleRule(Stage& stage, const Operator& op) {
  const Tensor x = stage.Take(op);
  Shape shape = x.shape;
  shape.lengths[2] *= 2;
  shape.lengths[3] *= 2;
  stage.Put(op, stage.kernels.Fused(kUpsample, shape, x.type, {{x}}, {}));
}

// softmax(Qᵀ K / √channels) of all pixels, one head; queries, keys and values are parts of one
// tensor, (batch, 3 × channels, height, width).
void PixelAttentionRule(Stage& stage, const Operator& op) {
  Kernels& kernels = stage.kernels;
  Tensor qkv = stage.Take(op);
  const std::int64_t batch = qkv.shape.lengths[0];
  const std::int64_t channels = qkv.shape.lengths[1] / 3;
  const Shape image = ShapeOf({batch, channels, qkv.shape.lengths[2], qkv.shape.lengths[3]});
  const std::int64_t pixels = image.lengths[2] * image.lengths[3];
  qkv = kernels.View(std::move(qkv), ShapeOf({batch, pixels, 3 * channels}));
  std::vector<Tensor> parts = kernels.Split(qkv, {channels, channels, channels});
  qkv = Tensor();
  Tensor scores =
      kernels.Scale(kernels.MatMul(parts[0], parts[1], ShapeOf({batch, pixels, pixels})));
  if (kernels.numbers().autocast && kernels.framework().autocast_float32) {
    scores = kernels.Cast(std::move(scores), kFloat32);
  }
  Tensor probabilities = kernels.Softmax(std::move(scores));
  stage.Put(op, kernels.MatMul(parts[2], std::move(probabilities), image));
}

}  // namespace fourpiles
