// GPT-2 and the decoders after it with layer norms that have biases and a plain feed-forward part:
// GPT-J, GPT-NeoX, OPT, BLOOM, Falcon, Phi.
//
// Names and shapes: huggingface/transformers, src/transformers/models/NAME/modeling_NAME.py.

#include <array>
#include <utility>

#include "model/architectures.h"
#include "model/decoder.h"

namespace fourpiles {
namespace {

// The keys under which a family keeps the sizes that all have.
struct SizeKeys {
  std::string_view hidden_size = "hidden_size";
  std::string_view layers = "num_hidden_layers";
  std::string_view heads = "num_attention_heads";
};
constexpr SizeKeys kGpt2Keys = {.hidden_size = "n_embd", .layers = "n_layer", .heads = "n_head"};

// Every head has a key and a value of its own, and the heads make up the width.
Decoder ReadMultiHeadDecoder(Record& config, bool tied, const SizeKeys& keys = {}) {
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
void InsertAfterEmbedding(Network& network, std::string_view name, Parameters parameters) {
  network.blocks.insert(network.blocks.begin() + 1,
                        {.name = std::string(name), .parameters = std::move(parameters)});
}

}  // namespace

Network BuildGpt2(Record& config) {
  const Decoder decoder = ReadMultiHeadDecoder(config, kTied, kGpt2Keys);
  const std::int64_t hidden_size = decoder.heads.hidden_size;
  const std::int64_t inner = config.CountOr("n_inner", 4 * hidden_size);
  const Frame frame = {.embedding = "transformer.wte",
                       .layers = "transformer.h.{}",
                       .norm = "transformer.ln_f",
                       .norm_bias = true};
  Network network = DecoderNetwork(decoder, frame, [&](std::int64_t) {
    Layer layer = {.cache = KeyValueCache(decoder.heads)};
    Append(layer.parameters, "ln_1", Norm(hidden_size, true));
    Append(layer.parameters, "attn.c_attn", Conv1D(hidden_size, 3 * hidden_size, Divide::kOutputs));
    Append(layer.parameters, "attn.c_proj", Conv1D(hidden_size, hidden_size, Divide::kInputs));
    Append(layer.parameters, "ln_2", Norm(hidden_size, true));
    Append(layer.parameters, "mlp.c_fc", Conv1D(hidden_size, inner, Divide::kOutputs));
    Append(layer.parameters, "mlp.c_proj", Conv1D(inner, hidden_size, Divide::kInputs));
    return layer;
  });
  InsertAfterEmbedding(network, "transformer.wpe",
                       Tensor("weight", {config.Count("n_positions"), hidden_size}));
  return network;
}

Network BuildGptJ(Record& config) {
  const Decoder decoder = ReadMultiHeadDecoder(config, kUntied, kGpt2Keys);
  const std::int64_t hidden_size = decoder.heads.hidden_size;
  const std::int64_t inner = config.CountOr("n_inner", 4 * hidden_size);
  const Frame frame = {.embedding = "transformer.wte",
                       .layers = "transformer.h.{}",
                       .norm = "transformer.ln_f",
                       .norm_bias = true,
                       .head_bias = true};
  return DecoderNetwork(decoder, frame, [&](std::int64_t) {
    Layer layer = {.cache = KeyValueCache(decoder.heads)};
    Append(layer.parameters, "ln_1", Norm(hidden_size, true));
    Append(layer.parameters, "attn", Attention(decoder.heads, {.output = "out_proj"}));
    Append(layer.parameters, "mlp", Mlp(hidden_size, inner, true, "fc_in", "fc_out"));
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
  return DecoderNetwork(decoder, frame, [&](std::int64_t) {
    Layer layer = {.parameters = Norms(kNorms, hidden_size, true),
                   .cache = KeyValueCache(decoder.heads)};
    Append(layer.parameters, "attention",
           FusedAttention(decoder.heads, bias, "query_key_value", "dense"));
    Append(layer.parameters, "mlp", NeoxMlp(hidden_size, intermediate_size, true));
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
  Network network = DecoderNetwork(decoder, frame, [&](std::int64_t) {
    Layer layer = {.parameters = Norms(kNorms, hidden_size, true),
                   .cache = KeyValueCache(decoder.heads)};
    Append(layer.parameters, "self_attention",
           FusedAttention(decoder.heads, true, "query_key_value", "dense"));
    Append(layer.parameters, "mlp", NeoxMlp(hidden_size, 4 * hidden_size, true));
    return layer;
  });
  InsertAfterEmbedding(network, "transformer.word_embeddings_layernorm", Norm(hidden_size, true));
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
    return layer;
  });
}

// OPT: learned positions, the first two of which stand for no position; and in the 350M model
// words narrower than the layers.
Network BuildOpt(Record& config) {
  static constexpr std::array<std::string_view, 2> kNorms = {"self_attn_layer_norm",
                                                             "final_layer_norm"};
  constexpr std::int64_t kPositionOffset = 2;
  const Decoder decoder = ReadMultiHeadDecoder(config, kTied);
  const std::int64_t hidden_size = decoder.heads.hidden_size;
  const std::int64_t word_size = config.CountOr("word_embed_proj_dim", hidden_size);
  const std::int64_t inner = config.Count("ffn_dim");
  const bool bias = config.Flag("enable_bias", true);
  Network network;
  AddBlock(network, "model.decoder.embed_tokens", Embedding(decoder.vocab_size, word_size));
  AddBlock(
      network, "model.decoder.embed_positions",
      Tensor("weight", {config.Count("max_position_embeddings") + kPositionOffset, hidden_size}));
  if (word_size != hidden_size) {
    AddBlock(network, "model.decoder.project_in", Linear({hidden_size, word_size}, Divide::kNot));
  }
  AddLayers(network, "model.decoder.layers.{}", decoder.num_hidden_layers, [&](std::int64_t) {
    Layer layer = {.cache = KeyValueCache(decoder.heads)};
    Append(layer.parameters, "self_attn",
           Attention(decoder.heads, {.qkv_bias = bias, .output_bias = bias, .output = "out_proj"}));
    Append(layer.parameters, Mlp(hidden_size, inner, bias, "fc1", "fc2"));
    Append(layer.parameters, Norms(kNorms, hidden_size, true));
    return layer;
  });
  if (config.Flag("do_layer_norm_before", true)) {
    AddBlock(network, "model.decoder.final_layer_norm", Norm(hidden_size, true));
  }
  if (word_size != hidden_size) {
    AddBlock(network, "model.decoder.project_out", Linear({word_size, hidden_size}, Divide::kNot));
  }
  if (!decoder.tie_word_embeddings) {
    AddBlock(network, "lm_head", Linear({decoder.vocab_size, word_size}, Divide::kOutputs));
  }
  network.num_hidden_layers = decoder.num_hidden_layers;
  network.hidden_size = hidden_size;
  network.vocab_size = decoder.vocab_size;
  return network;
}

// Phi-1 to 2: one norm before both parts, which run side by side, and biases everywhere.
Network BuildPhi(Record& config) {
  const Decoder decoder = ReadDecoder(config);
  const std::int64_t hidden_size = decoder.heads.hidden_size;
  const std::int64_t intermediate_size = config.Count("intermediate_size");
  const bool head_norms = config.Flag("qk_layernorm", false);
  const Frame frame = {.norm = "model.final_layernorm", .norm_bias = true, .head_bias = true};
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
    return layer;
  });
}

}  // namespace fourpiles
