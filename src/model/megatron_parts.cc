#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include "model/megatron.h"

namespace fourpiles {
namespace {

// The whole text as a number of 0 or more.
std::optional<std::int64_t> NumberOf(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  constexpr std::int64_t kMost = 1 << 20;
  const bool is_whole = error == std::errc() && end == text.data() + text.size();
  return is_whole && 0 <= number && number <= kMost ? std::optional(number) : std::nullopt;
}

std::string_view Cut(std::string_view& rest, char at) {
  const std::string_view piece = rest.substr(0, rest.find(at));
  rest.remove_prefix(std::min(rest.size(), piece.size() + 1));
  return piece;
}

// "[0,1]" or "[1]*13", added behind; false: not understood.
bool AddList(std::vector<bool>& layers, std::string_view text, std::size_t most) {
  const std::string_view list = Cut(text, '*');
  const std::optional<std::int64_t> times = text.empty() ? 1 : NumberOf(text);
  if (!times || list.size() < 3 || !list.starts_with('[') || !list.ends_with(']')) {
    return false;
  }
  for (std::int64_t i = 0; i < *times; ++i) {
    std::string_view rest = list.substr(1, list.size() - 2);
    while (!rest.empty()) {
      const std::string_view one = Cut(rest, ',');
      if ((one != "0" && one != "1") || layers.size() == most) {
        return false;
      }
      layers.push_back(one == "1");
    }
  }
  return true;
}

}  // namespace

std::optional<std::vector<bool>> ExpertLayers(std::string_view text, std::int64_t layers) {
  std::vector<bool> with;
  if (const auto step = NumberOf(text); step && *step > 0) {
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      with.push_back(layer % *step == 0);
    }
    return with;
  }
  std::string plain(text);
  std::erase_if(plain, [](char c) { return c == '(' || c == ')' || c == ' '; });
  std::string_view rest = plain;
  while (!rest.empty()) {
    if (!AddList(with, Cut(rest, '+'), static_cast<std::size_t>(layers))) {
      return std::nullopt;
    }
  }
  return std::ssize(with) == layers ? std::optional(with) : std::nullopt;
}

std::optional<MegatronLatent> ReadMegatronLatent(Record& config, const Heads& heads) {
  if (!config.Flag("multi_latent_attention", false)) {
    return std::nullopt;
  }
  // core/transformer/transformer_config.py, MLATransformerConfig.
  constexpr std::int64_t kRank = 512;
  constexpr std::int64_t kWidth = 128;
  constexpr std::int64_t kRotary = 64;
  return MegatronLatent{
      .hidden_size = heads.hidden_size,
      .heads = heads.query,
      .q_lora_rank = config.OptionalCount("q_lora_rank"),
      .kv_lora_rank = config.CountOr("kv_lora_rank", kRank),
      .qk_head_dim = config.CountOr("qk_head_dim", kWidth, {1, 1 << 16}),
      .qk_pos_emb_head_dim = config.CountOr("qk_pos_emb_head_dim", kRotary, {1, 1 << 16}),
      .v_head_dim = config.CountOr("v_head_dim", kWidth, {1, 1 << 16})};
}

// What is made of the latents is cut by heads; the latents are whole on every rank.
Parameters Attention(const MegatronLatent& of) {
  const std::int64_t queries = of.heads * (of.qk_head_dim + of.qk_pos_emb_head_dim);
  Parameters attention;
  if (of.q_lora_rank) {
    Append(attention, "linear_q_down_proj",
           Linear({*of.q_lora_rank, of.hidden_size}, Divide::kNot));
    Append(attention, "q_layernorm", Norm(*of.q_lora_rank));
    Append(attention, "linear_q_up_proj", Linear({queries, *of.q_lora_rank}, Divide::kOutputs));
  } else {
    Append(attention, "linear_q_proj", Linear({queries, of.hidden_size}, Divide::kOutputs));
  }
  Append(attention, "linear_kv_down_proj",
         Linear({of.kv_lora_rank + of.qk_pos_emb_head_dim, of.hidden_size}, Divide::kNot));
  Append(attention, "kv_layernorm", Norm(of.kv_lora_rank));
  Append(attention, "linear_kv_up_proj",
         Linear({of.heads * (of.qk_head_dim + of.v_head_dim), of.kv_lora_rank}, Divide::kOutputs));
  Append(attention, "linear_proj",
         Linear({of.hidden_size, of.heads * of.v_head_dim}, Divide::kInputs));
  return attention;
}

Cache CacheOf(const MegatronLatent& of) {
  return {.key_elements_per_token = of.kv_lora_rank + of.qk_pos_emb_head_dim,
          .rotary_elements = of.qk_pos_emb_head_dim,
          .full_heads = of.heads,
          .full_key_elements = of.heads * (of.qk_head_dim + of.qk_pos_emb_head_dim),
          .full_value_elements = of.heads * of.v_head_dim};
}

// get_query_key_value_tensors: the parts with and without positions are put together for every
// head.
Value Attend(Flow& flow, const MegatronLatent& of, Value x) {
  const std::string name = "self_attention";
  const RotaryShape rotary = {.head_dim = of.qk_pos_emb_head_dim};
  const Value q = of.q_lora_rank
                      ? flow.Linear(name + ".linear_q_up_proj",
                                    flow.Norm(name + ".q_layernorm",
                                              flow.Linear(name + ".linear_q_down_proj", x)))
                      : flow.Linear(name + ".linear_q_proj", x);
  const std::vector<Value> queries =
      flow.Split(q, {of.heads * of.qk_head_dim, of.heads * of.qk_pos_emb_head_dim});
  const std::vector<Value> latent = flow.Split(flow.Linear(name + ".linear_kv_down_proj", x),
                                               {of.kv_lora_rank, of.qk_pos_emb_head_dim});
  const std::vector<Value> keys_values = flow.Split(
      flow.Linear(name + ".linear_kv_up_proj", flow.Norm(name + ".kv_layernorm", latent[0])),
      {of.heads * of.qk_head_dim, of.heads * of.v_head_dim});
  const Value q_rope = flow.Rotary(name + ".rotary", queries[1], rotary);
  const Value k_rope = flow.Rotary(name + ".rotary", latent[1], rotary);
  const Value query = flow.Concat(queries[0], q_rope);
  const Value key = flow.Concat(keys_values[0], flow.Expand(k_rope, of.heads));
  const AttentionShape shape = {.heads = of.heads,
                                .key_value_heads = of.heads,
                                .head_dim = of.qk_head_dim + of.qk_pos_emb_head_dim,
                                .value_head_dim = of.v_head_dim,
                                .dropout = of.dropout};
  return flow.Linear(name + ".linear_proj",
                     flow.Attention(name, query, key, keys_values[1], shape));
}

}  // namespace fourpiles
