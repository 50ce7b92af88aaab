#include "model/parts.h"

#include <iterator>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace fourpiles {

void Append(Parameters& whole, std::string_view name, Parameters part) {
  for (Parameter& parameter : part) {
    parameter.name = fmt::format("{}.{}", name, parameter.name);
    whole.push_back(std::move(parameter));
  }
}

void Append(Parameters& whole, Parameters part) {
  whole.insert(whole.end(), std::make_move_iterator(part.begin()),
               std::make_move_iterator(part.end()));
}

Parameters Tensor(std::string_view name, std::vector<std::int64_t> shape, std::optional<int> cut) {
  return {{.name = std::string(name), .shape = std::move(shape), .cut = cut}};
}

Parameters Linear(LinearSize size, Divide divide, bool bias) {
  const std::optional<int> by_outputs =
      divide == Divide::kOutputs ? std::optional(0) : std::nullopt;
  Parameters linear =
      Tensor("weight", {size.out, size.in}, divide == Divide::kInputs ? 1 : by_outputs);
  if (bias) {
    // Divided by inputs, each rank has a part of every output, and the bias is added to their sum.
    linear.push_back({.name = "bias", .shape = {size.out}, .cut = by_outputs});
  }
  return linear;
}

Parameters Norm(std::int64_t width, bool bias) {
  Parameters norm = Tensor("weight", {width});
  if (bias) {
    norm.push_back({.name = "bias", .shape = {width}});
  }
  return norm;
}

Parameters Norms(std::span<const std::string_view> names, std::int64_t width, bool bias) {
  Parameters norms;
  for (const std::string_view name : names) {
    Append(norms, name, Norm(width, bias));
  }
  return norms;
}

Parameters Embedding(std::int64_t rows, std::int64_t width) {
  return Tensor("weight", {rows, width}, 0);
}

Parameters Attention(const Heads& heads, const AttentionStyle& style) {
  const std::int64_t hidden = heads.hidden_size;
  const std::int64_t queries = style.gated ? 2 * heads.QuerySize() : heads.QuerySize();
  const LinearSize key_size = {heads.KeySize(), hidden};
  Parameters attention;
  Append(attention, "q_proj", Linear({queries, hidden}, Divide::kOutputs, style.qkv_bias));
  Append(attention, "k_proj", Linear(key_size, Divide::kOutputs, style.qkv_bias));
  Append(attention, "v_proj", Linear(key_size, Divide::kOutputs, style.qkv_bias));
  Append(attention, style.output,
         Linear({hidden, heads.QuerySize()}, Divide::kInputs, style.output_bias));
  if (style.head_norm == HeadNorm::kEachHead) {
    Append(attention, "q_norm", Norm(heads.head_dim));
    Append(attention, "k_norm", Norm(heads.head_dim));
  } else if (style.head_norm == HeadNorm::kAllHeads) {
    Append(attention, "q_norm", Tensor("weight", {heads.QuerySize()}, 0));
    Append(attention, "k_norm", Tensor("weight", {heads.KeySize()}, 0));
  } else if (style.head_norm == HeadNorm::kHeadsApart) {
    Append(attention, "q_norm", Tensor("weight", {heads.query, heads.head_dim}, 0));
    Append(attention, "k_norm", Tensor("weight", {heads.key_value, heads.head_dim}, 0));
  }
  return attention;
}

Cache KeyValueCache(const Heads& heads, std::optional<std::int64_t> window) {
  return {.key_elements_per_token = heads.KeySize(),
          .value_elements_per_token = heads.KeySize(),
          .window = window,
          .heads = heads.key_value};
}

Parameters GatedMlp(std::int64_t hidden_size, std::int64_t intermediate_size,
                    const GatedMlpStyle& style) {
  const LinearSize in = {intermediate_size, hidden_size};
  Parameters mlp;
  Append(mlp, style.gate, Linear(in, Divide::kOutputs, style.bias));
  Append(mlp, style.up, Linear(in, Divide::kOutputs, style.bias));
  Append(mlp, style.down, Linear({hidden_size, intermediate_size}, Divide::kInputs, style.bias));
  return mlp;
}

Parameters Mlp(std::int64_t hidden_size, std::int64_t intermediate_size, bool bias,
               std::string_view in, std::string_view out) {
  Parameters mlp;
  Append(mlp, in, Linear({intermediate_size, hidden_size}, Divide::kOutputs, bias));
  Append(mlp, out, Linear({hidden_size, intermediate_size}, Divide::kInputs, bias));
  return mlp;
}

Parameters Experts(Parameters one, std::int64_t count) {
  for (Parameter& parameter : one) {
    parameter.name = "{}." + parameter.name;
    parameter.copies = count;
    parameter.routed = true;
  }
  return one;
}

Parameters StackedExperts(std::string_view name, std::vector<std::int64_t> shape,
                          std::optional<int> cut) {
  Parameters experts = Tensor(name, std::move(shape), cut);
  experts.front().routed = true;
  return experts;
}

Parameters RouterCorrection(std::string_view name, std::int64_t experts) {
  Parameters correction = Tensor(name, {experts});
  correction.front().trainable = false;
  return correction;
}

void AddBlock(Network& network, std::string_view name, Parameters parameters) {
  network.blocks.push_back({.name = std::string(name), .parameters = std::move(parameters)});
}

void AddLayers(Network& network, std::string_view name, std::int64_t count,
               const std::function<Layer(std::int64_t number)>& layer) {
  const std::size_t blocks_before = network.blocks.size();
  for (std::int64_t number = 0; number < count; ++number) {
    auto [parameters, cache, operators] = layer(number);
    if (cache) {
      cache->layer = number;
      network.caches.push_back(*cache);
    }
    const Block* last = network.blocks.size() > blocks_before ? &network.blocks.back() : nullptr;
    if (last != nullptr && last->parameters == parameters && last->operators == operators) {
      ++network.blocks.back().repeat;
    } else {
      network.blocks.push_back({.name = std::string(name),
                                .first = number,
                                .parameters = std::move(parameters),
                                .operators = std::move(operators)});
    }
  }
}

}  // namespace fourpiles
