// Gemma 4: layers that see a window and, every so often, one that sees all with larger heads, whose
// keys may serve as values too; in the large models experts beside the plain part, in the small
// ones embeddings of the words for every layer and layers that borrow the keys of an earlier one.
//
// Names and shapes: huggingface/transformers, models/gemma4/modular_gemma4.py.

#include <utility>

#include "model/architectures.h"
#include "model/llama.h"
#include "model/mixture.h"

namespace fourpiles {
namespace {

struct Gemma4 {
  Decoder decoder = {};
  Heads global = {};  // of the layers that see all
  bool keys_are_values = false;
  bool bias = false;
  std::int64_t intermediate_size = 1;
  std::int64_t first_borrower = 0;  // layers from here on have no keys and values of their own
  bool borrowers_are_wide = false;
  std::int64_t per_layer_size = 0;  // of the embeddings for every layer; 0: there are none
};

Gemma4 ReadGemma4(Record& config) {
  Gemma4 sizes = {.decoder = ReadDecoder(config, kGemma4Defaults)};
  const std::int64_t layers = sizes.decoder.num_hidden_layers;
  sizes.keys_are_values = config.Flag("attention_k_eq_v", false);
  sizes.global = sizes.decoder.heads;
  sizes.global.head_dim = config.CountOr("global_head_dim", sizes.global.head_dim);
  if (sizes.keys_are_values) {
    sizes.global.key_value = config.CountOr("num_global_key_value_heads", sizes.global.key_value);
  }
  sizes.bias = config.Flag("attention_bias", false);
  sizes.intermediate_size = config.Count("intermediate_size");
  sizes.first_borrower = layers - config.CountOr("num_kv_shared_layers", 0, {0, layers - 1});
  sizes.borrowers_are_wide = config.Flag("use_double_wide_mlp", false);
  sizes.per_layer_size = config.CountOr("hidden_size_per_layer_input", 0, {0, kFactors.most});
  return sizes;
}

// Attention without the parts that this layer borrows or makes of its keys.
Parameters Gemma4Attention(const Gemma4& sizes, const Heads& heads, bool borrows,
                           bool keys_are_values) {
  Parameters attention = Attention(
      heads, {.qkv_bias = sizes.bias, .output_bias = sizes.bias, .head_norm = HeadNorm::kEachHead});
  std::erase_if(attention, [&](const Parameter& parameter) {
    const bool of_keys = parameter.name.starts_with("k_");
    const bool of_values = parameter.name.starts_with("v_");
    return (borrows && (of_keys || of_values)) || (keys_are_values && of_values);
  });
  return attention;
}

// Experts that run beside the plain part, each of the two with norms of its own.
Parameters Gemma4Experts(Record& config, std::int64_t hidden_size) {
  const std::int64_t experts = config.Count("num_experts", kExperts);
  Parameters moe;
  Append(moe, "router.proj", Linear({experts, hidden_size}, Divide::kNot));
  Append(moe, "router", Tensor("scale", {hidden_size}));
  Append(moe, "router", Tensor("per_expert_scale", {experts}));
  Append(moe, "experts",
         StackedGatedExperts(experts, hidden_size, config.Count("moe_intermediate_size"),
                             ExpertStorage::kStackedOut));
  for (const std::string_view norm :
       {"post_feedforward_layernorm_1", "post_feedforward_layernorm_2",
        "pre_feedforward_layernorm_2"}) {
    Append(moe, norm, Norm(hidden_size));
  }
  return moe;
}

// What a layer does with its own embedding of the words.
Parameters PerLayerInput(std::int64_t per_layer_size, std::int64_t hidden_size) {
  Parameters input;
  Append(input, "per_layer_input_gate", Linear({per_layer_size, hidden_size}, Divide::kNot));
  Append(input, "per_layer_projection", Linear({hidden_size, per_layer_size}, Divide::kNot));
  Append(input, "post_per_layer_input_norm", Norm(hidden_size));
  return input;
}

// The embeddings for all layers, side by side in one tensor.
void AddPerLayerEmbeddings(Network& network, Record& config, const Gemma4& sizes) {
  const std::int64_t width = sizes.decoder.num_hidden_layers * sizes.per_layer_size;
  std::vector<Block> blocks = {
      {.name = "model.embed_tokens_per_layer",
       .parameters = Embedding(config.Count("vocab_size_per_layer_input"), width)},
      {.name = "model.per_layer_model_projection",
       .parameters = Linear({width, sizes.decoder.heads.hidden_size}, Divide::kNot)},
      {.name = "model.per_layer_projection_norm", .parameters = Norm(sizes.per_layer_size)}};
  network.blocks.insert(network.blocks.begin() + 1, blocks.begin(), blocks.end());
}

}  // namespace

Network BuildGemma4(Record& config) {
  const Gemma4 sizes = ReadGemma4(config);
  const std::int64_t hidden_size = sizes.decoder.heads.hidden_size;
  const Windows windows = ReadWindows(config, sizes.decoder.num_hidden_layers,
                                      [](std::int64_t layer) { return (layer + 1) % 6 != 0; });
  const Parameters experts =
      config.Flag("enable_moe_block", false) ? Gemma4Experts(config, hidden_size) : Parameters();
  Network network = DecoderNetwork(sizes.decoder, {}, [&](std::int64_t number) {
    const auto window = windows[static_cast<std::size_t>(number)];
    const bool borrows = number >= sizes.first_borrower;
    const Heads& heads = window ? sizes.decoder.heads : sizes.global;
    const std::int64_t wide = borrows && sizes.borrowers_are_wide ? 2 : 1;
    Layer layer;
    Append(layer.parameters, "self_attn",
           Gemma4Attention(sizes, heads, borrows, sizes.keys_are_values && !window));
    Append(layer.parameters, "mlp", GatedMlp(hidden_size, wide * sizes.intermediate_size));
    Append(layer.parameters, experts);
    Append(layer.parameters, Norms(kNormsAround, hidden_size));
    if (sizes.per_layer_size > 0) {
      Append(layer.parameters, PerLayerInput(sizes.per_layer_size, hidden_size));
    }
    Append(layer.parameters, Tensor("layer_scalar", {1}));
    layer.parameters.back().trainable = false;  // a buffer
    if (!borrows) {
      layer.cache = KeyValueCache(heads, window);
    }
    return layer;
  });
  if (sizes.per_layer_size > 0) {
    AddPerLayerEmbeddings(network, config, sizes);
  }
  return network;
}

}  // namespace fourpiles
