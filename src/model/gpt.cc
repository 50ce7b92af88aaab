// GPT-2 and the decoders after it with layer norms that have biases and a plain feed-forward part:
// GPT-J, GPT-NeoX, BLOOM, Falcon, Phi.
//
// Names and shapes: huggingface/transformers, src/transformers/models/NAME/modeling_NAME.py.

#include "model/gpt.h"

#include <algorithm>
#include <array>
#include <utility>

#include "model/architectures.h"

namespace fourpiles {
namespace {

constexpr SizeKeys kGpt2Keys = {.hidden_size = "n_embd", .layers = "n_layer", .heads = "n_head"};

// GPT-2's "Conv1D": a linear layer whose weight is (in, out).
Parameters Conv1D(std::int64_t in, std::int64_t out, Divide divide) {
  Parameters linear = Linear({out, in}, divide, true);
  Parameter& weight = linear.front();
  std::swap(weight.shape[0], weight.shape[1]);
  weight.cut = 1 - *weight.cut;
  return linear;
}

// All queries, keys and values in one tensor, and the output projection.
Parameters FusedAttention(const Heads& heads, bool bias, std::string_view qkv,
                          std::string_view output) {
  Parameters attention;
  Append(
      attention, qkv,
      Linear({heads.QuerySize() + 2 * heads.KeySize(), heads.hidden_size}, Divide::kOutputs, bias));
  Append(attention, output, Linear({heads.hidden_size, heads.QuerySize()}, Divide::kInputs, bias));
  return attention;
}

// The feed-forward part of GPT-NeoX, BLOOM and Falcon.
Parameters NeoxMlp(std::int64_t hidden_size, std::int64_t intermediate_size, bool bias) {
  return Mlp(hidden_size, intermediate_size, bias, "dense_h_to_4h", "dense_4h_to_h");
}

// Puts a block after the embedding of the words.
Block& InsertAfterEmbedding(Network& network, std::string_view name, Parameters parameters) {
  const auto place = network.blocks.insert(
      network.blocks.begin() + 1, {.name = std::string(name), .parameters = std::move(parameters)});
  return *place;
}

// Attention whose queries, keys and values come from one layer under `name`.
PartFlow FusedAttentionFlow(std::string_view name, const Heads& heads, const AttentionFlow& flow) {
  return FlowOfFused(name, "query_key_value", heads, "dense", flow);
}

PartFlow NeoxMlpFlow(std::optional<Activation> activation) {
  return FlowOfMlp("mlp", activation, "dense_h_to_4h", "dense_4h_to_h");
}

// "Conv1D" layers (models/gpt2/modeling_gpt2.py, GPT2Attention, GPT2MLP).
PartFlow Gpt2Attention(const Heads& heads, bool dropout) {
  const std::int64_t width = heads.hidden_size;
  const AttentionShape shape = ShapeFor(heads, {.mask = Mask::kWhere, .dropout = dropout});
  return [width, shape](Flow& flow, Value x) {
    const std::vector<Value> qkv =
        flow.Split(flow.TransposedLinear("attn.c_attn", x), {width, width, width});
    return flow.TransposedLinear("attn.c_proj",
                                 flow.Attention("attn", qkv[0], qkv[1], qkv[2], shape));
  };
}

PartFlow Gpt2Mlp(std::optional<Activation> activation) {
  if (!activation) {
    return {};
  }
  return [activation = *activation](Flow& flow, Value x) {
    const Value inner = flow.TransposedLinear("mlp.c_fc", x);
    return flow.TransposedLinear("mlp.c_proj", flow.Activation("mlp.act", inner, activation));
  };
}

}  // namespace

// Every head has a key and a value of its own, and the heads make up the width.
Decoder ReadMultiHeadDecoder(Record& config, bool tied, const SizeKeys& keys) {
  const std::int64_t hidden_size = config.Count(keys.hidden_size);
  const std::int64_t heads = config.Count(keys.heads);
  RequireDivisor(config, keys.heads, heads, {keys.hidden_size, hidden_size});
  return {.heads = {.hidden_size = hidden_size,
                    .query = heads,
                    .key_value = heads,
                    .head_dim = hidden_size / heads},
          .num_hidden_layers = config.Count(keys.layers, kLayers),
          .vocab_size = config.Count("vocab_size"),
          .tie_word_embeddings = config.Flag("tie_word_embeddings", tied)};
}

std::vector<Operator> DescribeLayer(const Parameters& parameters, const TwoParts& parts) {
  if (!parts.attention || !parts.mlp) {
    return {};
  }
  Flow flow(parameters);
  Value x = Flow::Input();
  if (parts.parallel) {
    const Value normed = flow.Norm(parts.attention_norm, x);
    const Value mlp_input =
        parts.mlp_norm == parts.attention_norm ? normed : flow.Norm(parts.mlp_norm, x);
    const Value attended = parts.attention(flow, normed);
    flow.Add(flow.Add(parts.mlp(flow, mlp_input), attended), x);
  } else if (parts.norms_after) {
    x = flow.Norm(parts.attention_norm, flow.Add(x, parts.attention(flow, x)));
    flow.Norm(parts.mlp_norm, flow.Add(x, parts.mlp(flow, x)));
  } else {
    x = flow.Add(x, parts.attention(flow, flow.Norm(parts.attention_norm, x)));
    flow.Add(x, parts.mlp(flow, flow.Norm(parts.mlp_norm, x)));
  }
  return flow.Take();
}

Network BuildGpt2(Record& config) {
  const Decoder decoder = ReadMultiHeadDecoder(config, kTied, kGpt2Keys);
  const std::int64_t hidden_size = decoder.heads.hidden_size;
  const std::int64_t inner = config.CountOr("n_inner", 4 * hidden_size);
  const Frame frame = {.embedding = "transformer.wte",
                       .layers = "transformer.h.{}",
                       .norm = "transformer.ln_f",
                       .norm_bias = true};
  const bool dropout = ReadDropout(config, "resid_pdrop", kGpt2Dropout);
  const TwoParts parts = {
      .attention_norm = "ln_1",
      .mlp_norm = "ln_2",
      .attention = WithDropout(
          Gpt2Attention(decoder.heads, ReadDropout(config, "attn_pdrop", kGpt2Dropout)), dropout),
      .mlp =
          WithDropout(Gpt2Mlp(ReadActivation(config, "activation_function", "gelu_new")), dropout)};
  Network network = DecoderNetwork(decoder, frame, [&](std::int64_t) {
    Layer layer = {.cache = KeyValueCache(decoder.heads)};
    Append(layer.parameters, "ln_1", Norm(hidden_size, true));
    Append(layer.parameters, "attn.c_attn", Conv1D(hidden_size, 3 * hidden_size, Divide::kOutputs));
    Append(layer.parameters, "attn.c_proj", Conv1D(hidden_size, hidden_size, Divide::kInputs));
    Append(layer.parameters, "ln_2", Norm(hidden_size, true));
    Append(layer.parameters, "mlp.c_fc", Conv1D(hidden_size, inner, Divide::kOutputs));
    Append(layer.parameters, "mlp.c_proj", Conv1D(inner, hidden_size, Divide::kInputs));
    layer.operators = DescribeLayer(layer.parameters, parts);
    return layer;
  });
  Block& positions = InsertAfterEmbedding(
      network, "transformer.wpe", Tensor("weight", {config.Count("n_positions"), hidden_size}));
  Flow flow(positions.parameters);
  const Value x = flow.Add(Flow::Input(), flow.Positions(""));
  flow.Dropout("drop", x, ReadDropout(config, "embd_pdrop", kGpt2Dropout));
  positions.operators = flow.Take();
  return network;
}

namespace {

// Tables in float32, doubled for every use, make queries and keys float32 as well; the softmax goes
// back to the format of the values (models/gptj/modeling_gptj.py, apply_rotary_pos_emb, _attn).
PartFlow GptJAttention(Record& config, const Heads& heads) {
  constexpr std::int64_t kRotated = 64;  // configuration_gptj.py
  const std::int64_t rotated =
      config.CountOr("rotary_dim", std::min(kRotated, heads.head_dim), {1, heads.head_dim});
  return FlowOf("attn", heads, {.output = "out_proj"},
                {.rotary = RotaryShape{.rotated = rotated, .tables = 0},
                 .shape = {.float32_softmax = true,
                           .dropout = ReadDropout(config, "attn_pdrop", 0),
                           .eager = true}});
}

}  // namespace

Network BuildGptJ(Record& config) {
  const Decoder decoder = ReadMultiHeadDecoder(config, kUntied, kGpt2Keys);
  const std::int64_t hidden_size = decoder.heads.hidden_size;
  const std::int64_t inner = config.CountOr("n_inner", 4 * hidden_size);
  const Frame frame = {.embedding = "transformer.wte",
                       .layers = "transformer.h.{}",
                       .norm = "transformer.ln_f",
                       .norm_bias = true,
                       .head_bias = true};
  const bool dropout = ReadDropout(config, "resid_pdrop", 0);
  const TwoParts parts = {
      .attention_norm = "ln_1",
      .mlp_norm = "ln_1",
      .attention = WithDropout(GptJAttention(config, decoder.heads), dropout),
      .mlp = WithDropout(FlowOfMlp("mlp", ReadActivation(config, "activation_function", "gelu_new"),
                                   "fc_in", "fc_out"),
                         dropout),
      .parallel = true};
  return DecoderNetwork(decoder, frame, [&](std::int64_t) {
    Layer layer = {.cache = KeyValueCache(decoder.heads)};
    Append(layer.parameters, "ln_1", Norm(hidden_size, true));
    Append(layer.parameters, "attn", Attention(decoder.heads, {.output = "out_proj"}));
    Append(layer.parameters, "mlp", Mlp(hidden_size, inner, true, "fc_in", "fc_out"));
    layer.operators = DescribeLayer(layer.parameters, parts);
    return layer;
  });
}

Network BuildGptNeox(Record& config) {
  static constexpr std::array<std::string_view, 2> kNorms = {"input_layernorm",
                                                             "post_attention_layernorm"};
  const Decoder decoder = ReadMultiHeadDecoder(config, kUntied);
  const std::int64_t hidden_size = decoder.heads.hidden_size;
  const std::int64_t intermediate_size = config.Count("intermediate_size");
  const bool bias = config.Flag("attention_bias", true);
  const Frame frame = {.embedding = "gpt_neox.embed_in",
                       .layers = "gpt_neox.layers.{}",
                       .norm = "gpt_neox.final_layer_norm",
                       .head = "embed_out",
                       .norm_bias = true};
  constexpr double kRotated = 0.25;  // configuration_gpt_neox.py
  AttentionFlow style = {
      .shape = {.float32_softmax = true, .dropout = ReadDropout(config, "attention_dropout", 0)}};
  style.rotary->rotated = ReadRotated(config, "rotary_pct", kRotated, decoder.heads.head_dim);
  const bool dropout = ReadDropout(config, "hidden_dropout", 0);
  const TwoParts parts = {
      .attention_norm = kNorms[0],
      .mlp_norm = kNorms[1],
      .attention = WithDropout(FusedAttentionFlow("attention", decoder.heads, style), dropout),
      .mlp = WithDropout(NeoxMlpFlow(ReadActivation(config, "hidden_act", "gelu")), dropout),
      .parallel = config.Flag("use_parallel_residual", true)};
  return DecoderNetwork(decoder, frame, [&](std::int64_t) {
    Layer layer = {.parameters = Norms(kNorms, hidden_size, true),
                   .cache = KeyValueCache(decoder.heads)};
    Append(layer.parameters, "attention",
           FusedAttention(decoder.heads, bias, "query_key_value", "dense"));
    Append(layer.parameters, "mlp", NeoxMlp(hidden_size, intermediate_size, true));
    layer.operators = DescribeLayer(layer.parameters, parts);
    return layer;
  });
}

Network BuildBloom(Record& config) {
  static constexpr std::array<std::string_view, 2> kNorms = {"input_layernorm",
                                                             "post_attention_layernorm"};
  const Decoder decoder =
      ReadMultiHeadDecoder(config, kTied,
                           {.hidden_size = config.Has("n_embed") ? "n_embed" : "hidden_size",
                            .layers = "n_layer",
                            .heads = config.Has("n_head") ? "n_head" : "num_attention_heads"});
  const std::int64_t hidden_size = decoder.heads.hidden_size;
  const Frame frame = {.embedding = "transformer.word_embeddings",
                       .layers = "transformer.h.{}",
                       .norm = "transformer.ln_f",
                       .norm_bias = true};
  // No rotary embeddings but biases of the scores, which are made once a pass; the GELU is a
  // function of its own that keeps its input (models/bloom/modeling_bloom.py, GeLUFunction).
  const AttentionFlow style = {.rotary = std::nullopt,
                               .shape = {.float32_softmax = true,
                                         .dropout = ReadDropout(config, "attention_dropout", 0),
                                         .eager = true}};
  const bool dropout = ReadDropout(config, "hidden_dropout", 0);
  const TwoParts parts = {
      .attention_norm = kNorms[0],
      .mlp_norm = kNorms[1],
      .attention = WithDropout(FusedAttentionFlow("self_attention", decoder.heads, style), dropout),
      .mlp = WithDropout(NeoxMlpFlow(Activation::kGeluTanh), dropout)};
  const bool described = !config.Flag("apply_residual_connection_post_layernorm", false);
  Network network = DecoderNetwork(decoder, frame, [&](std::int64_t) {
    Layer layer = {.parameters = Norms(kNorms, hidden_size, true),
                   .cache = KeyValueCache(decoder.heads)};
    Append(layer.parameters, "self_attention",
           FusedAttention(decoder.heads, true, "query_key_value", "dense"));
    Append(layer.parameters, "mlp", NeoxMlp(hidden_size, 4 * hidden_size, true));
    if (described) {
      layer.operators = DescribeLayer(layer.parameters, parts);
    }
    return layer;
  });
  Block& norm = InsertAfterEmbedding(network, "transformer.word_embeddings_layernorm",
                                     Norm(hidden_size, true));
  Flow flow(norm.parameters);
  flow.Norm("", Flow::Input());
  norm.operators = flow.Take();
  return network;
}

namespace {

// Falcon's norms: one before both parts where they run side by side, or one before each.
std::vector<std::string_view> FalconNorms(Record& config) {
  if (!config.Flag("parallel_attn", true)) {
    return {"input_layernorm", "post_attention_layernorm"};
  }
  const bool two = config.Flag("new_decoder_architecture", false) &&
                   config.CountOr("num_ln_in_parallel_attn", 2, {1, 2}) == 2;
  return two ? std::vector<std::string_view>{"ln_attn", "ln_mlp"}
             : std::vector<std::string_view>{"input_layernorm"};
}

std::int64_t FalconKeyValueHeads(Record& config, std::int64_t heads) {
  if (config.Flag("new_decoder_architecture", false)) {
    const std::int64_t key_value = config.CountOr("num_kv_heads", heads);
    RequireDivisor(config, "num_kv_heads", key_value, {"num_attention_heads", heads});
    return key_value;
  }
  return config.Flag("multi_query", true) ? 1 : heads;
}

}  // namespace

Network BuildFalcon(Record& config) {
  Decoder decoder = ReadMultiHeadDecoder(config, kTied);
  decoder.heads.key_value = FalconKeyValueHeads(config, decoder.heads.query);
  const std::int64_t hidden_size = decoder.heads.hidden_size;
  const std::int64_t inner = config.CountOr("ffn_hidden_size", 4 * hidden_size);
  const std::vector<std::string_view> norms = FalconNorms(config);
  const bool bias = config.Flag("bias", false);
  AttentionFlow style = {.shape = {.dropout = ReadDropout(config, "attention_dropout", 0)}};
  if (config.Flag("alibi", false)) {
    style.rotary.reset();
  }
  const bool dropout = ReadDropout(config, "hidden_dropout", 0);
  const TwoParts parts = {
      .attention_norm = norms.front(),
      .mlp_norm = norms.back(),
      .attention = WithDropout(FusedAttentionFlow("self_attention", decoder.heads, style), dropout),
      .mlp = WithDropout(NeoxMlpFlow(ReadActivation(config, "activation", "gelu")), dropout),
      .parallel = config.Flag("parallel_attn", true)};
  const Frame frame = {.embedding = "transformer.word_embeddings",
                       .layers = "transformer.h.{}",
                       .norm = "transformer.ln_f",
                       .norm_bias = true};
  return DecoderNetwork(decoder, frame, [&](std::int64_t) {
    Layer layer = {.parameters = Norms(norms, hidden_size, true),
                   .cache = KeyValueCache(decoder.heads)};
    Append(layer.parameters, "self_attention",
           FusedAttention(decoder.heads, bias, "query_key_value", "dense"));
    Append(layer.parameters, "mlp", NeoxMlp(hidden_size, inner, bias));
    layer.operators = DescribeLayer(layer.parameters, parts);
    return layer;
  });
}

namespace {

// Norms of queries and keys, where there are any, are layer norms of each head
// (models/phi/modeling_phi.py, PhiAttention).
PartFlow PhiAttention(Record& config, const Heads& heads, bool head_norms) {
  constexpr double kRotated = 0.5;  // configuration_phi.py
  const AttentionShape shape = ShapeFor(
      heads, {.float32_softmax = true, .dropout = ReadDropout(config, "attention_dropout", 0)});
  const RotaryShape rotary = {
      .head_dim = heads.head_dim,
      .rotated = ReadRotated(config, "partial_rotary_factor", kRotated, heads.head_dim)};
  return [heads, shape, rotary, head_norms](Flow& flow, Value x) {
    Value q = flow.Linear("self_attn.q_proj", x);
    Value k = flow.Linear("self_attn.k_proj", x);
    const Value v = flow.Linear("self_attn.v_proj", x);
    if (head_norms) {
      q = flow.Norm("self_attn.q_layernorm", q, {.heads = heads.query});
      k = flow.Norm("self_attn.k_layernorm", k, {.heads = heads.key_value});
    }
    q = flow.Rotary("self_attn.rotary", q, rotary);
    k = flow.Rotary("self_attn.rotary", k, rotary);
    return flow.Linear("self_attn.dense", flow.Attention("self_attn", q, k, v, shape));
  };
}

}  // namespace

// Phi-1 to 2: one norm before both parts, which run side by side, and biases everywhere.
Network BuildPhi(Record& config) {
  const Decoder decoder = ReadDecoder(config);
  const std::int64_t hidden_size = decoder.heads.hidden_size;
  const std::int64_t intermediate_size = config.Count("intermediate_size");
  const bool head_norms = config.Flag("qk_layernorm", false);
  const Frame frame = {.norm = "model.final_layernorm", .norm_bias = true, .head_bias = true};
  const bool dropout = ReadDropout(config, "resid_pdrop", 0);
  const TwoParts parts = {
      .attention_norm = "input_layernorm",
      .mlp_norm = "input_layernorm",
      .attention = WithDropout(PhiAttention(config, decoder.heads, head_norms), dropout),
      .mlp = WithDropout(
          FlowOfMlp("mlp", ReadActivation(config, "hidden_act", "gelu_new"), "fc1", "fc2"),
          dropout),
      .parallel = true};
  return DecoderNetwork(decoder, frame, [&](std::int64_t) {
    Layer layer = {.cache = KeyValueCache(decoder.heads)};
    Append(layer.parameters, "self_attn",
           Attention(decoder.heads, {.qkv_bias = true, .output_bias = true, .output = "dense"}));
    if (head_norms) {
      Append(layer.parameters, "self_attn.q_layernorm", Norm(decoder.heads.head_dim, true));
      Append(layer.parameters, "self_attn.k_layernorm", Norm(decoder.heads.head_dim, true));
    }
    Append(layer.parameters, "mlp", Mlp(hidden_size, intermediate_size, true, "fc1", "fc2"));
    Append(layer.parameters, "input_layernorm", Norm(hidden_size, true));
    layer.operators = DescribeLayer(layer.parameters, parts);
    return layer;
  });
}

}  // namespace fourpiles
