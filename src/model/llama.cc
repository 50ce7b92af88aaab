// Llama and the decoders that differ from it in biases, norms of queries and keys, windows, and
// the place of the norms.
//
// Names and shapes: huggingface/transformers, src/transformers/models/NAME/modeling_NAME.py. The
// verified totals in data/models agree with them to the integer.

#include "model/llama.h"

#include <utility>

#include "model/architectures.h"

namespace fourpiles {
namespace {

Windows NoWindows(const Decoder& decoder) {
  return Windows(static_cast<std::size_t>(decoder.num_hidden_layers));
}

// gate_proj and up_proj in one tensor, as q_proj, k_proj and v_proj.
Parameters FusedMlp(std::int64_t hidden_size, std::int64_t intermediate_size) {
  Parameters mlp;
  Append(mlp, "gate_up_proj", Linear({2 * intermediate_size, hidden_size}, Divide::kOutputs));
  Append(mlp, "down_proj", Linear({hidden_size, intermediate_size}, Divide::kInputs));
  return mlp;
}

}  // namespace

Network LlamaNetwork(const Decoder& decoder, const LlamaStyle& style, const Windows& windows,
                     const FeedForward& feed_forward) {
  return DecoderNetwork(decoder, {}, [&](std::int64_t number) {
    Layer layer;
    Append(layer.parameters, "self_attn", Attention(decoder.heads, style.attention));
    Append(layer.parameters, feed_forward(number));
    Append(layer.parameters, Norms(style.norms, decoder.heads.hidden_size));
    layer.cache = KeyValueCache(decoder.heads, windows[static_cast<std::size_t>(number)]);
    return layer;
  });
}

FeedForward DenseMlp(Record& config, const Decoder& decoder, bool bias) {
  Parameters mlp;
  Append(mlp, "mlp",
         GatedMlp(decoder.heads.hidden_size, config.Count("intermediate_size"), {.bias = bias}));
  return [mlp](std::int64_t) { return mlp; };
}

Windows QwenWindows(Record& config, std::int64_t num_hidden_layers) {
  const bool use = config.Flag("use_sliding_window", false);
  const std::int64_t first =
      use ? config.Count("max_window_layers", {0, kLayers.most}) : num_hidden_layers;
  return ReadWindows(config, num_hidden_layers,
                     [first](std::int64_t layer) { return layer >= first; });
}

Network BuildLlama(Record& config) {
  const Decoder decoder = ReadDecoder(config);
  const bool bias = config.Flag("attention_bias", false);
  return LlamaNetwork(decoder, {.attention = {.qkv_bias = bias, .output_bias = bias}},
                      NoWindows(decoder),
                      DenseMlp(config, decoder, config.Flag("mlp_bias", false)));
}

Network BuildMistral(Record& config) {
  const Decoder decoder = ReadDecoder(config);
  return LlamaNetwork(decoder, {}, WindowsWhereGiven(config, decoder.num_hidden_layers),
                      DenseMlp(config, decoder));
}

Network BuildQwen2(Record& config) {
  const Decoder decoder = ReadDecoder(config);
  return LlamaNetwork(decoder, {.attention = {.qkv_bias = true}},
                      QwenWindows(config, decoder.num_hidden_layers), DenseMlp(config, decoder));
}

Network BuildQwen3(Record& config) {
  const Decoder decoder = ReadDecoder(config, kQwen3Defaults);
  const bool bias = config.Flag("attention_bias", false);
  return LlamaNetwork(
      decoder,
      {.attention = {.qkv_bias = bias, .output_bias = bias, .head_norm = HeadNorm::kEachHead}},
      QwenWindows(config, decoder.num_hidden_layers), DenseMlp(config, decoder));
}

namespace {

Network OlmoNetwork(Record& config, const Decoder& decoder, const Windows& windows) {
  const bool bias = config.Flag("attention_bias", false);
  return LlamaNetwork(
      decoder,
      {.attention = {.qkv_bias = bias, .output_bias = bias, .head_norm = HeadNorm::kAllHeads},
       .norms = kNormsAfter},
      windows, DenseMlp(config, decoder));
}

}  // namespace

Network BuildOlmo2(Record& config) {
  const Decoder decoder = ReadDecoder(config);
  return OlmoNetwork(config, decoder, WindowsWhereGiven(config, decoder.num_hidden_layers));
}

Network BuildOlmo3(Record& config) {
  const Decoder decoder = ReadDecoder(config, kOlmo3Defaults);
  return OlmoNetwork(config, decoder,
                     ReadWindows(config, decoder.num_hidden_layers, AllButEveryFourth,
                                 {.otherwise = kOlmo3Defaults.sliding_window}));
}

Network BuildGemma(Record& config) {
  const Decoder decoder = ReadDecoder(config, kGemmaDefaults);
  const bool bias = config.Flag("attention_bias", false);
  return LlamaNetwork(decoder, {.attention = {.qkv_bias = bias, .output_bias = bias}},
                      NoWindows(decoder), DenseMlp(config, decoder));
}

Network BuildGemma2(Record& config) {
  const Decoder decoder = ReadDecoder(config, kGemma2Defaults);
  const bool bias = config.Flag("attention_bias", false);
  return LlamaNetwork(decoder,
                      {.attention = {.qkv_bias = bias, .output_bias = bias}, .norms = kNormsAround},
                      ReadWindows(config, decoder.num_hidden_layers, EveryOtherLayer,
                                  {.otherwise = kGemma2Defaults.sliding_window}),
                      DenseMlp(config, decoder));
}

Network BuildGemma3(Record& config) {
  const Decoder decoder = ReadDecoder(config, kGemma3Defaults);
  const bool bias = config.Flag("attention_bias", false);
  const std::int64_t pattern = config.CountOr("sliding_window_pattern", 6, kLayers);
  return LlamaNetwork(
      decoder,
      {.attention = {.qkv_bias = bias, .output_bias = bias, .head_norm = HeadNorm::kEachHead},
       .norms = kNormsAround},
      ReadWindows(config, decoder.num_hidden_layers,
                  [pattern](std::int64_t layer) { return (layer + 1) % pattern != 0; },
                  {.otherwise = kGemma3Defaults.sliding_window}),
      DenseMlp(config, decoder));
}

// GLM-4: fused gate and up, and a norm after each part as well, under names of its own.
Network BuildGlm4(Record& config) {
  static constexpr std::array<std::string_view, 4> kNorms = {
      "input_layernorm", "post_self_attn_layernorm", "post_attention_layernorm",
      "post_mlp_layernorm"};
  const Decoder decoder = ReadDecoder(config);
  Parameters mlp;
  Append(mlp, "mlp", FusedMlp(decoder.heads.hidden_size, config.Count("intermediate_size")));
  return LlamaNetwork(
      decoder, {.attention = {.qkv_bias = config.Flag("attention_bias", false)}, .norms = kNorms},
      NoWindows(decoder), [mlp](std::int64_t) { return mlp; });
}

// Command-R: one norm a layer, before both parts, which run side by side. Command-R+ norms queries
// and keys as well.
Network BuildCohere(Record& config) {
  static constexpr std::array<std::string_view, 1> kNorms = {"input_layernorm"};
  const Decoder decoder = ReadDecoder(config, kCohereDefaults);
  const bool bias = config.Flag("attention_bias", false);
  const HeadNorm norm = config.Flag("use_qk_norm", false) ? HeadNorm::kHeadsApart : HeadNorm::kNone;
  return LlamaNetwork(
      decoder,
      {.attention = {.qkv_bias = bias, .output_bias = bias, .head_norm = norm}, .norms = kNorms},
      NoWindows(decoder), DenseMlp(config, decoder));
}

// Phi-3 and 4: queries, keys and values in one tensor, gate and up in another.
Network BuildPhi3(Record& config) {
  const Decoder decoder = ReadDecoder(config);
  const Heads& heads = decoder.heads;
  const std::int64_t intermediate_size = config.Count("intermediate_size");
  const Windows windows = WindowsWhereGiven(config, decoder.num_hidden_layers);
  return DecoderNetwork(decoder, {}, [&](std::int64_t number) {
    Layer layer;
    Append(layer.parameters, "self_attn.qkv_proj",
           Linear({heads.QuerySize() + 2 * heads.KeySize(), heads.hidden_size}, Divide::kOutputs));
    Append(layer.parameters, "self_attn.o_proj",
           Linear({heads.hidden_size, heads.QuerySize()}, Divide::kInputs));
    Append(layer.parameters, "mlp", FusedMlp(heads.hidden_size, intermediate_size));
    Append(layer.parameters, Norms(kNormsBefore, heads.hidden_size));
    layer.cache = KeyValueCache(heads, windows[static_cast<std::size_t>(number)]);
    return layer;
  });
}

// Qwen, the first: queries, keys and values in one tensor with a bias; intermediate_size counts
// gate and up together.
Network BuildQwen(Record& config) {
  static constexpr std::array<std::string_view, 2> kNorms = {"ln_1", "ln_2"};
  Decoder decoder = ReadDecoder(config);
  Heads& heads = decoder.heads;
  heads.head_dim = config.CountOr("kv_channels", heads.head_dim);
  const std::int64_t intermediate_size = config.Count("intermediate_size") / 2;
  const Frame frame = {
      .embedding = "transformer.wte", .layers = "transformer.h.{}", .norm = "transformer.ln_f"};
  return DecoderNetwork(decoder, frame, [&](std::int64_t) {
    Layer layer = {.cache = KeyValueCache(heads)};
    Append(layer.parameters, "attn.c_attn",
           Linear({3 * heads.QuerySize(), heads.hidden_size}, Divide::kOutputs, true));
    Append(layer.parameters, "attn.c_proj",
           Linear({heads.hidden_size, heads.QuerySize()}, Divide::kInputs));
    Append(layer.parameters, "mlp",
           GatedMlp(heads.hidden_size, intermediate_size,
                    {.gate = "w2", .up = "w1", .down = "c_proj"}));
    Append(layer.parameters, Norms(kNorms, heads.hidden_size));
    return layer;
  });
}

}  // namespace fourpiles
