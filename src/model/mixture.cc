// Decoders with routed experts in place of the feed-forward part of some or all layers.
//
// Names and shapes: huggingface/transformers, src/transformers/models/NAME/modeling_NAME.py; where
// the checkpoint's names differ from the module's, model.safetensors.index.json.

#include "model/mixture.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "model/architectures.h"

namespace fourpiles {
namespace {

Parameters Router(std::int64_t experts, std::int64_t hidden_size, bool bias = false) {
  return Linear({experts, hidden_size}, Divide::kNot, bias);
}

// Mixtral's router and experts, whose w1, w3 and w2 are gate, up and down.
FeedForwardPart MixtralExperts(Record& config, RoutedExperts experts) {
  static constexpr GatedMlpStyle kStyle = {.gate = "w1", .up = "w3", .down = "w2"};
  experts.router = "block_sparse_moe.gate";
  experts.experts = "block_sparse_moe.experts";
  experts.intermediate_size = config.Count("intermediate_size");
  experts.activation = ReadActivation(config, "hidden_act", "silu");
  FeedForwardPart moe = {.flow = FlowOfExperts(experts, kStyle)};
  Append(moe.parameters, experts.router, Router(experts.count, experts.hidden_size));
  Append(moe.parameters, experts.experts,
         Experts(GatedMlp(experts.hidden_size, experts.intermediate_size, kStyle), experts.count));
  return moe;
}

Operator ExpertsOperator(const RoutedExperts& experts, OperatorKind kind, Value x) {
  return {.kind = kind,
          .name = experts.experts,
          .inputs = {x},
          .widths = {experts.hidden_size, experts.intermediate_size},
          .experts = experts.count,
          .experts_per_token = experts.per_token,
          .activation = experts.activation.value(),
          .routing = experts.routing,
          .normalized = experts.normalized,
          .float32 = experts.float32};
}

}  // namespace

std::int64_t ReadExpertsPerToken(Record& config, std::int64_t otherwise, std::int64_t experts) {
  return config.CountOr("num_experts_per_tok", std::min(otherwise, experts), {1, experts});
}

PartFlow FlowOfExperts(const RoutedExperts& experts, const GatedMlpStyle& style) {
  if (!experts.activation) {
    return {};
  }
  std::vector<std::string> names = {experts.router + ".weight"};
  for (const std::string_view name : {style.gate, style.up, style.down}) {
    names.push_back(fmt::format("{}.{{}}.{}.weight", experts.experts, name));
  }
  return [experts, names](Flow& flow, Value x) {
    Operator op = ExpertsOperator(experts, OperatorKind::kExperts, x);
    for (const std::string& name : names) {
      op.parameters.push_back(flow.Use(name));
    }
    return flow.Append(std::move(op));
  };
}

PartFlow FlowOfStackedExperts(const RoutedExperts& experts) {
  if (!experts.activation) {
    return {};
  }
  return [experts](Flow& flow, Value x) {
    Operator op = ExpertsOperator(experts, OperatorKind::kStackedExperts, x);
    const std::string gate_up = experts.experts + ".gate_up_proj";
    const std::string down = experts.experts + ".down_proj";
    op.parameters = {flow.Use(experts.router + ".weight"), flow.Use(gate_up), flow.Use(down)};
    if (flow.Has(gate_up + "_bias")) {
      for (const std::string& bias :
           {experts.router + ".bias", gate_up + "_bias", down + "_bias"}) {
        op.parameters.push_back(flow.Use(bias));
      }
    }
    return flow.Append(std::move(op));
  };
}

PartFlow SumOf(PartFlow first, PartFlow second) {
  if (!first || !second) {
    return {};
  }
  return [first = std::move(first), second = std::move(second)](Flow& flow, Value x) {
    const Value sum = first(flow, x);
    return flow.Add(sum, second(flow, x));
  };
}

Parameters StackedGatedExperts(std::int64_t experts, std::int64_t hidden_size,
                               std::int64_t intermediate_size, ExpertStorage storage) {
  const bool out_first = storage == ExpertStorage::kStackedOut;
  const std::int64_t gate_up = 2 * intermediate_size;
  Parameters stacked = out_first
                           ? StackedExperts("gate_up_proj", {experts, gate_up, hidden_size}, 1)
                           : StackedExperts("gate_up_proj", {experts, hidden_size, gate_up}, 2);
  Append(stacked, out_first
                      ? StackedExperts("down_proj", {experts, hidden_size, intermediate_size}, 2)
                      : StackedExperts("down_proj", {experts, intermediate_size, hidden_size}, 1));
  return stacked;
}

namespace {

// An expert that every token takes, times a gate of its own.
PartFlow GatedSharedExpert(std::optional<Activation> activation) {
  PartFlow expert = FlowOfGatedMlp("mlp.shared_expert", activation);
  if (!expert) {
    return {};
  }
  return [expert = std::move(expert)](Flow& flow, Value x) {
    const Value output = expert(flow, x);
    const Value gate = flow.Activation(
        "mlp.shared_expert_gate", flow.Linear("mlp.shared_expert_gate", x), Activation::kSigmoid);
    return flow.Multiply(gate, output);
  };
}

FeedForwardPart QwenMixture(Record& config, std::int64_t hidden_size, ExpertStorage storage,
                            const QwenRouter& router) {
  const std::int64_t experts = config.Count("num_experts", kExperts);
  const std::int64_t intermediate_size = config.Count("moe_intermediate_size");
  const RoutedExperts routed = {.router = "mlp.gate",
                                .experts = "mlp.experts",
                                .hidden_size = hidden_size,
                                .intermediate_size = intermediate_size,
                                .count = experts,
                                .per_token = ReadExpertsPerToken(config, router.per_token, experts),
                                .activation = ReadActivation(config, "hidden_act", "silu"),
                                .normalized = config.Flag("norm_topk_prob", router.normalized)};
  FeedForwardPart moe;
  Append(moe.parameters, "mlp.gate", Router(experts, hidden_size));
  if (storage == ExpertStorage::kSeparate) {
    moe.flow = FlowOfExperts(routed);
    Append(moe.parameters, "mlp.experts",
           Experts(GatedMlp(hidden_size, intermediate_size), experts));
  } else {
    moe.flow = FlowOfStackedExperts(routed);
    Append(moe.parameters, "mlp.experts",
           StackedGatedExperts(experts, hidden_size, intermediate_size, storage));
  }
  if (const auto shared = config.OptionalCount("shared_expert_intermediate_size")) {
    moe.flow = SumOf(std::move(moe.flow), GatedSharedExpert(routed.activation));
    Append(moe.parameters, "mlp.shared_expert", GatedMlp(hidden_size, *shared));
    Append(moe.parameters, "mlp.shared_expert_gate", Linear({1, hidden_size}, Divide::kNot));
  }
  return moe;
}

}  // namespace

FeedForward QwenExperts(Record& config, const Decoder& decoder, ExpertStorage storage,
                        const QwenRouter& router) {
  const FeedForwardPart moe = QwenMixture(config, decoder.heads.hidden_size, storage, router);
  std::vector<std::int64_t> plain = config.Counts("mlp_only_layers", {0, kLayers.most});
  std::sort(plain.begin(), plain.end());
  const std::int64_t step = config.CountOr("decoder_sparse_step", 1, kLayers);
  FeedForward mlp;
  if (!plain.empty() || step > 1) {
    mlp = DenseMlp(config, decoder);
  }
  return [moe, mlp, plain, step](std::int64_t layer) {
    const bool listed = std::binary_search(plain.begin(), plain.end(), layer);
    return listed || (layer + 1) % step != 0 ? mlp(layer) : moe;
  };
}

Network BuildMixtral(Record& config) {
  constexpr std::int64_t kPerToken = 2;  // configuration_mixtral.py
  const Decoder decoder = ReadDecoder(config);
  const std::int64_t experts =
      CountOrDefault(config, "num_local_experts", kMixtralDefaults.num_local_experts, kExperts);
  FeedForwardPart moe =
      MixtralExperts(config, {.hidden_size = decoder.heads.hidden_size,
                              .count = experts,
                              .per_token = ReadExpertsPerToken(config, kPerToken, experts)});
  return LlamaNetwork(decoder, {.attention_flow = ReadAttentionFlow(config)},
                      WindowsWhereGiven(config, decoder.num_hidden_layers),
                      [moe](std::int64_t) { return moe; });
}

Network BuildMinimaxM2(Record& config) {
  constexpr std::int64_t kPerToken = 8;
  const Decoder decoder = ReadDecoder(config);
  const std::int64_t experts = config.Count("num_local_experts", kExperts);
  FeedForwardPart moe =
      MixtralExperts(config, {.hidden_size = decoder.heads.hidden_size,
                              .count = experts,
                              .per_token = ReadExpertsPerToken(config, kPerToken, experts),
                              .routing = Routing::kSigmoid});
  if (config.Flag("use_routing_bias", true)) {
    Append(moe.parameters, "block_sparse_moe",
           RouterCorrection("e_score_correction_bias", experts));
  }
  const HeadNorm norm = config.Flag("use_qk_norm", true) ? HeadNorm::kAllHeads : HeadNorm::kNone;
  LlamaStyle style = {.attention = {.head_norm = norm},
                      .attention_flow = ReadAttentionFlow(config)};
  style.attention_flow.rotary->rotated =
      config.CountOr("rotary_dim", decoder.heads.head_dim, {1, decoder.heads.head_dim});
  Network network =
      LlamaNetwork(decoder, style, Windows(static_cast<std::size_t>(decoder.num_hidden_layers)),
                   [moe](std::int64_t) { return moe; });
  LeaveOutPredictionLayers(network, config.CountOr("num_mtp_modules", 0, {0, kLayers.most}));
  return network;
}

Network BuildQwen2Moe(Record& config) {
  const Decoder decoder = ReadDecoder(config);
  const Windows windows = QwenWindows(config, decoder.num_hidden_layers);
  return LlamaNetwork(decoder,
                      {.attention = {.qkv_bias = config.Flag("qkv_bias", true)},
                       .attention_flow = ReadAttentionFlow(config, windows)},
                      windows,
                      QwenExperts(config, decoder, ExpertStorage::kSeparate, {.per_token = 4}));
}

namespace {

Network Qwen3Mixture(Record& config, ExpertStorage storage, const QwenRouter& router) {
  const Decoder decoder = ReadDecoder(config);
  const bool bias = config.Flag("attention_bias", false);
  const Windows windows = QwenWindows(config, decoder.num_hidden_layers);
  return LlamaNetwork(
      decoder,
      {.attention = {.qkv_bias = bias, .output_bias = bias, .head_norm = HeadNorm::kEachHead},
       .attention_flow = ReadAttentionFlow(config, windows)},
      windows, QwenExperts(config, decoder, storage, router));
}

}  // namespace

Network BuildQwen3Moe(Record& config) {
  return Qwen3Mixture(config, ExpertStorage::kSeparate, {});
}

Network BuildQwen3VlMoe(Record& config) {
  // Qwen3VLMoeTextTopKRouter always makes the weights sum to 1.
  return Qwen3Mixture(config, ExpertStorage::kStackedIn, {.normalized = true});
}

namespace {

// Tables of half a head's width serve both halves. There is no scaled_dot_product_attention with
// sinks (models/gpt_oss/modeling_gpt_oss.py, _supports_sdpa).
PartFlow GptOssAttention(const Heads& heads, const AttentionStyle& style,
                         AttentionFlow flow_style) {
  flow_style.rotary->table_width = heads.head_dim / 2;
  flow_style.shape.float32_softmax = false;
  flow_style.shape.eager = true;
  flow_style.shape.sinks = "self_attn.sinks";
  return FlowOf("self_attn", heads, style, flow_style);
}

}  // namespace

// gpt-oss: biases everywhere, a sink a head (a logit that takes attention and gives no value), and
// stacked experts with biases.
Network BuildGptOss(Record& config) {
  constexpr std::int64_t kPerToken = 4;  // configuration_gpt_oss.py
  const Decoder decoder = ReadDecoder(config, kGptOssDefaults);
  const Heads& heads = decoder.heads;
  const std::int64_t experts =
      CountOrDefault(config, "num_local_experts", kGptOssDefaults.num_local_experts, kExperts);
  const std::int64_t intermediate_size = config.Count("intermediate_size");
  const bool bias = config.Flag("attention_bias", true);
  const Windows windows = ReadWindows(config, decoder.num_hidden_layers, EveryOtherLayer,
                                      {.otherwise = kGptOssDefaults.sliding_window});
  const LlamaStyle style = {.attention = {.qkv_bias = bias, .output_bias = bias},
                            .norm_form = NormForm::kFloat32};
  const PartFlow attention =
      GptOssAttention(heads, style.attention, ReadAttentionFlow(config, windows));
  const PartFlow moe =
      FlowOfStackedExperts({.router = "mlp.router",
                            .experts = "mlp.experts",
                            .hidden_size = heads.hidden_size,
                            .intermediate_size = intermediate_size,
                            .count = experts,
                            .per_token = ReadExpertsPerToken(config, kPerToken, experts),
                            .activation = Activation::kClampedSwish,
                            .routing = Routing::kSoftmaxOfChosen,
                            .normalized = false});
  const Frame frame = {.norm_form = style.norm_form};
  return DecoderNetwork(decoder, frame, [&](std::int64_t number) {
    Layer layer;
    Append(layer.parameters, "self_attn", Attention(heads, style.attention));
    Append(layer.parameters, "self_attn", Tensor("sinks", {heads.query}, 0));
    Append(layer.parameters, "mlp.router", Router(experts, heads.hidden_size, true));
    Append(layer.parameters, "mlp.experts",
           StackedGatedExperts(experts, heads.hidden_size, intermediate_size,
                               ExpertStorage::kStackedIn));
    Append(layer.parameters, "mlp.experts",
           StackedExperts("gate_up_proj_bias", {experts, 2 * intermediate_size}, 1));
    Append(layer.parameters, "mlp.experts",
           StackedExperts("down_proj_bias", {experts, heads.hidden_size}, {}));
    Append(layer.parameters, Norms(kNormsBefore, heads.hidden_size));
    layer.cache = KeyValueCache(heads, windows[static_cast<std::size_t>(number)]);
    layer.operators = DescribeLayer(layer.parameters, style, attention, moe);
    return layer;
  });
}

// Llama 4: every interleave_moe_layer_step-th layer has experts beside a shared one; three of four
// layers see chunks of attention_chunk_size tokens, and every fourth, without positions, all.
Network BuildLlama4(Record& config) {
  const Decoder decoder = ReadDecoder(config);
  const std::int64_t hidden_size = decoder.heads.hidden_size;
  const std::int64_t experts = config.Count("num_local_experts", kExperts);
  const std::int64_t intermediate_size = config.Count("intermediate_size");
  Parameters moe;
  Append(moe, "feed_forward.router", Router(experts, hidden_size));
  Append(moe, "feed_forward.experts",
         StackedGatedExperts(experts, hidden_size, intermediate_size, ExpertStorage::kStackedIn));
  Append(moe, "feed_forward.shared_expert", GatedMlp(hidden_size, intermediate_size));
  const std::int64_t step = config.CountOr("interleave_moe_layer_step", 1, kLayers);
  Parameters mlp;
  if (step > 1) {
    Append(mlp, "feed_forward", GatedMlp(hidden_size, config.Count("intermediate_size_mlp")));
  }
  const bool bias = config.Flag("attention_bias", false);
  return LlamaNetwork(decoder, {.attention = {.qkv_bias = bias, .output_bias = bias}},
                      ReadWindows(config, decoder.num_hidden_layers, AllButEveryFourth,
                                  {.key = "attention_chunk_size"}),
                      [=](std::int64_t layer) {
                        return FeedForwardPart{.parameters = (layer + 1) % step == 0 ? moe : mlp};
                      });
}

}  // namespace fourpiles
