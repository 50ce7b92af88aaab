// DeepSeek-V2 and V3 and their descendants: multi-head latent attention (keys and values are made
// from one small latent, the only thing that is cached), and experts of which some are shared.
//
// Names and shapes: deepseek-ai/DeepSeek-V3 modeling_deepseek.py; DeepSeek-AI 2024, "DeepSeek-V2",
// section 2.1. The indexer of sparse attention: deepseek-ai/DeepSeek-V3.2-Exp inference/model.py.

#include "model/deepseek.h"

#include <algorithm>
#include <utility>

#include "model/architectures.h"
#include "model/llama.h"
#include "model/mixture.h"

namespace fourpiles {

LatentAttention ReadLatentAttention(Record& config) {
  return {.hidden_size = config.Count("hidden_size"),
          .heads = config.Count("num_attention_heads"),
          .q_lora_rank = config.OptionalCount("q_lora_rank"),
          .kv_lora_rank = config.Count("kv_lora_rank"),
          .qk_nope_head_dim = config.Count("qk_nope_head_dim"),
          .qk_rope_head_dim = config.Count("qk_rope_head_dim"),
          .v_head_dim = config.Count("v_head_dim")};
}

Parameters Attention(const LatentAttention& sizes) {
  const std::int64_t queries = sizes.heads * (sizes.qk_nope_head_dim + sizes.qk_rope_head_dim);
  Parameters attention;
  if (sizes.q_lora_rank) {
    Append(attention, "q_a_proj", Linear({*sizes.q_lora_rank, sizes.hidden_size}, Divide::kNot));
    Append(attention, "q_a_layernorm", Norm(*sizes.q_lora_rank));
    Append(attention, "q_b_proj", Linear({queries, *sizes.q_lora_rank}, Divide::kOutputs));
  } else {
    Append(attention, "q_proj", Linear({queries, sizes.hidden_size}, Divide::kOutputs));
  }
  Append(attention, "kv_a_proj_with_mqa",
         Linear({sizes.kv_lora_rank + sizes.qk_rope_head_dim, sizes.hidden_size}, Divide::kNot));
  Append(attention, "kv_a_layernorm", Norm(sizes.kv_lora_rank));
  Append(attention, "kv_b_proj",
         Linear({sizes.heads * (sizes.qk_nope_head_dim + sizes.v_head_dim), sizes.kv_lora_rank},
                Divide::kOutputs));
  Append(attention, "o_proj",
         Linear({sizes.hidden_size, sizes.heads * sizes.v_head_dim}, Divide::kInputs));
  return attention;
}

Cache CacheOf(const LatentAttention& sizes) {
  return {.key_elements_per_token = sizes.kv_lora_rank + sizes.qk_rope_head_dim,
          .rotary_elements = sizes.qk_rope_head_dim,
          .full_heads = sizes.heads,
          .full_key_elements = sizes.heads * (sizes.qk_nope_head_dim + sizes.qk_rope_head_dim),
          .full_value_elements = sizes.heads * sizes.v_head_dim};
}

namespace {

// Chooses the tokens that sparse attention reads. It keeps a key a token of its own.
struct Indexer {
  std::int64_t heads = 1;
  std::int64_t head_dim = 1;
};

Parameters IndexerParameters(const Indexer& indexer, const LatentAttention& sizes) {
  Parameters parameters;
  Append(parameters, "wq_b",
         Linear({indexer.heads * indexer.head_dim, sizes.q_lora_rank.value_or(sizes.hidden_size)},
                Divide::kNot));
  Append(parameters, "wk", Linear({indexer.head_dim, sizes.hidden_size}, Divide::kNot));
  Append(parameters, "k_norm", Norm(indexer.head_dim, true));
  Append(parameters, "weights_proj", Linear({indexer.heads, sizes.hidden_size}, Divide::kNot));
  return parameters;
}

// q_a → norm → q_b; the latent of keys and values → norm → kv_b; one key for the positions, seen by
// all heads (transformers, models/deepseek_v3/modeling_deepseek_v3.py, DeepseekV3Attention).
PartFlow FlowOf(const LatentAttention& sizes, AttentionShape shape) {
  shape.heads = shape.key_value_heads = sizes.heads;
  shape.head_dim = sizes.qk_nope_head_dim + sizes.qk_rope_head_dim;
  shape.value_head_dim = sizes.v_head_dim;
  return [sizes, shape](Flow& flow, Value x) {
    const RotaryShape rotary = {.head_dim = sizes.qk_rope_head_dim};
    const Value q = sizes.q_lora_rank ? flow.Linear("self_attn.q_b_proj",
                                                    flow.Norm("self_attn.q_a_layernorm",
                                                              flow.Linear("self_attn.q_a_proj", x)))
                                      : flow.Linear("self_attn.q_proj", x);
    const std::vector<Value> queries =
        flow.Split(q, {sizes.heads * sizes.qk_nope_head_dim, sizes.heads * sizes.qk_rope_head_dim});
    const std::vector<Value> latent = flow.Split(flow.Linear("self_attn.kv_a_proj_with_mqa", x),
                                                 {sizes.kv_lora_rank, sizes.qk_rope_head_dim});
    const std::vector<Value> keys_values = flow.Split(
        flow.Linear("self_attn.kv_b_proj", flow.Norm("self_attn.kv_a_layernorm", latent[0])),
        {sizes.heads * sizes.qk_nope_head_dim, sizes.heads * sizes.v_head_dim});
    const Value q_rope = flow.Rotary("self_attn.rotary", queries[1], rotary);
    const Value k_rope = flow.Rotary("self_attn.rotary", latent[1], rotary);
    const Value query = flow.Concat(queries[0], q_rope);
    const Value key = flow.Concat(keys_values[0], flow.Expand(k_rope, sizes.heads));
    return flow.Linear("self_attn.o_proj",
                       flow.Attention("self_attn", query, key, keys_values[1], shape));
  };
}

// What differs between the generations.
struct Generation {
  std::string_view topk_method;  // what a config.json without it means
  Routing routing;
  bool normalized;  // what a config.json without norm_topk_prob means
  std::int64_t per_token;
};

// Which experts a token goes to is decided with a correction of their scores ("noaux_tc"), or not.
// Router and sum are in float32 (modeling_deepseek_v3.py, DeepseekV3TopkRouter, DeepseekV3MoE).
FeedForwardPart RoutedAndShared(Record& config, std::int64_t hidden_size,
                                const Generation& generation) {
  const std::int64_t experts = config.Count("n_routed_experts", kExperts);
  const std::int64_t intermediate_size = config.Count("moe_intermediate_size");
  const std::optional<Activation> activation = ReadActivation(config, "hidden_act", "silu");
  FeedForwardPart moe;
  moe.flow = FlowOfExperts({.router = "mlp.gate",
                            .experts = "mlp.experts",
                            .hidden_size = hidden_size,
                            .intermediate_size = intermediate_size,
                            .count = experts,
                            .per_token = ReadExpertsPerToken(config, generation.per_token, experts),
                            .activation = activation,
                            .routing = generation.routing,
                            .normalized = config.Flag("norm_topk_prob", generation.normalized),
                            .float32 = true});
  Append(moe.parameters, "mlp.gate", Linear({experts, hidden_size}, Divide::kNot));
  if (config.TextOr("topk_method", generation.topk_method) == "noaux_tc") {
    Append(moe.parameters, "mlp.gate", RouterCorrection("e_score_correction_bias", experts));
  }
  Append(moe.parameters, "mlp.experts", Experts(GatedMlp(hidden_size, intermediate_size), experts));
  const std::int64_t shared = config.CountOr("n_shared_experts", 0, {0, kExperts.most});
  if (shared > 0) {
    moe.flow = SumOf(std::move(moe.flow), FlowOfGatedMlp("mlp.shared_experts", activation));
    Append(moe.parameters, "mlp.shared_experts", GatedMlp(hidden_size, shared * intermediate_size));
  }
  return moe;
}

// The first layers are dense, then every moe_layer_freq-th has experts.
FeedForward DenseThenExperts(Record& config, const Decoder& decoder, const FeedForwardPart& moe) {
  const std::int64_t dense_layers = config.CountOr("first_k_dense_replace", 0, {0, kLayers.most});
  const std::int64_t step = config.CountOr("moe_layer_freq", 1, kLayers);
  FeedForward mlp;
  if (dense_layers > 0 || step > 1) {
    mlp = DenseMlp(config, decoder);
  }
  return [=](std::int64_t layer) {
    return layer >= dense_layers && layer % step == 0 ? moe : mlp(layer);
  };
}

// For each layer, whether it has an indexer: all, or those that indexer_types names "full".
std::vector<bool> LayersWithIndexer(Record& config, std::int64_t num_hidden_layers) {
  const std::vector<std::string> types = config.Texts("indexer_types");
  std::vector<bool> with(static_cast<std::size_t>(num_hidden_layers), config.Has("index_n_heads"));
  for (std::size_t layer = 0; layer < std::min(types.size(), with.size()); ++layer) {
    with[layer] = with[layer] && types[layer] == "full";
  }
  return with;
}

Network Deepseek(Record& config, const Generation& generation) {
  const LatentAttention sizes = ReadLatentAttention(config);
  const Decoder decoder = {.heads = {.hidden_size = sizes.hidden_size},
                           .num_hidden_layers = config.Count("num_hidden_layers", kLayers),
                           .vocab_size = config.Count("vocab_size"),
                           .tie_word_embeddings = config.Flag("tie_word_embeddings", kUntied)};
  const std::vector<bool> indexed = LayersWithIndexer(config, decoder.num_hidden_layers);
  const Indexer indexer = {.heads = config.CountOr("index_n_heads", 1),
                           .head_dim = config.CountOr("index_head_dim", 1)};
  const FeedForward feed_forward =
      DenseThenExperts(config, decoder, RoutedAndShared(config, sizes.hidden_size, generation));
  const PartFlow attention = FlowOf(sizes, ReadAttentionFlow(config).shape);
  Network network = DecoderNetwork(decoder, {}, [&](std::int64_t number) {
    Layer layer;
    layer.cache = CacheOf(sizes);
    Append(layer.parameters, "self_attn", Attention(sizes));
    if (indexed[static_cast<std::size_t>(number)]) {
      Append(layer.parameters, "self_attn.indexer", IndexerParameters(indexer, sizes));
      layer.cache->index_elements_per_token = indexer.head_dim;
    }
    FeedForwardPart part = feed_forward(number);
    Append(layer.parameters, std::move(part.parameters));
    Append(layer.parameters, Norms(kNormsBefore, sizes.hidden_size));
    if (!indexed[static_cast<std::size_t>(number)]) {  // how sparse attention trains: not described
      layer.operators = DescribeLayer(layer.parameters, {}, attention, part.flow);
    }
    return layer;
  });
  LeaveOutPredictionLayers(network,
                           config.CountOr("num_nextn_predict_layers", 0, {0, kLayers.most}));
  return network;
}

}  // namespace

Network BuildDeepseekV2(Record& config) {
  return Deepseek(
      config,
      {.topk_method = "greedy", .routing = Routing::kSoftmax, .normalized = false, .per_token = 6});
}

Network BuildDeepseekV3(Record& config) {
  return Deepseek(config, {.topk_method = "noaux_tc",
                           .routing = Routing::kSigmoid,
                           .normalized = true,
                           .per_token = 8});
}

}  // namespace fourpiles
