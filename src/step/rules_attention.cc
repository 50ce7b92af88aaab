// Attention and the rotary embeddings of its queries and keys.
//
// Queries, keys and values come as (batch, sequence, heads × width).

#include <utility>

#include "step/rules.h"

namespace fourpiles {
namespace {

constexpr KernelKind kFusedRotary = {"rotary", "a fused kernel keeps cos and sin"};
constexpr KernelKind kMaximum = {"maximum", "derivatives.yaml: max.dim keeps indices"};
constexpr KernelKind kFlash = {"flash attention",
                               "derivatives.yaml: _scaled_dot_product_flash_attention keeps query, "
                               "key, value, output and logsumexp; Dao et al. 2022, algorithm 2"};

// cos or sin, (sequence, width): a buffer of the module, its cast copy, or the pass's own table.
Tensor Table(Stage& stage, const Operator& op, const Tensor& x, const char* name, Tensor& of_pass) {
  const Framework& framework = stage.kernels.framework();
  const std::int64_t tokens = stage.batch.sequence_length;
  const std::int64_t width = op.widths.back();
  if (op.tables == 0) {
    return stage.kernels.Constant(ShapeOf({1, tokens, width}), kFloat32, name);
  }
  if (framework.rotary_casts_per_use) {
    return x.type.name == stage.kernels.numbers().weights.name
               ? Tensor()
               : stage.kernels.Constant(ShapeOf({1, tokens, width}), x.type, name);
  }
  if (of_pass.type.bits == 0) {
    of_pass = stage.kernels.Constant(ShapeOf({op.tables, tokens, width}), x.type, name);
  }
  return of_pass;
}

}  // namespace

AttentionSizes SizesOf(const Operator& op, const Tensor& q) {
  return {.batch = q.shape.lengths[0],
          .tokens = q.shape.lengths[1],
          .key_tokens = q.shape.lengths[1] * op.ranks + op.prefix_tokens,
          .heads = op.heads,
          .key_value_heads = op.key_value_heads,
          .width = op.widths[1],
          .value_width = op.widths[0]};
}

// Each key and value head once for every query head that reads it: repeat_kv.
Tensor Repeated(Stage& stage, Tensor x, const AttentionSizes& sizes, std::int64_t width) {
  if (sizes.heads == sizes.key_value_heads) {
    return x;
  }
  return stage.kernels.Repeat(std::move(x),
                              ShapeOf({sizes.batch, sizes.heads, sizes.key_tokens, width}));
}

namespace {

// x × cos + (−x₂, x₁) × sin (Su et al. 2021, RoFormer, section 3.4.2; transformers,
// apply_rotary_pos_emb).
Tensor Rotated(Stage& stage, const Operator& op, const Tensor& x) {
  Kernels& kernels = stage.kernels;
  const Tensor cos = Table(stage, op, x, "cos", stage.pass->cos);
  const Tensor sin = Table(stage, op, x, "sin", stage.pass->sin);
  const Tensor direct = kernels.Multiply(x, cos);
  const Shape half = x.shape.WithLast(x.shape.Last() / 2);
  Tensor turned =
      kernels.Concat(kernels.Scale(kernels.Slice(x, half)), kernels.Slice(x, half), x.shape);
  turned = kernels.Multiply(turned, sin);
  return kernels.Add(direct, turned);
}

}  // namespace

// Where not all elements of a head are rotated, the others are put behind them again
// (models/gpt_neox/modeling_gpt_neox.py, apply_rotary_pos_emb).
void ComposedRotaryRule(Stage& stage, const Operator& op) {
  Kernels& kernels = stage.kernels;
  const Tensor x = stage.Take(op);
  const std::int64_t rotated = op.widths[0];
  const std::int64_t width = op.widths[1];
  if (rotated == width) {
    stage.Put(op, Rotated(stage, op, x));
    return;
  }
  const std::int64_t heads = x.shape.Last() / width;
  const Tensor passed = kernels.Slice(x, x.shape.WithLast(heads * (width - rotated)));
  const Tensor turned = Rotated(stage, op, kernels.Slice(x, x.shape.WithLast(heads * rotated)));
  stage.Put(op, kernels.Concat(turned, passed, x.shape));
}

void FusedRotaryRule(Stage& stage, const Operator& op) {
  const Tensor x = stage.Take(op);
  const Tensor cos = Table(stage, op, x, "cos", stage.pass->cos);
  const Tensor sin = Table(stage, op, x, "sin", stage.pass->sin);
  Tensor y = stage.kernels.Fused(kFusedRotary, x.shape, x.type, {{x}}, {&cos, &sin});
  stage.Put(op, stage.kernels.Elementwise(std::move(y), {&x}));
}

namespace {

// What is added to the scores: of each sample for padding; of all tokens behind a query, a buffer
// of the module or made once a pass. It has the format of the embeddings, which is that of the
// weights.
Tensor MaskToAdd(Stage& stage, const Operator& op, const AttentionSizes& sizes) {
  Tensor& mask = stage.pass->mask;
  if (mask.type.bits > 0) {
    return mask;
  }
  const ElementType& type = stage.kernels.numbers().weights;
  if (op.mask == Mask::kPadding) {
    mask = stage.kernels.Constant(ShapeOf({sizes.batch, 1, 1, sizes.key_tokens}), type, "mask");
  } else if (stage.kernels.framework().masks_are_buffers) {
    mask.type = type;
    mask.shape = ShapeOf({1, 1, sizes.tokens, sizes.key_tokens});
  } else {
    mask = stage.kernels.Constant(
        ShapeOf({op.tables * sizes.batch, 1, sizes.tokens, sizes.key_tokens}), type, "mask");
  }
  return mask;
}

// Heads stand inside a token in memory, and products want them outside: a copy, which repeating
// keys and values, or putting others before them, makes already.
bool IsLaidOut(const Operator& op, const AttentionSizes& sizes) {
  return sizes.heads != sizes.key_value_heads || op.prefix_tokens > 0;
}

bool HasSink(const Operator& op) {
  return op.parameters.size() > (op.prefix_tokens > 0 ? 1U : 0U);
}

// The scores after the mask, (batch, heads, tokens, tokens of keys).
Tensor Scores(Stage& stage, const Operator& op, Tensor q, Tensor k, const AttentionSizes& sizes) {
  Kernels& kernels = stage.kernels;
  const Shape square = ShapeOf({sizes.batch, sizes.heads, sizes.tokens, sizes.key_tokens});
  q = kernels.Copy(std::move(q));
  if (!IsLaidOut(op, sizes)) {
    k = kernels.Copy(std::move(k));
  }
  Tensor scores = kernels.Scale(kernels.MatMul(std::move(q), std::move(k), square));
  if (op.softcap) {
    scores = SoftCapped(kernels, std::move(scores));
  }
  if (op.mask == Mask::kNone) {
    return scores;
  }
  const bool added = op.mask == Mask::kAdd || op.mask == Mask::kPadding;
  return kernels.Masked(scores, op.mask, added ? MaskToAdd(stage, op, sizes) : Tensor());
}

// A logit beside those of the tokens: it takes a share of attention and gives no value. The largest
// logit is subtracted, by a maximum that keeps its places (models/gpt_oss/modeling_gpt_oss.py,
// eager_attention_forward).
Tensor WithSink(Stage& stage, const Operator& op, const Tensor& scores) {
  Kernels& kernels = stage.kernels;
  const Shape one = scores.shape.WithLast(1);
  const Tensor sink = kernels.Slice(stage.Parameter(op, 0), one);
  const Tensor logits =
      kernels.Concat(scores, sink, scores.shape.WithLast(scores.shape.Last() + 1));
  const Tensor places = kernels.Constant(one, kInt64, "places of the largest");
  const Tensor largest = kernels.Fused(kMaximum, one, logits.type, {{logits}}, {&places});
  return kernels.Add(logits, largest);
}

Tensor Probabilities(Stage& stage, const Operator& op, Tensor scores, const ElementType& type) {
  Kernels& kernels = stage.kernels;
  const Shape square = scores.shape;
  if (HasSink(op)) {
    scores = WithSink(stage, op, scores);
  }
  const bool autocast = kernels.numbers().autocast && kernels.framework().autocast_float32;
  if (op.float32 || autocast) {
    scores = kernels.Cast(std::move(scores), kFloat32);
  }
  Tensor probabilities = kernels.Softmax(std::move(scores));
  if (op.float32) {
    probabilities = kernels.Cast(std::move(probabilities), type);
  }
  if (HasSink(op)) {
    probabilities = kernels.Slice(probabilities, square);
  }
  return op.dropout ? kernels.Dropout(std::move(probabilities)) : probabilities;
}

}  // namespace

// softmax(Q Kᵀ / √d + mask) V, each step a kernel (Vaswani et al. 2017, equation 1).
void EagerAttentionRule(Stage& stage, const Operator& op) {
  Kernels& kernels = stage.kernels;
  Tensor q = stage.Take(op, 0);
  const AttentionSizes sizes = SizesOf(op, q);
  Tensor k = stage.Take(op, 1);
  Tensor v = stage.Take(op, 2);
  AddPrefix(stage, op, k, v);
  k = Repeated(stage, std::move(k), sizes, sizes.width);
  v = Repeated(stage, std::move(v), sizes, sizes.value_width);
  const ElementType type = v.type;
  Tensor scores = Scores(stage, op, std::move(q), std::move(k), sizes);
  Tensor probabilities = Probabilities(stage, op, std::move(scores), type);
  if (!IsLaidOut(op, sizes)) {
    v = kernels.Copy(std::move(v));
  }
  const Tensor mixed =
      kernels.MatMul(std::move(probabilities), std::move(v),
                     ShapeOf({sizes.batch, sizes.heads, sizes.tokens, sizes.value_width}));
  // Heads back inside the token.
  stage.Put(op, kernels.View(kernels.Copy(mixed), ShapeOf({sizes.batch, sizes.tokens,
                                                           sizes.heads * sizes.value_width})));
}

namespace {

struct AttentionInputs {
  Tensor q = {};
  Tensor k = {};
  Tensor v = {};
};

// One kernel that never has the scores in memory; it writes heads inside a token.
// Autocast casts what comes in (torch.amp, autocast op reference: scaled_dot_product_attention).
// NOLINTNEXTLINE(performance-unnecessary-value-param): given up by the caller
void Flash(Stage& stage, const Operator& op, AttentionInputs inputs, const Tensor& mask) {
  auto& [q, k, v] = inputs;
  const AttentionSizes sizes = SizesOf(op, q);
  if (const Numbers& numbers = stage.kernels.numbers(); numbers.autocast) {
    q = stage.kernels.Cast(std::move(q), numbers.compute);
    k = stage.kernels.Cast(std::move(k), numbers.compute);
    v = stage.kernels.Cast(std::move(v), numbers.compute);
  }
  q = Stored(std::move(q));
  k = Stored(std::move(k));
  v = Stored(std::move(v));
  const Tensor sink = HasSink(op) ? stage.Parameter(op, 0) : Tensor();
  const Tensor sums = stage.kernels.DearConstant(ShapeOf({sizes.batch, sizes.heads, sizes.tokens}),
                                                 kFloat32, "logsumexp");
  stage.Put(op, stage.kernels.DearKeepingOutput(
                    kFlash, ShapeOf({sizes.batch, sizes.tokens, sizes.heads * sizes.value_width}),
                    q.type, {{q}, {k}, {v}, {sink}}, {&q, &k, &v, &sums, &mask}));
}

}  // namespace

// torch's scaled_dot_product_attention as transformers calls it: keys and values repeated for every
// query head first (integrations/sdpa_attention.py).
void SdpaAttentionRule(Stage& stage, const Operator& op) {
  if (op.eager) {
    EagerAttentionRule(stage, op);
    return;
  }
  Tensor q = stage.Take(op, 0);
  const AttentionSizes sizes = SizesOf(op, q);
  Tensor k = stage.Take(op, 1);
  Tensor v = stage.Take(op, 2);
  AddPrefix(stage, op, k, v);
  k = Repeated(stage, std::move(k), sizes, sizes.width);
  v = Repeated(stage, std::move(v), sizes, sizes.value_width);
  // With a prefix the sizes alone do not say which keys a query sees: a mask is made and kept.
  const bool masked = op.prefix_tokens > 0 && op.mask != Mask::kNone;
  Flash(stage, op, {std::move(q), std::move(k), std::move(v)},
        masked ? MaskToAdd(stage, op, sizes) : Tensor());
}

// The flash-attn package reads grouped keys and values as they are.
void FlashAttentionRule(Stage& stage, const Operator& op) {
  Tensor q = stage.Take(op, 0);
  Tensor k = stage.Take(op, 1);
  Tensor v = stage.Take(op, 2);
  AddPrefix(stage, op, k, v);
  Flash(stage, op, {std::move(q), std::move(k), std::move(v)}, Tensor());
}

}  // namespace fourpiles
