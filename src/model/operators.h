#pragma once

// What a block computes: operators that take values and make values, in the order of the forward
// pass. Sizes in batch and sequence are left to the play; what stands here belongs to the network.
//
// A description reads like the figure in the paper:
//
//   Value attended = flow.Norm("input_layernorm", x);
//   …
//   x = flow.Add(x, flow.Linear("self_attn.o_proj", attended));

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace fourpiles {

enum class OperatorKind {
  kEmbedding,      // of tokens
  kPositions,      // learned embeddings of positions, the same for every sample
  kTokenTypes,     // learned embeddings of token types, all of them the first
  kConstant,       // a parameter as it is, one for every sample: a class token
  kImages,         // the batch itself: (batch, widths…)
  kInputGradient,  // makes its input need a gradient
  kPrependToken,   // one parameter before the tokens of every sample
  kPatches,        // a convolution whose kernels do not overlap, its outputs as tokens
  kLinear,
  kLayerNorm,  // of each of its heads
  kRmsNorm,    // the same
  kRotary,     // rotary position embeddings
  kSplit,      // the last dimension cut into parts, which are views
  kConcat,     // of the last dimension
  kExpand,     // one head, seen as so many: a view
  kConcatChannels,
  kAttention,  // queries, keys, values → values mixed
  kActivation,
  kGate,  // activation(a) × b
  kMultiply,
  kScale,  // by a number
  kAdd,
  kDropout,
  kExperts,         // a router and routed experts: router, gate, up, down
  kStackedExperts,  // the same, stacked: router, gate and up, down, and their biases
  kFirstToken,      // of every sample
  kLoss,            // the output layer, where it has parameters, and cross entropy
  kMeanSquare,      // mean squared error
  kConvolution,
  kBatchNorm,
  kGroupNorm,
  kMaxPool,
  kMeanPool,  // over the whole image
  kUpsample,
  kPixelAttention,  // attention of the pixels of an image, one head
  kBroadcastAdd,    // a vector a sample, added to every pixel
  kLstm,
  kGatherTokens,   // of all ranks that cut the tokens
  kScatterTokens,  // sums of all ranks, of each its tokens
  kGatherContext,  // keys or values of all ranks that cut the sequence
};
inline constexpr std::size_t kOperatorKinds =
    static_cast<std::size_t>(OperatorKind::kGatherContext) + 1;

enum class Activation {
  kGelu,
  kGeluTanh,
  kGeluComposed,
  kSilu,
  kRelu,
  kReluInPlace,
  kSquaredRelu,
  kTanh,
  kSigmoid,
  kClampedSwish,  // of a gate and an input that are clamped first: gpt-oss
};

// How a norm is computed; the formulas are those of the modules in transformers.
enum class NormForm {
  kPlain,     // a layer norm by its kernel; an RMS norm in float32, then times its weight: Llama
  kFloat32,   // an RMS norm, times its weight, in float32: OLMo 2
  kShifted,   // the same, and 1 is added to the weight: Gemma
  kComposed,  // a layer norm in float32, operation by operation: Cohere
};

// How a router turns its scores into weights of the experts that it chooses.
enum class Routing {
  kSoftmax,          // of all scores
  kSoftmaxOfChosen,  // of those of the experts chosen
  kSigmoid,          // of each
};

// How attention leaves out the tokens that a query must not see.
enum class Mask {
  kNone,
  kPadding,     // of each sample, the same for all its queries; added to the scores
  kAdd,         // of the tokens behind a query; added
  kWhere,       // the same, by torch.where
  kMaskedFill,  // the same, by masked_fill
};

// What an adapter does beside a layer; its parameters are the last of the operator's.
enum class AdapterForm {
  kNone,
  kLowRank,       // A, B: y + B A x
  kDecomposed,    // A, B, magnitude: the weight with B A added, its rows set to a length: DoRA
  kScaledRandom,  // d, b: y + b B d A x, where A and B are the same for all layers: VeRA
  kScaledOutput,  // a factor for each output: IA3
  kScaledInput,   // a factor for each input
};

// A parameter of this block, or of another one that it is tied to.
struct ParameterUse {
  std::int32_t block = -1;  // of the network; -1: this one
  std::int32_t parameter = 0;

  friend bool operator==(const ParameterUse&, const ParameterUse&) = default;
};

// Values are numbered within a block; 0 is what the block before it put out.
using Value = std::int32_t;

struct Operator {
  OperatorKind kind = OperatorKind::kLinear;
  std::string name = {};  // of its module: "self_attn.q_proj"
  std::vector<Value> inputs = {};
  std::vector<Value> outputs = {};
  std::vector<ParameterUse> parameters = {};  // weight, then bias
  // Lengths of the last dimension of its outputs; with heads: of one head.
  std::vector<std::int64_t> widths = {};
  std::int64_t heads = 1;
  std::int64_t key_value_heads = 1;
  std::int64_t ranks = 1;  // that take part; attention: whose keys it reads
  std::int64_t experts = 0;
  std::int64_t expert_ranks = 1;  // that the experts are spread over
  std::int64_t experts_per_token = 0;
  AdapterForm adapter = AdapterForm::kNone;
  std::int64_t adapter_rank = 0;
  bool adapter_dropout = false;
  // Attention: trained keys and values before those of the tokens; the last parameter holds them.
  std::int64_t prefix_tokens = 0;
  std::int64_t channels = 1;
  std::int64_t groups = 1;
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  Activation activation = Activation::kGelu;
  Mask mask = Mask::kNone;
  NormForm norm = NormForm::kPlain;
  Routing routing = Routing::kSoftmax;
  bool normalized = false;  // the weights of the experts chosen are made to sum to 1
  // Rotary tables, or masks, that a pass makes: layers that see a window may have their own.
  // Rotary tables, 0: made anew, in float32, wherever they are used.
  std::int64_t tables = 1;
  // Attention: its softmax is computed in float32; experts: their router and their sum are.
  bool float32 = false;
  bool softcap = false;  // scores of attention, or logits, are bounded by tanh
  bool scaled = false;   // the logits are multiplied by a number
  bool eager = false;    // attention for which the framework has no kernel of its own
  bool dropout = false;  // of the attention's probabilities
  bool in_place = false;
  bool keeps_logits = false;  // they are returned beside the loss
  bool transposed = false;    // the targets, as (sequence, batch)
  bool shifted = false;       // the loss of a token is that of predicting the next one

  friend bool operator==(const Operator&, const Operator&) = default;
};

}  // namespace fourpiles
