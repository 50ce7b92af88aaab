// Decoders with routed experts in place of the feed-forward part of some or all layers.
//
// Names and shapes: huggingface/transformers, src/transformers/models/NAME/modeling_NAME.py; where
// the checkpoint's names differ from the module's, model.safetensors.index.json.

#include "model/mixture.h"

#include <algorithm>
#include <utility>

#include "model/architectures.h"

namespace fourpiles {
namespace {

Parameters Router(std::int64_t experts, std::int64_t hidden_size, bool bias = false) {
  return Linear({experts, hidden_size}, Divide::kNot, bias);
}

FeedForward InEveryLayer(std::string_view name, Parameters part) {
  Parameters named;
  Append(named, name, std::move(part));
  return [named](std::int64_t) { return named; };
}

// Mixtral's router and experts, whose w1, w3 and w2 are gate, up and down.
Parameters MixtralExperts(Record& config, std::int64_t hidden_size,
                          const FamilyDefaults& defaults = kLlamaDefaults) {
  const std::int64_t experts =
      CountOrDefault(config, "num_local_experts", defaults.num_local_experts, kExperts);
  Parameters moe;
  Append(moe, "gate", Router(experts, hidden_size));
  Append(moe, "experts",
         Experts(GatedMlp(hidden_size, config.Count("intermediate_size"),
                          {.gate = "w1", .up = "w3", .down = "w2"}),
                 experts));
  return moe;
}

}  // namespace

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

FeedForward QwenExperts(Record& config, std::int64_t hidden_size, ExpertStorage storage) {
  const std::int64_t experts = config.Count("num_experts", kExperts);
  const std::int64_t intermediate_size = config.Count("moe_intermediate_size");
  Parameters moe;
  Append(moe, "mlp.gate", Router(experts, hidden_size));
  Append(moe, "mlp.experts",
         storage == ExpertStorage::kSeparate
             ? Experts(GatedMlp(hidden_size, intermediate_size), experts)
             : StackedGatedExperts(experts, hidden_size, intermediate_size, storage));
  if (const auto shared = config.OptionalCount("shared_expert_intermediate_size")) {
    Append(moe, "mlp.shared_expert", GatedMlp(hidden_size, *shared));
    Append(moe, "mlp.shared_expert_gate", Linear({1, hidden_size}, Divide::kNot));
  }
  std::vector<std::int64_t> plain = config.Counts("mlp_only_layers", {0, kLayers.most});
  std::sort(plain.begin(), plain.end());
  const std::int64_t step = config.CountOr("decoder_sparse_step", 1, kLayers);
  Parameters mlp;
  if (!plain.empty() || step > 1) {
    Append(mlp, "mlp", GatedMlp(hidden_size, config.Count("intermediate_size")));
  }
  return [moe, mlp, plain, step](std::int64_t layer) {
    const bool listed = std::binary_search(plain.begin(), plain.end(), layer);
    return listed || (layer + 1) % step != 0 ? mlp : moe;
  };
}

Network BuildMixtral(Record& config) {
  const Decoder decoder = ReadDecoder(config);
  return LlamaNetwork(
      decoder, {}, WindowsWhereGiven(config, decoder.num_hidden_layers),
      InEveryLayer("block_sparse_moe",
                   MixtralExperts(config, decoder.heads.hidden_size, kMixtralDefaults)));
}

Network BuildMinimaxM2(Record& config) {
  const Decoder decoder = ReadDecoder(config);
  Parameters moe = MixtralExperts(config, decoder.heads.hidden_size);
  if (config.Flag("use_routing_bias", true)) {
    Append(moe, RouterCorrection("e_score_correction_bias",
                                 config.Count("num_local_experts", kExperts)));
  }
  const HeadNorm norm = config.Flag("use_qk_norm", true) ? HeadNorm::kAllHeads : HeadNorm::kNone;
  Network network = LlamaNetwork(decoder, {.attention = {.head_norm = norm}},
                                 Windows(static_cast<std::size_t>(decoder.num_hidden_layers)),
                                 InEveryLayer("block_sparse_moe", std::move(moe)));
  LeaveOutPredictionLayers(network, config.CountOr("num_mtp_modules", 0, {0, kLayers.most}));
  return network;
}

Network BuildQwen2Moe(Record& config) {
  const Decoder decoder = ReadDecoder(config);
  return LlamaNetwork(decoder, {.attention = {.qkv_bias = config.Flag("qkv_bias", true)}},
                      QwenWindows(config, decoder.num_hidden_layers),
                      QwenExperts(config, decoder.heads.hidden_size, ExpertStorage::kSeparate));
}

namespace {

Network Qwen3Mixture(Record& config, ExpertStorage storage) {
  const Decoder decoder = ReadDecoder(config);
  const bool bias = config.Flag("attention_bias", false);
  return LlamaNetwork(
      decoder,
      {.attention = {.qkv_bias = bias, .output_bias = bias, .head_norm = HeadNorm::kEachHead}},
      QwenWindows(config, decoder.num_hidden_layers),
      QwenExperts(config, decoder.heads.hidden_size, storage));
}

}  // namespace

Network BuildQwen3Moe(Record& config) {
  return Qwen3Mixture(config, ExpertStorage::kSeparate);
}

Network BuildQwen3VlMoe(Record& config) {
  return Qwen3Mixture(config, ExpertStorage::kStackedIn);
}

// gpt-oss: biases everywhere, a sink a head (a logit that takes attention and gives no value), and
// stacked experts with biases.
Network BuildGptOss(Record& config) {
  const Decoder decoder = ReadDecoder(config, kGptOssDefaults);
  const Heads& heads = decoder.heads;
  const std::int64_t experts =
      CountOrDefault(config, "num_local_experts", kGptOssDefaults.num_local_experts, kExperts);
  const std::int64_t intermediate_size = config.Count("intermediate_size");
  const bool bias = config.Flag("attention_bias", true);
  const Windows windows = ReadWindows(config, decoder.num_hidden_layers, EveryOtherLayer,
                                      {.otherwise = kGptOssDefaults.sliding_window});
  return DecoderNetwork(decoder, {}, [&](std::int64_t number) {
    Layer layer;
    Append(layer.parameters, "self_attn",
           Attention(heads, {.qkv_bias = bias, .output_bias = bias}));
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
                      [=](std::int64_t layer) { return (layer + 1) % step == 0 ? moe : mlp; });
}

}  // namespace fourpiles
