// Llama and the decoders that differ from it in biases, norms of queries and keys, windows, and
// the place of the norms.
//
// Names and shapes: huggingface/transformers, src/transformers/models/NAME/modeling_NAME.py. The
// verified totals in data/models agree with them to the integer.

#include "model/llama.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "model/architectures.h"

namespace fourpiles {
namespace {

constexpr std::array<std::string_view, 1> kNormOnce = {"input_layernorm"};

Windows NoWindows(const Decoder& decoder) {
  return Windows(static_cast<std::size_t>(decoder.num_hidden_layers));
}

// gate_proj and up_proj in one tensor, as q_proj, k_proj and v_proj.
FeedForwardPart FusedMlp(Record& config, std::int64_t hidden_size) {
  const std::int64_t width = config.Count("intermediate_size");
  FeedForwardPart mlp;
  Append(mlp.parameters, "mlp.gate_up_proj", Linear({2 * width, hidden_size}, Divide::kOutputs));
  Append(mlp.parameters, "mlp.down_proj", Linear({hidden_size, width}, Divide::kInputs));
  if (const auto activation = ReadActivation(config, "hidden_act", "silu")) {
    mlp.flow = [width, activation = *activation](Flow& flow, Value x) {
      const std::vector<Value> both =
          flow.Split(flow.Linear("mlp.gate_up_proj", x), {width, width});
      return flow.Linear("mlp.down_proj", flow.Gate("mlp", both[0], both[1], activation));
    };
  }
  return mlp;
}

}  // namespace

std::vector<Operator> DescribeLayer(const Parameters& parameters, const LlamaStyle& style,
                                    const PartFlow& attention, const PartFlow& feed_forward) {
  if (!attention || !feed_forward) {
    return {};
  }
  Flow flow(parameters);
  const auto norm = [&](std::size_t which, Value v) {
    return flow.Norm(style.norms[which], v, {.form = style.norm_form});
  };
  const auto scaled = [&](Value v) { return style.scaled_parts ? flow.Scale(v) : v; };
  Value x = Flow::Input();
  switch (style.place) {
    case NormPlace::kBefore:
      x = flow.Add(x, scaled(attention(flow, norm(0, x))));
      flow.Add(x, scaled(feed_forward(flow, norm(1, x))));
      break;
    case NormPlace::kAround:
      x = flow.Add(x, norm(1, attention(flow, norm(0, x))));
      flow.Add(x, norm(3, feed_forward(flow, norm(2, x))));
      break;
    case NormPlace::kAfter:
      x = flow.Add(x, norm(0, attention(flow, x)));
      flow.Add(x, norm(1, feed_forward(flow, x)));
      break;
    case NormPlace::kOnce: {
      const Value normed = norm(0, x);
      x = flow.Add(x, attention(flow, normed));
      flow.Add(x, feed_forward(flow, normed));
      break;
    }
  }
  return flow.Take();
}

AttentionFlow ReadAttentionFlow(Record& config, const Windows& windows) {
  const auto sees_all = std::ranges::count_if(windows, [](const auto& window) { return !window; });
  const bool both = sees_all > 0 && sees_all < std::ssize(windows);
  return {.shape = {.float32_softmax = true,
                    .dropout = ReadDropout(config, "attention_dropout", 0),
                    .masks = both ? 2 : 1}};
}

Network LlamaNetwork(const Decoder& decoder, const LlamaStyle& style, const Windows& windows,
                     const FeedForward& feed_forward) {
  Frame frame = style.frame;
  frame.norm_form = style.norm_form;
  const PartFlow rotated =
      FlowOf("self_attn", decoder.heads, style.attention, style.attention_flow);
  AttentionFlow without_positions = style.attention_flow;
  without_positions.rotary.reset();
  const PartFlow plain = FlowOf("self_attn", decoder.heads, style.attention, without_positions);
  // Most layers are like the one before, which is then taken over instead of described anew.
  Parameters described;  // the feed-forward part of `layer`
  bool rotates = true;   // and whether its attention does
  Layer layer;
  return DecoderNetwork(decoder, frame, [&](std::int64_t number) {
    FeedForwardPart part = feed_forward(number);
    const bool now_rotates = !style.rotates || style.rotates(number);
    if (number == 0 || part.parameters != described || now_rotates != rotates) {
      described = part.parameters;
      rotates = now_rotates;
      layer = {};
      Append(layer.parameters, "self_attn", Attention(decoder.heads, style.attention));
      Append(layer.parameters, std::move(part.parameters));
      Append(layer.parameters, Norms(style.norms, decoder.heads.hidden_size));
      layer.operators =
          DescribeLayer(layer.parameters, style, rotates ? rotated : plain, part.flow);
    }
    layer.cache = KeyValueCache(decoder.heads, windows[static_cast<std::size_t>(number)]);
    return layer;
  });
}

FeedForward DenseMlp(Record& config, const Decoder& decoder, bool bias) {
  return DenseMlp(config, decoder, bias, ReadActivation(config, "hidden_act", "silu"));
}

FeedForward DenseMlp(Record& config, const Decoder& decoder, bool bias,
                     std::optional<Activation> activation) {
  FeedForwardPart mlp = {.flow = FlowOfGatedMlp("mlp", activation)};
  Append(mlp.parameters, "mlp",
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
  return LlamaNetwork(decoder,
                      {.attention = {.qkv_bias = bias, .output_bias = bias},
                       .attention_flow = ReadAttentionFlow(config)},
                      NoWindows(decoder),
                      DenseMlp(config, decoder, config.Flag("mlp_bias", false)));
}

// Granite: Llama with numbers that its words, parts and logits are multiplied by.
Network BuildGranite(Record& config) {
  const Decoder decoder = ReadDecoder(config);
  const bool bias = config.Flag("attention_bias", false);
  const LlamaStyle style = {.attention = {.qkv_bias = bias, .output_bias = bias},
                            .attention_flow = ReadAttentionFlow(config),
                            .scaled_parts = true,
                            .frame = {.scaled_embedding = true, .scaled_logits = true}};
  return LlamaNetwork(decoder, style, NoWindows(decoder),
                      DenseMlp(config, decoder, config.Flag("mlp_bias", false)));
}

// ERNIE 4.5 without experts: biases everywhere or nowhere.
Network BuildErnie45(Record& config) {
  const Decoder decoder = ReadDecoder(config, kErnie45Defaults);
  const bool bias = config.Flag("use_bias", false);
  return LlamaNetwork(decoder,
                      {.attention = {.qkv_bias = bias, .output_bias = bias},
                       .attention_flow = ReadAttentionFlow(config)},
                      NoWindows(decoder), DenseMlp(config, decoder, bias));
}

Network BuildSeedOss(Record& config) {
  const Decoder decoder = ReadDecoder(config, kSeedOssDefaults);
  return LlamaNetwork(decoder,
                      {.attention = {.qkv_bias = config.Flag("attention_bias", true),
                                     .output_bias = config.Flag("attention_out_bias", false)},
                       .attention_flow = ReadAttentionFlow(config)},
                      NoWindows(decoder),
                      DenseMlp(config, decoder, config.Flag("mlp_bias", false)));
}

namespace {

// The layers that know positions: by no_rope_layers, where 1 stands for them, else all but every
// so many-th.
LayerRule ReadRotatingLayers(Record& config, std::int64_t num_hidden_layers) {
  const std::int64_t interval = config.CountOr("no_rope_layer_interval", 4, kLayers);
  const std::vector<std::int64_t> given = config.Counts("no_rope_layers", {0, 1});
  if (!given.empty() && std::ssize(given) != num_hidden_layers) {
    config.Refuse("no_rope_layers",
                  {.found = fmt::format("{} layers", given.size()),
                   .expected = fmt::format("expected num_hidden_layers, {}", num_hidden_layers)});
    return {};
  }
  return [interval, given](std::int64_t layer) {
    return given.empty() ? (layer + 1) % interval != 0 : given[static_cast<std::size_t>(layer)] > 0;
  };
}

}  // namespace

// SmolLM3: every fourth layer knows no positions; only those may see windows.
Network BuildSmolLm3(Record& config) {
  const Decoder decoder = ReadDecoder(config, kSmolLm3Defaults);
  const LayerRule rotates = ReadRotatingLayers(config, decoder.num_hidden_layers);
  const bool windowed = config.Flag("use_sliding_window", false) && config.Has("sliding_window");
  const Windows windows = ReadWindows(config, decoder.num_hidden_layers, [&](std::int64_t layer) {
    return windowed && rotates && !rotates(layer);
  });
  const bool bias = config.Flag("attention_bias", false);
  return LlamaNetwork(decoder,
                      {.attention = {.qkv_bias = bias, .output_bias = bias},
                       .attention_flow = ReadAttentionFlow(config, windows),
                       .rotates = rotates},
                      windows, DenseMlp(config, decoder, config.Flag("mlp_bias", false)));
}

// EXAONE 4: norms after each part and of queries and keys; with windows, the layers that see all
// know no positions.
Network BuildExaone4(Record& config) {
  const Decoder decoder = ReadDecoder(config);
  const bool windowed = config.Has("sliding_window");
  const Windows windows =
      ReadWindows(config, decoder.num_hidden_layers,
                  [windowed](std::int64_t layer) { return windowed && AllButEveryFourth(layer); });
  return LlamaNetwork(decoder,
                      {.attention = {.head_norm = HeadNorm::kEachHead},
                       .norms = kNormsAfter,
                       .place = NormPlace::kAfter,
                       .attention_flow = ReadAttentionFlow(config, windows),
                       .rotates =
                           [windowed, windows](std::int64_t layer) {
                             return !windowed || windows[static_cast<std::size_t>(layer)];
                           }},
                      windows, DenseMlp(config, decoder));
}

// Hunyuan without experts: norms of queries and keys under names of their own, after the rotation.
Network BuildHunyuanDense(Record& config) {
  const Decoder decoder = ReadDecoder(config);
  const Heads& heads = decoder.heads;
  const bool bias = config.Flag("attention_bias", false);
  const FeedForwardPart mlp = DenseMlp(config, decoder)(0);
  return DecoderNetwork(decoder, {}, [&](std::int64_t) {
    Layer layer = {.cache = KeyValueCache(heads)};
    Append(layer.parameters, "self_attn",
           Attention(heads, {.qkv_bias = bias, .output_bias = bias}));
    Append(layer.parameters, "self_attn.query_layernorm", Norm(heads.head_dim));
    Append(layer.parameters, "self_attn.key_layernorm", Norm(heads.head_dim));
    Append(layer.parameters, mlp.parameters);
    Append(layer.parameters, Norms(kNormsBefore, heads.hidden_size));
    return layer;
  });
}

Network BuildMistral(Record& config) {
  const Decoder decoder = ReadDecoder(config);
  return LlamaNetwork(decoder, {.attention_flow = ReadAttentionFlow(config)},
                      WindowsWhereGiven(config, decoder.num_hidden_layers),
                      DenseMlp(config, decoder));
}

Network BuildQwen2(Record& config) {
  const Decoder decoder = ReadDecoder(config);
  const Windows windows = QwenWindows(config, decoder.num_hidden_layers);
  return LlamaNetwork(
      decoder,
      {.attention = {.qkv_bias = true}, .attention_flow = ReadAttentionFlow(config, windows)},
      windows, DenseMlp(config, decoder));
}

Network BuildQwen3(Record& config) {
  const Decoder decoder = ReadDecoder(config, kQwen3Defaults);
  const Windows windows = QwenWindows(config, decoder.num_hidden_layers);
  const bool bias = config.Flag("attention_bias", false);
  return LlamaNetwork(
      decoder,
      {.attention = {.qkv_bias = bias, .output_bias = bias, .head_norm = HeadNorm::kEachHead},
       .attention_flow = ReadAttentionFlow(config, windows)},
      windows, DenseMlp(config, decoder));
}

namespace {

Network OlmoNetwork(Record& config, const Decoder& decoder, const Windows& windows) {
  const bool bias = config.Flag("attention_bias", false);
  AttentionFlow flow = ReadAttentionFlow(config, windows);
  flow.norm = NormForm::kFloat32;
  return LlamaNetwork(
      decoder,
      {.attention = {.qkv_bias = bias, .output_bias = bias, .head_norm = HeadNorm::kAllHeads},
       .norms = kNormsAfter,
       .place = NormPlace::kAfter,
       .norm_form = NormForm::kFloat32,
       .attention_flow = flow},
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

namespace {

// What the three have in common: norms that add 1 to their weights, a gate by the GELU, and an
// embedding that is multiplied by √hidden_size.
LlamaStyle GemmaStyle(Record& config, const Windows& windows) {
  const bool bias = config.Flag("attention_bias", false);
  LlamaStyle style = {.attention = {.qkv_bias = bias, .output_bias = bias},
                      .norm_form = NormForm::kShifted,
                      .attention_flow = ReadAttentionFlow(config, windows),
                      .frame = {.scaled_embedding = true}};
  style.attention_flow.norm = NormForm::kShifted;
  return style;
}

FeedForward GemmaMlp(Record& config, const Decoder& decoder) {
  return DenseMlp(config, decoder, false,
                  ReadActivation(config, "hidden_activation", "gelu_pytorch_tanh"));
}

}  // namespace

Network BuildGemma(Record& config) {
  const Decoder decoder = ReadDecoder(config, kGemmaDefaults);
  const Windows windows = NoWindows(decoder);
  return LlamaNetwork(decoder, GemmaStyle(config, windows), windows, GemmaMlp(config, decoder));
}

// Scores and logits are bounded unless the config says null. The bound of the scores is not applied
// by scaled_dot_product_attention (integrations/sdpa_attention.py), only by eager attention.
Network BuildGemma2(Record& config) {
  constexpr double kScoreBound = 50;  // configuration_gemma2.py
  constexpr double kLogitBound = 30;
  const Decoder decoder = ReadDecoder(config, kGemma2Defaults);
  const Windows windows = ReadWindows(config, decoder.num_hidden_layers, EveryOtherLayer,
                                      {.otherwise = kGemma2Defaults.sliding_window});
  LlamaStyle style = GemmaStyle(config, windows);
  style.norms = kNormsAround;
  style.place = NormPlace::kAround;
  style.attention_flow.shape.softcap =
      config.OptionalNumber("attn_logit_softcapping").value_or(kScoreBound) > 0;
  style.frame.softcap = config.OptionalNumber("final_logit_softcapping").value_or(kLogitBound) > 0;
  return LlamaNetwork(decoder, style, windows, GemmaMlp(config, decoder));
}

Network BuildGemma3(Record& config) {
  const Decoder decoder = ReadDecoder(config, kGemma3Defaults);
  const std::int64_t pattern = config.CountOr("sliding_window_pattern", 6, kLayers);
  const Windows windows =
      ReadWindows(config, decoder.num_hidden_layers,
                  [pattern](std::int64_t layer) { return (layer + 1) % pattern != 0; },
                  {.otherwise = kGemma3Defaults.sliding_window});
  LlamaStyle style = GemmaStyle(config, windows);
  style.attention.head_norm = HeadNorm::kEachHead;
  style.norms = kNormsAround;
  style.place = NormPlace::kAround;
  // Layers that see a window turn by angles of their own (rope_local_base_freq).
  style.attention_flow.rotary->tables = 2;
  return LlamaNetwork(decoder, style, windows, GemmaMlp(config, decoder));
}

// GLM-4: fused gate and up, and a norm after each part as well, under names of its own.
Network BuildGlm4(Record& config) {
  static constexpr std::array<std::string_view, 4> kNorms = {
      "input_layernorm", "post_self_attn_layernorm", "post_attention_layernorm",
      "post_mlp_layernorm"};
  const Decoder decoder = ReadDecoder(config);
  FeedForwardPart mlp = FusedMlp(config, decoder.heads.hidden_size);
  LlamaStyle style = {.attention = {.qkv_bias = config.Flag("attention_bias", false)},
                      .norms = kNorms,
                      .place = NormPlace::kAround,
                      .attention_flow = ReadAttentionFlow(config)};
  style.attention_flow.rotary->rotated =
      ReadRotated(config, "partial_rotary_factor", 0.5, decoder.heads.head_dim);
  return LlamaNetwork(decoder, style, NoWindows(decoder), [mlp](std::int64_t) { return mlp; });
}

// Command-R: one norm a layer, before both parts, which run side by side. Command-R+ norms queries
// and keys as well.
Network BuildCohere(Record& config) {
  const Decoder decoder = ReadDecoder(config, kCohereDefaults);
  const bool bias = config.Flag("attention_bias", false);
  const HeadNorm norm = config.Flag("use_qk_norm", false) ? HeadNorm::kHeadsApart : HeadNorm::kNone;
  LlamaStyle style = {.attention = {.qkv_bias = bias, .output_bias = bias, .head_norm = norm},
                      .norms = kNormOnce,
                      .place = NormPlace::kOnce,
                      .norm_form = NormForm::kComposed,
                      .attention_flow = ReadAttentionFlow(config),
                      .frame = {.scaled_logits = true}};
  style.attention_flow.norm = NormForm::kComposed;
  return LlamaNetwork(decoder, style, NoWindows(decoder), DenseMlp(config, decoder));
}

// Command-R7B and Command A: three of four layers see a window, and every fourth all, without
// positions.
Network BuildCohere2(Record& config) {
  const Decoder decoder = ReadDecoder(config, kCohere2Defaults);
  const std::int64_t pattern = config.CountOr("sliding_window_pattern", 4, kLayers);
  const Windows windows =
      ReadWindows(config, decoder.num_hidden_layers,
                  [pattern](std::int64_t layer) { return (layer + 1) % pattern != 0; },
                  {.otherwise = kCohere2Defaults.sliding_window});
  const bool bias = config.Flag("attention_bias", false);
  const LlamaStyle style = {.attention = {.qkv_bias = bias, .output_bias = bias},
                            .norms = kNormOnce,
                            .place = NormPlace::kOnce,
                            .norm_form = NormForm::kComposed,
                            .attention_flow = ReadAttentionFlow(config, windows),
                            .rotates =
                                [windows](std::int64_t layer) {
                                  return windows[static_cast<std::size_t>(layer)].has_value();
                                },
                            .frame = {.scaled_logits = true}};
  return LlamaNetwork(decoder, style, windows, DenseMlp(config, decoder));
}

// Phi-3 and 4: queries, keys and values in one tensor, gate and up in another.
Network BuildPhi3(Record& config) {
  const Decoder decoder = ReadDecoder(config);
  const Heads& heads = decoder.heads;
  const Windows windows = WindowsWhereGiven(config, decoder.num_hidden_layers);
  const FeedForwardPart mlp = FusedMlp(config, heads.hidden_size);
  AttentionFlow style = ReadAttentionFlow(config);
  style.rotary->rotated = ReadRotated(config, "partial_rotary_factor", 1, heads.head_dim);
  const PartFlow attention = FlowOfFused("self_attn", "qkv_proj", heads, "o_proj", style);
  const bool dropout = ReadDropout(config, "resid_pdrop", 0);
  return DecoderNetwork(decoder, {}, [&](std::int64_t number) {
    Layer layer;
    Append(layer.parameters, "self_attn.qkv_proj",
           Linear({heads.QuerySize() + 2 * heads.KeySize(), heads.hidden_size}, Divide::kOutputs));
    Append(layer.parameters, "self_attn.o_proj",
           Linear({heads.hidden_size, heads.QuerySize()}, Divide::kInputs));
    Append(layer.parameters, mlp.parameters);
    Append(layer.parameters, Norms(kNormsBefore, heads.hidden_size));
    layer.cache = KeyValueCache(heads, windows[static_cast<std::size_t>(number)]);
    layer.operators = DescribeLayer(layer.parameters, {}, WithDropout(attention, dropout),
                                    WithDropout(mlp.flow, dropout));
    return layer;
  });
}

// Qwen, the first: queries, keys and values in one tensor with a bias; intermediate_size counts
// gate and up together.
Network BuildQwen(Record& config) {
  static constexpr std::array<std::string_view, 2> kNorms = {"ln_1", "ln_2"};
  static constexpr GatedMlpStyle kMlp = {.gate = "w2", .up = "w1", .down = "c_proj"};
  Decoder decoder = ReadDecoder(config);
  Heads& heads = decoder.heads;
  heads.head_dim = config.CountOr("kv_channels", heads.head_dim);
  const std::int64_t intermediate_size = config.Count("intermediate_size") / 2;
  const Frame frame = {
      .embedding = "transformer.wte", .layers = "transformer.h.{}", .norm = "transformer.ln_f"};
  const PartFlow attention =
      FlowOfFused("attn", "c_attn", heads, "c_proj", ReadAttentionFlow(config));
  return DecoderNetwork(decoder, frame, [&](std::int64_t) {
    Layer layer = {.cache = KeyValueCache(heads)};
    Append(layer.parameters, "attn.c_attn",
           Linear({3 * heads.QuerySize(), heads.hidden_size}, Divide::kOutputs, true));
    Append(layer.parameters, "attn.c_proj",
           Linear({heads.hidden_size, heads.QuerySize()}, Divide::kInputs));
    Append(layer.parameters, "mlp", GatedMlp(heads.hidden_size, intermediate_size, kMlp));
    Append(layer.parameters, Norms(kNorms, heads.hidden_size));
    layer.operators = DescribeLayer(layer.parameters, {.norms = kNorms}, attention,
                                    FlowOfGatedMlp("mlp", Activation::kSilu, kMlp));
    return layer;
  });
}

}  // namespace fourpiles
