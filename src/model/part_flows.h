#pragma once

// What the parts of parts.h compute, as transformers' modules do, in the order of their forward().

#include <functional>
#include <optional>
#include <string_view>

#include "model/flow.h"
#include "model/parts.h"
#include "model/record.h"

namespace fourpiles {

// What a part makes of its input. Empty: not described.
using PartFlow = std::function<Value(Flow& flow, Value x)>;

struct AttentionFlow {
  std::optional<RotaryShape> rotary = RotaryShape();  // head_dim is filled in; none: no positions
  NormForm norm = NormForm::kPlain;                   // of queries and keys
  AttentionShape shape = {.float32_softmax = true};   // heads are filled in
};

// "self_attn", or whatever `name` is: the parameters of Attention().
PartFlow FlowOf(std::string_view name, const Heads& heads, const AttentionStyle& style,
                const AttentionFlow& flow = {});
// The same, where one layer makes queries, keys and values: `qkv` and `style.output`.
PartFlow FlowOfFused(std::string_view name, std::string_view qkv, const Heads& heads,
                     std::string_view output, const AttentionFlow& flow);
// Heads and rotary embeddings of `heads` filled in.
AttentionShape ShapeFor(const Heads& heads, AttentionShape shape);

// Those of GatedMlp() and Mlp(), under a name that may be empty. Without an activation: not
// described.
PartFlow FlowOfGatedMlp(std::string_view name, std::optional<Activation> activation,
                        const GatedMlpStyle& style = {});
PartFlow FlowOfMlp(std::string_view name, std::optional<Activation> activation, std::string_view in,
                   std::string_view out);

// The activation that transformers calls so (activations.py, ACT2FN); none of those known here.
std::optional<Activation> FindActivation(std::string_view name);
// The same, of the name under the key, else of the other.
std::optional<Activation> ReadActivation(Record& config, std::string_view key,
                                         std::string_view otherwise);
// Whether a probability of dropout is above zero.
bool ReadDropout(Record& config, std::string_view key, double otherwise);

// How many elements of a head are rotated: the share under the key, else the other.
std::int64_t ReadRotated(Record& config, std::string_view key, double otherwise,
                         std::int64_t head_dim);

// The part, and dropout of its output where it is used.
PartFlow WithDropout(PartFlow part, bool used);

// What every step of a network on tokens is given.
std::vector<BatchTensor> TokensAndLabels();

}  // namespace fourpiles
