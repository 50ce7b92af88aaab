// The decoders of LitGPT: one model whose settings tell the families apart (litgpt/config.py,
// Config; litgpt/model.py, Block, CausalSelfAttention, GptNeoxMLP, LLaMAMLP, GemmaMLP). Queries,
// keys and values stand apart here as in other checkpoints; fused_attention.h puts them together.

#include <array>
#include <utility>

#include "model/architectures.h"
#include "model/decoder.h"
#include "model/part_flows.h"

namespace fourpiles {
namespace {

// One layer's settings.
struct LitGptLayer {
  Heads heads = {};
  std::int64_t intermediate_size = 1;
  std::int64_t rotated = 1;
  bool bias = false;
  bool layer_norm = false;  // else an RMS norm
  bool gated = false;
  bool gelu = false;
  bool parallel = false;     // attention and feed-forward part side by side
  bool shared_norm = false;  // one norm before both
  bool norms_after = false;  // of what the parts put out
  bool softcap = false;      // of the scores
};

bool IsOneOf(Record& config, std::string_view key, const std::array<std::string_view, 3>& names,
             std::size_t chosen) {
  const std::string word = config.Text(key);
  if (word != names[0] && word != names[1] && word != names[2]) {
    config.Refuse(key, {.found = "unknown class \"" + word + "\"",
                        .expected = "expected a class of litgpt/model.py"});
  }
  return word == names[chosen];
}

LitGptLayer ReadLayer(Record& config) {
  static constexpr std::array<std::string_view, 3> kMlps = {"GptNeoxMLP", "LLaMAMLP", "GemmaMLP"};
  static constexpr std::array<std::string_view, 3> kNorms = {"LayerNorm", "RMSNorm", "RMSNorm"};
  LitGptLayer layer;
  Heads& heads = layer.heads;
  heads.hidden_size = config.Count("n_embd");
  heads.query = config.Count("n_head", kFactors);
  heads.key_value = config.CountOr("n_query_groups", heads.query, kFactors);
  heads.head_dim = config.CountOr(
      "head_size", std::max<std::int64_t>(1, heads.hidden_size / heads.query), kFactors);
  RequireDivisor(config, "n_query_groups", heads.key_value, {"n_head", heads.query});
  layer.intermediate_size = config.Count("intermediate_size");
  constexpr double kRotated = 0.25;
  layer.rotated = ReadRotated(config, "rotary_percentage", kRotated, heads.head_dim);
  layer.bias = config.Flag("bias", true);
  layer.layer_norm = IsOneOf(config, "norm_class_name", kNorms, 0);
  layer.gelu = !IsOneOf(config, "mlp_class_name", kMlps, 1);
  layer.gated = !IsOneOf(config, "mlp_class_name", kMlps, 0);
  layer.parallel = config.Flag("parallel_residual", true);
  layer.shared_norm = config.Flag("shared_attention_norm", false);
  if (layer.shared_norm && !layer.parallel) {
    config.Refuse("shared_attention_norm",
                  {.found = "true without parallel_residual",
                   .expected = "expected one norm for both parts where they stand side by side"});
    layer.shared_norm = false;  // whose parameter there would not be
  }
  layer.norms_after = config.Flag("post_attention_norm", false);
  layer.softcap = config.OptionalNumber("attention_logit_softcapping").value_or(0) > 0;
  return layer;
}

constexpr GatedMlpStyle kGated = {.gate = "fc_1", .up = "fc_2", .down = "proj"};

Parameters ParametersOf(const LitGptLayer& of) {
  const std::int64_t hidden_size = of.heads.hidden_size;
  Parameters layer;
  Append(layer, "norm_1", Norm(hidden_size, of.layer_norm));
  Append(layer, "attn",
         Attention(of.heads, {.qkv_bias = of.bias, .output_bias = of.bias, .output = "proj"}));
  if (!of.shared_norm) {
    Append(layer, "norm_2", Norm(hidden_size, of.layer_norm));
  }
  if (of.norms_after) {
    Append(layer, "post_attention_norm", Norm(hidden_size, of.layer_norm));
    Append(layer, "post_mlp_norm", Norm(hidden_size, of.layer_norm));
  }
  GatedMlpStyle gated = kGated;
  gated.bias = of.bias;
  Append(layer, "mlp",
         of.gated ? GatedMlp(hidden_size, of.intermediate_size, gated)
                  : Mlp(hidden_size, of.intermediate_size, of.bias, "fc", "proj"));
  return layer;
}

std::vector<Operator> OperatorsOf(const Parameters& parameters, const LitGptLayer& of) {
  const Activation activation = of.gelu ? Activation::kGelu : Activation::kSilu;
  const PartFlow attention =
      FlowOf("attn", of.heads, {.qkv_bias = of.bias, .output_bias = of.bias, .output = "proj"},
             {.rotary = RotaryShape{.rotated = of.rotated},
              .shape = {.float32_softmax = true, .softcap = of.softcap, .eager = of.softcap}});
  const PartFlow mlp = of.gated ? FlowOfGatedMlp("mlp", activation, kGated)
                                : FlowOfMlp("mlp", activation, "fc", "proj");
  Flow flow(parameters);
  Value x = Flow::Input();
  const auto after = [&](std::string_view norm, Value part) {
    return of.norms_after ? flow.Norm(norm, part) : part;
  };
  const Value normed = flow.Norm("norm_1", x);
  const Value attended = after("post_attention_norm", attention(flow, normed));
  if (of.parallel) {
    const Value input = of.shared_norm ? normed : flow.Norm("norm_2", x);
    flow.Add(flow.Add(mlp(flow, input), attended), x);
  } else {
    x = flow.Add(attended, x);
    flow.Add(after("post_mlp_norm", mlp(flow, flow.Norm("norm_2", x))), x);
  }
  return flow.Take();
}

}  // namespace

// Output layer and embedding are two tensors, whatever the checkpoint ties.
Network BuildLitGpt(Record& config) {
  const LitGptLayer of = ReadLayer(config);
  const Decoder decoder = {.heads = of.heads,
                           .num_hidden_layers = config.Count("n_layer", kLayers),
                           .vocab_size = config.Count("padded_vocab_size")};
  const Frame frame = {.embedding = "transformer.wte",
                       .layers = "transformer.h.{}",
                       .norm = "transformer.ln_f",
                       .norm_bias = of.layer_norm,
                       .head_bias = config.Flag("lm_head_bias", false),
                       .scaled_embedding = config.Flag("scale_embeddings", false),
                       .softcap = config.OptionalNumber("final_logit_softcapping").value_or(0) > 0};
  return DecoderNetwork(decoder, frame, [&](std::int64_t) {
    Layer layer = {.parameters = ParametersOf(of), .cache = KeyValueCache(of.heads)};
    layer.operators = OperatorsOf(layer.parameters, of);
    return layer;
  });
}

}  // namespace fourpiles
