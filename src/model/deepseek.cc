// DeepSeek-V2 and V3 and their descendants: multi-head latent attention (keys and values are made
// from one small latent, the only thing that is cached), and experts of which some are shared.
//
// Names and shapes: deepseek-ai/DeepSeek-V3 modeling_deepseek.py; DeepSeek-AI 2024, "DeepSeek-V2",
// section 2.1. The indexer of sparse attention: deepseek-ai/DeepSeek-V3.2-Exp inference/model.py.

#include <utility>

#include "model/architectures.h"
#include "model/llama.h"

namespace fourpiles {
namespace {

struct LatentAttention {
  std::int64_t hidden_size = 1;
  std::int64_t heads = 1;
  std::optional<std::int64_t> q_lora_rank = {};  // absent: queries come straight from the input
  std::int64_t kv_lora_rank = 1;
  std::int64_t qk_nope_head_dim = 1;
  std::int64_t qk_rope_head_dim = 1;
  std::int64_t v_head_dim = 1;
};

LatentAttention ReadAttention(Record& config) {
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

// Which experts a token goes to is decided with a correction of their scores ("noaux_tc"), or not.
Parameters RoutedAndShared(Record& config, std::int64_t hidden_size, std::string_view topk_method) {
  const std::int64_t experts = config.Count("n_routed_experts", kExperts);
  const std::int64_t intermediate_size = config.Count("moe_intermediate_size");
  Parameters moe;
  Append(moe, "gate", Linear({experts, hidden_size}, Divide::kNot));
  if (config.TextOr("topk_method", topk_method) == "noaux_tc") {
    Append(moe, "gate", RouterCorrection("e_score_correction_bias", experts));
  }
  Append(moe, "experts", Experts(GatedMlp(hidden_size, intermediate_size), experts));
  const std::int64_t shared = config.CountOr("n_shared_experts", 0, {0, kExperts.most});
  if (shared > 0) {
    Append(moe, "shared_experts", GatedMlp(hidden_size, shared * intermediate_size));
  }
  return moe;
}

// The first layers are dense, then every moe_layer_freq-th has experts.
FeedForward DenseThenExperts(Record& config, std::int64_t hidden_size, Parameters experts) {
  Parameters moe;
  Append(moe, "mlp", std::move(experts));
  const std::int64_t dense_layers = config.CountOr("first_k_dense_replace", 0, {0, kLayers.most});
  const std::int64_t step = config.CountOr("moe_layer_freq", 1, kLayers);
  Parameters mlp;
  if (dense_layers > 0 || step > 1) {
    Append(mlp, "mlp", GatedMlp(hidden_size, config.Count("intermediate_size")));
  }
  return [=](std::int64_t layer) { return layer >= dense_layers && layer % step == 0 ? moe : mlp; };
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

// `topk_method` is what a config.json without it means.
Network Deepseek(Record& config, std::string_view topk_method) {
  const LatentAttention sizes = ReadAttention(config);
  const Decoder decoder = {.heads = {.hidden_size = sizes.hidden_size},
                           .num_hidden_layers = config.Count("num_hidden_layers", kLayers),
                           .vocab_size = config.Count("vocab_size"),
                           .tie_word_embeddings = config.Flag("tie_word_embeddings", kUntied)};
  const std::vector<bool> indexed = LayersWithIndexer(config, decoder.num_hidden_layers);
  const Indexer indexer = {.heads = config.CountOr("index_n_heads", 1),
                           .head_dim = config.CountOr("index_head_dim", 1)};
  const FeedForward feed_forward = DenseThenExperts(
      config, sizes.hidden_size, RoutedAndShared(config, sizes.hidden_size, topk_method));
  Network network = DecoderNetwork(decoder, {}, [&](std::int64_t number) {
    Layer layer;
    layer.cache = {.key_elements_per_token = sizes.kv_lora_rank + sizes.qk_rope_head_dim};
    Append(layer.parameters, "self_attn", Attention(sizes));
    if (indexed[static_cast<std::size_t>(number)]) {
      Append(layer.parameters, "self_attn.indexer", IndexerParameters(indexer, sizes));
      layer.cache->index_elements_per_token = indexer.head_dim;
    }
    Append(layer.parameters, feed_forward(number));
    Append(layer.parameters, Norms(kNormsBefore, sizes.hidden_size));
    return layer;
  });
  LeaveOutPredictionLayers(network,
                           config.CountOr("num_nextn_predict_layers", 0, {0, kLayers.most}));
  return network;
}

}  // namespace

Network BuildDeepseekV2(Record& config) {
  return Deepseek(config, "greedy");
}

Network BuildDeepseekV3(Record& config) {
  return Deepseek(config, "noaux_tc");
}

}  // namespace fourpiles
