#pragma once

// The parts that networks are built of, as PyTorch's modules are: a function returns the parameters
// of one, and Append puts them under a name into a larger one. Each formula of a shape stands here
// once; a family's file says which parts it has and what they are called.
//
//   Parameters layer;
//   Append(layer, "self_attn", Attention(heads, {.qkv_bias = true}));
//   Append(layer, "mlp.experts", Experts(GatedMlp(hidden_size, intermediate_size), 128));
//
// Shapes are those of PyTorch: a linear layer's weight is (out, in).

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "model/network.h"

namespace fourpiles {

using Parameters = std::vector<Parameter>;

// Puts `part` under the name: "weight" becomes "NAME.weight".
void Append(Parameters& whole, std::string_view name, Parameters part);
// Puts it in under its own names.
void Append(Parameters& whole, Parameters part);

// --- Single modules ---

// How tensor parallelism divides a linear layer (Shoeybi et al. 2019, section 3): by its outputs
// ("column parallel"), by its inputs ("row parallel"), or not at all.
enum class Divide { kOutputs, kInputs, kNot };

struct LinearSize {
  std::int64_t out = 0;
  std::int64_t in = 0;
};

Parameters Linear(LinearSize size, Divide divide, bool bias = false);
Parameters Norm(std::int64_t width, bool bias = false);
// One norm under each name.
Parameters Norms(std::span<const std::string_view> names, std::int64_t width, bool bias = false);
Parameters Embedding(std::int64_t rows, std::int64_t width);  // cut by rows, as a vocabulary is
// Any other tensor. Without a cut every rank keeps the whole.
Parameters Tensor(std::string_view name, std::vector<std::int64_t> shape,
                  std::optional<int> cut = {});

// --- Attention ---

// The sizes of attention whose query heads share, in groups, a key and a value head.
struct Heads {
  std::int64_t hidden_size = 1;
  std::int64_t query = 1;
  std::int64_t key_value = 1;
  std::int64_t head_dim = 1;

  std::int64_t QuerySize() const { return query * head_dim; }
  std::int64_t KeySize() const { return key_value * head_dim; }
};

// Norms of queries and keys: of each head (weights of one head_dim), of all heads at once, or of
// each head with weights of its own (heads, head_dim).
enum class HeadNorm { kNone, kEachHead, kAllHeads, kHeadsApart };

struct AttentionStyle {
  bool qkv_bias = false;
  bool output_bias = false;
  HeadNorm head_norm = HeadNorm::kNone;
  bool gated = false;  // q_proj makes a gate for each output as well
  std::string_view output = "o_proj";
};

// q_proj, k_proj, v_proj, the output projection, q_norm and k_norm.
Parameters Attention(const Heads& heads, const AttentionStyle& style = {});
Cache KeyValueCache(const Heads& heads, std::optional<std::int64_t> window = {});

// --- Feed-forward ---

struct GatedMlpStyle {
  bool bias = false;
  std::string_view gate = "gate_proj";
  std::string_view up = "up_proj";
  std::string_view down = "down_proj";
};

// SwiGLU and its like.
Parameters GatedMlp(std::int64_t hidden_size, std::int64_t intermediate_size,
                    const GatedMlpStyle& style = {});
// Two linear layers, IN and OUT by name.
Parameters Mlp(std::int64_t hidden_size, std::int64_t intermediate_size, bool bias,
               std::string_view in, std::string_view out);
// `count` routed experts, each with tensors of its own: "{}.up_proj.weight".
Parameters Experts(Parameters one, std::int64_t count);
// One tensor that holds all experts, along dimension 0.
Parameters StackedExperts(std::string_view name, std::vector<std::int64_t> shape,
                          std::optional<int> cut);
// Added to the scores of the experts when they are chosen. Balancing the load moves it, no gradient
// does (DeepSeek-V3 technical report, section 2.1.2).
Parameters RouterCorrection(std::string_view name, std::int64_t experts);

// --- Networks ---

struct Layer {
  Parameters parameters = {};
  std::optional<Cache> cache = {};       // AddLayers fills in its `layer`
  std::vector<Operator> operators = {};  // flow.h; empty: not described
};

void AddBlock(Network& network, std::string_view name, Parameters parameters);
// Adds `count` layers, a run of equal ones as one block, and their caches. The name holds "{}".
void AddLayers(Network& network, std::string_view name, std::int64_t count,
               const std::function<Layer(std::int64_t number)>& layer);

}  // namespace fourpiles
