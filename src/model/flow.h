#pragma once

// Writes down what a block computes. A description reads like the figure in the paper:
//
//   Flow flow(layer.parameters);
//   const Value normed = flow.Norm("input_layernorm", flow.Input());
//   const Value q = flow.Linear("self_attn.q_proj", normed);
//   …
//   const Value x = flow.Add(flow.Input(), flow.Linear("self_attn.o_proj", attended));
//   layer.operators = flow.Take();
//
// Sizes and biases are those of the parameters, which are found by the name of their module.

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "model/operators.h"
#include "model/parts.h"

namespace fourpiles {

// The sizes of attention as its operator sees them.
struct AttentionShape {
  std::int64_t heads = 1;
  std::int64_t key_value_heads = 1;
  std::int64_t head_dim = 1;        // of queries and keys
  std::int64_t value_head_dim = 0;  // 0: as wide
  Mask mask = Mask::kAdd;
  bool float32_softmax = false;
  bool dropout = false;
  bool softcap = false;
  bool eager = false;
  std::int64_t masks = 1;       // of a pass
  std::string_view sinks = {};  // a parameter: of each head a logit without a value
};

// The sizes of rotary embeddings.
struct RotaryShape {
  std::int64_t head_dim = 1;
  std::int64_t rotated = 0;      // the first so many of a head; 0: all
  std::int64_t table_width = 0;  // of cos and sin; 0: as many as are rotated
  std::int64_t tables = 1;       // of a pass; 0: made anew, in float32, wherever they are used
};

// How a norm is computed, and of how many heads apart.
struct NormShape {
  NormForm form = NormForm::kPlain;
  std::int64_t heads = 1;
};

class Flow {
 public:
  // The parameters of the block, complete.
  explicit Flow(const Parameters& parameters) : parameters_(parameters) {}

  static Value Input() { return 0; }  // what the block before put out

  Value Linear(std::string_view name, Value x);
  // GPT-2's "Conv1D", whose weight is (in, out).
  Value TransposedLinear(std::string_view name, Value x);
  // A layer norm where it has a bias or that form, else an RMS norm.
  Value Norm(std::string_view name, Value x, const NormShape& shape = {});
  Value LayerNorm(std::string_view name, Value x, const NormShape& shape = {});
  Value RmsNorm(std::string_view name, Value x, const NormShape& shape = {});
  Value Embedding(std::string_view name);
  Value Positions(std::string_view name);
  Value TokenTypes(std::string_view name);
  Value Constant(std::string_view name);
  Value Patches(std::string_view name);
  Value Activation(std::string_view name, Value x, fourpiles::Activation activation);
  // activation(gate) × up.
  Value Gate(std::string_view name, Value gate, Value up, fourpiles::Activation activation);
  Value Multiply(Value a, Value b);
  Value Scale(Value x);
  Value Add(Value a, Value b);
  Value Dropout(std::string_view name, Value x, bool used = true);  // x itself where not used
  std::vector<Value> Split(Value x, std::vector<std::int64_t> widths);
  Value Concat(Value a, Value b);
  Value Expand(Value x, std::int64_t heads);
  Value Rotary(std::string_view name, Value x, const RotaryShape& shape);
  Value Attention(std::string_view name, Value q, Value k, Value v, const AttentionShape& shape);
  Value FirstToken(Value x);
  Value Append(Operator op);  // any other; fills in its output

  // The output layer, whose weight is `weight`, and the cross entropy of its logits.
  Value Loss(std::string_view name, Value x, const ParameterUse& weight, std::int64_t classes,
             bool shifted);
  // The number of a parameter of the block: "lm_head.weight".
  ParameterUse Use(std::string_view parameter) const;

  bool Has(std::string_view parameter) const;

  std::vector<Operator> Take() { return std::move(operators_); }

 private:
  const Parameter& Find(std::string_view parameter) const;
  // The weight and, where there is one, the bias of a module.
  std::vector<ParameterUse> UsesOf(std::string_view module) const;
  Value Unary(OperatorKind kind, std::string_view name, Value x);

  const Parameters& parameters_;
  std::vector<Operator> operators_ = {};
  Value values_ = 1;
};

}  // namespace fourpiles
