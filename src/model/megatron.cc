// Megatron-LM's decoders: one model whose arguments tell the families apart
// (megatron/training/arguments.py; megatron/core/models/gpt, megatron/core/transformer). The keys
// of a config.json are the arguments with "_" for "-": num_layers, ffn_hidden_size, swiglu. What is
// left out is Megatron-LM's default: layer norms and linear layers with biases, GELU, as many keys
// and values as queries, learned positions, dropout of 0.1, an output layer that is the embedding.

#include "model/megatron.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/architectures.h"
#include "model/decoder.h"
#include "model/part_flows.h"

namespace fourpiles {
namespace {

constexpr double kDropout = 0.1;

// activation(gate) × up and a plain activation; fc1 makes gate and up at once.
struct MegatronMlp {
  std::int64_t hidden_size = 1;
  std::int64_t ffn_hidden_size = 1;
  bool gated = false;
  bool bias = true;
  Activation activation = Activation::kGelu;
};

struct MegatronLayer {
  Heads heads = {};
  std::optional<MegatronLatent> latent = {};
  MegatronMlp mlp = {};
  bool qkv_bias = true;
  bool head_norms = false;
  bool layer_norm = true;  // else an RMS norm
  bool attention_dropout = true;
  bool dropout = true;
  std::optional<std::int64_t> rotated = {};  // elements of a head; none: no rotary embeddings
};

// SwiGLU's inner width is two thirds of 4 × hidden_size, in steps of 64 (arguments.py,
// validate_args).
std::int64_t InnerWidth(Record& config, std::int64_t hidden_size, bool gated) {
  const std::int64_t usual = gated ? 4 * hidden_size * 2 / 3 / 64 * 64 : 4 * hidden_size;
  return config.CountOr("ffn_hidden_size", std::max<std::int64_t>(1, usual));
}

MegatronMlp ReadMlp(Record& config, std::int64_t hidden_size) {
  const bool gated = config.Flag("swiglu", false);
  const bool squared = config.Flag("squared_relu", false);
  return {.hidden_size = hidden_size,
          .ffn_hidden_size = InnerWidth(config, hidden_size, gated),
          .gated = gated,
          .bias = !config.Flag("disable_bias_linear", false),
          .activation = gated     ? Activation::kSilu
                        : squared ? Activation::kSquaredRelu
                                  : Activation::kGelu};
}

Heads ReadMegatronHeads(Record& config) {
  Heads heads = {.hidden_size = config.Count("hidden_size"),
                 .query = config.Count("num_attention_heads", kFactors)};
  const bool grouped = config.Flag("group_query_attention", false);
  heads.key_value = grouped ? config.CountOr("num_query_groups", 1, kFactors) : heads.query;
  RequireDivisor(config, "num_query_groups", heads.key_value, {"num_attention_heads", heads.query});
  if (!config.Has("kv_channels")) {
    RequireDivisor(config, "num_attention_heads", heads.query, {"hidden_size", heads.hidden_size},
                   "or give kv_channels");
  }
  heads.head_dim = config.CountOr(
      "kv_channels", std::max<std::int64_t>(1, heads.hidden_size / heads.query), kFactors);
  return heads;
}

constexpr std::array<std::string_view, 3> kPositions = {"learned_absolute", "rope", "none"};

// Which of them; the first where the key is left out.
std::size_t ReadPositions(Record& config) {
  const std::string word = config.TextOr("position_embedding_type", kPositions[0]);
  for (std::size_t i = 0; i < kPositions.size(); ++i) {
    if (word == kPositions[i]) {
      return i;
    }
  }
  config.Refuse("position_embedding_type", {.found = "\"" + word + "\"",
                                            .expected = "expected learned_absolute, rope or none"});
  return 0;
}

bool ReadLayerNorm(Record& config) {
  const std::string word = config.TextOr("normalization", "LayerNorm");
  if (word != "LayerNorm" && word != "RMSNorm") {
    config.Refuse("normalization",
                  {.found = "\"" + word + "\"", .expected = "expected LayerNorm or RMSNorm"});
  }
  return word == "LayerNorm";
}

MegatronLayer ReadMegatronLayer(Record& config) {
  MegatronLayer layer = {.heads = ReadMegatronHeads(config)};
  layer.latent = ReadMegatronLatent(config, layer.heads);
  layer.mlp = ReadMlp(config, layer.heads.hidden_size);
  layer.qkv_bias = layer.mlp.bias || config.Flag("add_qkv_bias", false);
  layer.head_norms = config.Flag("qk_layernorm", false);
  layer.layer_norm = ReadLayerNorm(config);
  layer.attention_dropout = ReadDropout(config, "attention_dropout", kDropout);
  if (layer.latent) {
    layer.latent->dropout = layer.attention_dropout;
  }
  layer.dropout = ReadDropout(config, "hidden_dropout", kDropout);
  if (ReadPositions(config) == 1) {
    layer.rotated = ReadRotated(config, "rotary_percent", 1, layer.heads.head_dim);
  }
  return layer;
}

Parameters AttentionOf(const MegatronLayer& of) {
  const Heads& heads = of.heads;
  if (of.latent) {
    return Attention(*of.latent);
  }
  Parameters attention;
  Append(attention, "linear_qkv",
         Linear({heads.QuerySize() + 2 * heads.KeySize(), heads.hidden_size}, Divide::kOutputs,
                of.qkv_bias));
  if (of.head_norms) {
    Append(attention, "q_layernorm", Norm(heads.head_dim, of.layer_norm));
    Append(attention, "k_layernorm", Norm(heads.head_dim, of.layer_norm));
  }
  Append(attention, "linear_proj",
         Linear({heads.hidden_size, heads.QuerySize()}, Divide::kInputs, of.mlp.bias));
  return attention;
}

Parameters MlpOf(const MegatronMlp& of) {
  Parameters mlp;
  Append(
      mlp, "linear_fc1",
      Linear({(of.gated ? 2 : 1) * of.ffn_hidden_size, of.hidden_size}, Divide::kOutputs, of.bias));
  Append(mlp, "linear_fc2", Linear({of.hidden_size, of.ffn_hidden_size}, Divide::kInputs, of.bias));
  return mlp;
}

// core/transformer/attention.py, SelfAttention.get_query_key_value_tensors.
Value Attend(Flow& flow, const MegatronLayer& of, Value x) {
  const Heads& heads = of.heads;
  const std::string name = "self_attention";
  std::vector<Value> qkv = flow.Split(flow.Linear(name + ".linear_qkv", x),
                                      {heads.QuerySize(), heads.KeySize(), heads.KeySize()});
  if (of.head_norms) {
    qkv[0] = flow.Norm(name + ".q_layernorm", qkv[0], {.heads = heads.query});
    qkv[1] = flow.Norm(name + ".k_layernorm", qkv[1], {.heads = heads.key_value});
  }
  if (of.rotated) {
    const RotaryShape rotary = {.head_dim = heads.head_dim, .rotated = *of.rotated};
    qkv[0] = flow.Rotary(name + ".rotary", qkv[0], rotary);
    qkv[1] = flow.Rotary(name + ".rotary", qkv[1], rotary);
  }
  const AttentionShape shape = ShapeFor(heads, {.dropout = of.attention_dropout});
  return flow.Linear(name + ".linear_proj", flow.Attention(name, qkv[0], qkv[1], qkv[2], shape));
}

Value FeedForwardOf(Flow& flow, const MegatronMlp& of, const std::string& name, Value x) {
  const Value inner = flow.Linear(name + ".linear_fc1", x);
  if (!of.gated) {
    return flow.Linear(name + ".linear_fc2", flow.Activation(name, inner, of.activation));
  }
  const std::vector<Value> both = flow.Split(inner, {of.ffn_hidden_size, of.ffn_hidden_size});
  return flow.Linear(name + ".linear_fc2", flow.Gate(name, both[0], both[1], of.activation));
}

// core/transformer/moe: a router, routed experts, and a shared one without a gate.
struct MegatronExperts {
  std::int64_t count = 0;
  std::int64_t per_token = 2;
  std::int64_t ffn_hidden_size = 1;
  std::int64_t shared_size = 0;   // 0: none
  std::vector<bool> layers = {};  // which have them
};

// "([0]*3+[1]*13)": repeated lists of 0 and 1; "2": every second layer from the first
// (arguments.py, moe_freq_type; core/models/gpt/gpt_layer_specs.py).
std::vector<bool> ReadExpertLayers(Record& config, std::int64_t layers) {
  const std::string text = config.TextOr("moe_layer_freq", "1");
  const auto pattern = ExpertLayers(text, layers);
  if (!pattern) {
    config.Refuse("moe_layer_freq",
                  {.found = "\"" + text + "\"",
                   .expected = "expected a number, or lists of 0 and 1 for all layers",
                   .hint = "([0]*3+[1]*13) is three layers without experts and 13 with them"});
    return std::vector<bool>(static_cast<std::size_t>(layers), true);
  }
  return *pattern;
}

MegatronExperts ReadExperts(Record& config, const MegatronMlp& mlp, std::int64_t layers) {
  MegatronExperts experts;
  if (!config.Has("num_experts")) {
    return experts;
  }
  experts.count = config.Count("num_experts", kExperts);
  experts.per_token = config.CountOr("moe_router_topk", std::min<std::int64_t>(2, experts.count),
                                     {1, experts.count});
  experts.ffn_hidden_size = config.CountOr("moe_ffn_hidden_size", mlp.ffn_hidden_size);
  experts.shared_size =
      config.CountOr("moe_shared_expert_intermediate_size", 0, {0, kLargestCount});
  experts.layers = ReadExpertLayers(config, layers);
  return experts;
}

MegatronMlp ExpertOf(const MegatronMlp& mlp, std::int64_t size) {
  MegatronMlp expert = mlp;
  expert.ffn_hidden_size = size;
  return expert;
}

Parameters ExpertsOf(const MegatronMlp& mlp, const MegatronExperts& of) {
  Parameters parameters;
  Append(parameters, "router", Linear({of.count, mlp.hidden_size}, Divide::kNot));
  Append(parameters, "experts", Experts(MlpOf(ExpertOf(mlp, of.ffn_hidden_size)), of.count));
  if (of.shared_size > 0) {
    Append(parameters, "shared_experts", MlpOf(ExpertOf(mlp, of.shared_size)));
  }
  return parameters;
}

Value Route(Flow& flow, const MegatronMlp& mlp, const MegatronExperts& of, Value x) {
  Operator op = {.kind = OperatorKind::kExperts,
                 .name = "mlp.experts",
                 .inputs = {x},
                 .widths = {mlp.hidden_size, of.ffn_hidden_size},
                 .experts = of.count,
                 .experts_per_token = of.per_token,
                 .activation = mlp.activation};
  for (const std::string_view name : {"mlp.router.weight", "mlp.experts.{}.linear_fc1.weight",
                                      "mlp.experts.{}.linear_fc2.weight"}) {
    op.parameters.push_back(flow.Use(name));
  }
  if (mlp.bias) {
    op.parameters.push_back(flow.Use("mlp.experts.{}.linear_fc1.bias"));
    op.parameters.push_back(flow.Use("mlp.experts.{}.linear_fc2.bias"));
  }
  const Value routed = flow.Append(std::move(op));
  if (of.shared_size == 0) {
    return routed;
  }
  const Value shared = FeedForwardOf(flow, ExpertOf(mlp, of.shared_size), "mlp.shared_experts", x);
  return flow.Add(routed, shared);
}

Layer LayerOf(const MegatronLayer& of, const MegatronExperts* experts) {
  const std::int64_t hidden_size = of.heads.hidden_size;
  Layer layer = {.cache = of.latent ? CacheOf(*of.latent) : KeyValueCache(of.heads)};
  Append(layer.parameters, "input_layernorm", Norm(hidden_size, of.layer_norm));
  Append(layer.parameters, "self_attention", AttentionOf(of));
  Append(layer.parameters, "pre_mlp_layernorm", Norm(hidden_size, of.layer_norm));
  Append(layer.parameters, "mlp", experts != nullptr ? ExpertsOf(of.mlp, *experts) : MlpOf(of.mlp));
  Flow flow(layer.parameters);
  Value x = Flow::Input();
  const Value normed = flow.Norm("input_layernorm", x);
  const Value attended = of.latent ? Attend(flow, *of.latent, normed) : Attend(flow, of, normed);
  x = flow.Add(x, flow.Dropout("self_attention", attended, of.dropout));
  const Value input = flow.Norm("pre_mlp_layernorm", x);
  const Value fed = experts != nullptr ? Route(flow, of.mlp, *experts, input)
                                       : FeedForwardOf(flow, of.mlp, "mlp", input);
  flow.Add(x, flow.Dropout("mlp", fed, of.dropout));
  layer.operators = flow.Take();
  return layer;
}

// Words and positions are added before they are spread over the ranks that cut the tokens
// (core/models/common/embeddings/language_model_embedding.py).
void DescribeEmbedding(Network& network, std::int64_t positions, bool dropout) {
  Block& block = network.blocks.front();
  block.parameters.front().name = "word_embeddings.weight";
  if (positions > 0) {
    Append(block.parameters, "position_embeddings",
           fourpiles::Tensor("weight", {positions, block.parameters.front().shape[1]}));
  }
  Flow flow(block.parameters);
  Value x = flow.Embedding("word_embeddings");
  if (positions > 0) {
    x = flow.Add(x, flow.Positions("position_embeddings"));
  }
  flow.Dropout("dropout", x, dropout);
  block.operators = flow.Take();
}

}  // namespace

Network BuildMegatron(Record& config) {
  const MegatronLayer of = ReadMegatronLayer(config);
  const Decoder decoder = {
      .heads = of.heads,
      .num_hidden_layers = config.Count("num_layers", kLayers),
      .vocab_size = config.Count("vocab_size"),
      .tie_word_embeddings = !config.Flag("untie_embeddings_and_output_weights", false)};
  const MegatronExperts experts = ReadExperts(config, of.mlp, decoder.num_hidden_layers);
  const Frame frame = {.embedding = "embedding",
                       .layers = "decoder.layers.{}",
                       .norm = "decoder.final_layernorm",
                       .head = "output_layer",
                       .norm_bias = of.layer_norm};
  Network network = DecoderNetwork(decoder, frame, [&](std::int64_t number) {
    const auto layer = static_cast<std::size_t>(number);
    return LayerOf(of, layer < experts.layers.size() && experts.layers[layer] ? &experts : nullptr);
  });
  const bool learned = ReadPositions(config) == 0;
  DescribeEmbedding(network, learned ? config.Count("max_position_embeddings") : 0, of.dropout);
  PadVocabulary(network, config.CountOr("make_vocab_size_divisible_by", 1));
  LeaveOutPredictionLayers(network, config.CountOr("mtp_num_layers", 0, {0, kLayers.most}));
  return network;
}

}  // namespace fourpiles
