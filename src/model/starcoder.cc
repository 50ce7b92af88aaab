// StarCoder, whose heads all share one key and one value; StarCoder 2; and StableLM: layer norms
// with biases around grouped attention.
//
// Names and shapes: huggingface/transformers, models/{gpt_bigcode,starcoder2,stablelm}.

#include <utility>

#include "model/architectures.h"
#include "model/gpt.h"
#include "model/llama.h"

namespace fourpiles {

Network BuildGptBigCode(Record& config) {
  Decoder decoder = ReadMultiHeadDecoder(
      config, kTied, {.hidden_size = "n_embd", .layers = "n_layer", .heads = "n_head"});
  Heads& heads = decoder.heads;
  heads.key_value = config.Flag("multi_query", true) ? 1 : heads.query;
  const std::int64_t hidden_size = heads.hidden_size;
  const std::int64_t inner = config.CountOr("n_inner", 4 * hidden_size);
  const Frame frame = {.embedding = "transformer.wte",
                       .layers = "transformer.h.{}",
                       .norm = "transformer.ln_f",
                       .norm_bias = true};
  Network network = DecoderNetwork(decoder, frame, [&](std::int64_t) {
    Layer layer = {.cache = KeyValueCache(heads)};
    Append(layer.parameters, "ln_1", Norm(hidden_size, true));
    Append(layer.parameters, "attn.c_attn",
           Linear({heads.QuerySize() + 2 * heads.KeySize(), hidden_size}, Divide::kOutputs, true));
    Append(layer.parameters, "attn.c_proj",
           Linear({hidden_size, heads.QuerySize()}, Divide::kInputs, true));
    Append(layer.parameters, "ln_2", Norm(hidden_size, true));
    Append(layer.parameters, "mlp", Mlp(hidden_size, inner, true, "c_fc", "c_proj"));
    return layer;
  });
  network.blocks.insert(
      network.blocks.begin() + 1,
      {.name = "transformer.wpe",
       .parameters = Tensor("weight", {config.Count("n_positions"), hidden_size})});
  return network;
}

Network BuildStarcoder2(Record& config) {
  const Decoder decoder = ReadDecoder(config, kStarcoder2Defaults);
  const Heads& heads = decoder.heads;
  const bool bias = config.Flag("use_bias", true);
  const Windows windows = WindowsWhereGiven(config, decoder.num_hidden_layers);
  const AttentionStyle style = {.qkv_bias = bias, .output_bias = bias};
  const TwoParts parts = {
      .attention_norm = kNormsBefore[0],
      .mlp_norm = kNormsBefore[1],
      .attention =
          WithDropout(FlowOf("self_attn", heads, style, ReadAttentionFlow(config, windows)),
                      ReadDropout(config, "residual_dropout", 0)),
      .mlp = WithDropout(FlowOfMlp("mlp", ReadActivation(config, "hidden_act", "gelu_pytorch_tanh"),
                                   "c_fc", "c_proj"),
                         ReadDropout(config, "residual_dropout", 0))};
  const Parameters mlp =
      Mlp(heads.hidden_size, config.Count("intermediate_size"), bias, "c_fc", "c_proj");
  return DecoderNetwork(decoder, {.norm_bias = true}, [&](std::int64_t number) {
    Layer layer = {.cache = KeyValueCache(heads, windows[static_cast<std::size_t>(number)])};
    Append(layer.parameters, "self_attn", Attention(heads, style));
    Append(layer.parameters, "mlp", mlp);
    Append(layer.parameters, Norms(kNormsBefore, heads.hidden_size, true));
    layer.operators = DescribeLayer(layer.parameters, parts);
    return layer;
  });
}

// With parts side by side there is one norm; norms of queries and keys have weights for each head.
Network BuildStableLm(Record& config) {
  const Decoder decoder = ReadDecoder(config);
  const Heads& heads = decoder.heads;
  const bool head_norms = config.Flag("qk_layernorm", false);
  const bool parallel = config.Flag("use_parallel_residual", false);
  Parameters layer;
  Append(layer, "self_attn", Attention(heads, {.qkv_bias = config.Flag("use_qkv_bias", false)}));
  if (head_norms) {
    for (const auto& [name, count] : {std::pair("self_attn.q_layernorm.norms", heads.query),
                                      std::pair("self_attn.k_layernorm.norms", heads.key_value)}) {
      Parameters norm = Norm(heads.head_dim);
      norm.front().name = "{}.weight";
      norm.front().copies = count;
      Append(layer, name, std::move(norm));
    }
  }
  Append(layer, "mlp", GatedMlp(heads.hidden_size, config.Count("intermediate_size")));
  Append(layer, kNormsBefore[0], Norm(heads.hidden_size, true));
  if (!parallel) {
    Append(layer, kNormsBefore[1], Norm(heads.hidden_size, true));
  }
  return DecoderNetwork(decoder, {.norm_bias = true}, [&](std::int64_t) {
    return Layer{.parameters = layer, .cache = KeyValueCache(heads)};
  });
}

}  // namespace fourpiles
