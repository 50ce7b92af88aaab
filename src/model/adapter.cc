#include "model/adapter.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/nearest_name.h"
#include "base/try.h"
#include "model/flow.h"
#include "model/parts.h"

namespace fourpiles {
namespace {

constexpr std::string_view kWeight = ".weight";

// A linear layer of a block.
struct LinearLayer {
  std::string module = {};  // "self_attn.q_proj"
  LinearSize size = {};
};

std::string_view LastPart(std::string_view module) {
  return module.substr(module.rfind('.') + 1);  // npos + 1 is 0
}

// The module of a weight: "mlp.up_proj" of "mlp.up_proj.weight".
std::optional<std::string> ModuleOf(const Parameter& parameter) {
  if (!parameter.name.ends_with(kWeight) || parameter.routed) {
    return std::nullopt;
  }
  return parameter.name.substr(0, parameter.name.size() - kWeight.size());
}

void AddOnce(std::vector<LinearLayer>& layers, LinearLayer layer) {
  if (std::ranges::find(layers, layer.module, &LinearLayer::module) == layers.end()) {
    layers.push_back(std::move(layer));
  }
}

std::vector<LinearLayer> LinearLayersByShape(const Block& block) {
  std::vector<LinearLayer> layers;
  for (const Parameter& parameter : block.parameters) {
    const std::optional<std::string> module = ModuleOf(parameter);
    // Norms of heads with weights of their own are matrices too.
    if (module && parameter.shape.size() == 2 && !module->ends_with("norm")) {
      AddOnce(layers, {*module, {.out = parameter.shape[0], .in = parameter.shape[1]}});
    }
  }
  return layers;
}

// The weight of GPT-2's Conv1D is (in, out), so what the operator puts out tells the two apart.
std::vector<LinearLayer> LinearLayersByOperator(const Block& block) {
  std::vector<LinearLayer> layers;
  for (const Operator& op : block.operators) {
    if (op.kind != OperatorKind::kLinear || op.parameters.front().block >= 0) {
      continue;
    }
    const Parameter& weight =
        block.parameters[static_cast<std::size_t>(op.parameters.front().parameter)];
    if (const std::optional<std::string> module = ModuleOf(weight)) {
      const std::int64_t out = op.widths.front();
      AddOnce(layers, {*module, {.out = out, .in = ElementsOf(weight) / out}});
    }
  }
  return layers;
}

std::vector<LinearLayer> LinearLayersOf(const Block& block) {
  if (!IsNumbered(block)) {
    return {};
  }
  return block.operators.empty() ? LinearLayersByShape(block) : LinearLayersByOperator(block);
}

bool IsTargeted(const LinearLayer& layer, const LoraAdapter& adapter) {
  return adapter.targets.empty() ||
         std::ranges::find(adapter.targets, LastPart(layer.module)) != adapter.targets.end();
}

// The operators that run the layer read A and B as well.
void TellOperators(Block& block, const LinearLayer& layer, const LoraAdapter& adapter) {
  const Flow names(block.parameters);
  const ParameterUse weight = names.Use(layer.module + std::string(kWeight));
  for (Operator& op : block.operators) {
    if (op.kind == OperatorKind::kLinear && op.parameters.front() == weight) {
      op.adapter_rank = adapter.rank;
      op.adapter_dropout = adapter.dropout > 0;
      op.parameters.push_back(names.Use(layer.module + ".lora_A.weight"));
      op.parameters.push_back(names.Use(layer.module + ".lora_B.weight"));
    }
  }
}

void Adapt(Block& block, const LoraAdapter& adapter) {
  for (Parameter& parameter : block.parameters) {
    parameter.trainable = false;
  }
  for (const LinearLayer& layer : LinearLayersOf(block)) {
    if (IsTargeted(layer, adapter)) {
      Append(block.parameters, layer.module + ".lora_A",
             Linear({.out = adapter.rank, .in = layer.size.in}, Divide::kNot));
      Append(block.parameters, layer.module + ".lora_B",
             Linear({.out = layer.size.out, .in = adapter.rank}, Divide::kNot));
      for (std::size_t added = block.parameters.size() - 2; added < block.parameters.size();
           ++added) {
        block.parameters[added].float32 = adapter.float32;
      }
      TellOperators(block, layer, adapter);
    }
  }
}

Result<void> CheckTargets(const Network& network, const LoraAdapter& adapter,
                          std::string_view where) {
  std::vector<LinearLayer> layers;  // in the order of the forward pass
  for (const Block& block : network.blocks) {
    std::ranges::copy(LinearLayersOf(block), std::back_inserter(layers));
  }
  std::vector<std::string_view> names;
  for (const LinearLayer& layer : layers) {
    const std::string_view name = LastPart(layer.module);
    if (std::ranges::find(names, name) == names.end()) {
      names.push_back(name);
    }
  }
  if (names.empty()) {
    return WrongUsage({.where = std::string(where),
                       .found = "the model has no linear layers that are known",
                       .expected = "expected a model with layers",
                       .hint = "a bare parameter count has none; give a model"});
  }
  for (const std::string& target : adapter.targets) {
    if (std::ranges::find(names, target) == names.end()) {
      return WrongUsage({.where = std::string(where),
                         .found = fmt::format("no linear layer is called \"{}\"", target),
                         .expected = DidYouMean(target, names),
                         .hint = fmt::format("linear layers: {}", fmt::join(names, ", "))});
    }
  }
  return {};
}

}  // namespace

Result<Network> WithAdapter(Network network, const LoraAdapter& adapter, std::string_view where) {
  TRY_VOID(CheckTargets(network, adapter, where));
  for (Block& block : network.blocks) {
    Adapt(block, adapter);
  }
  TRY_VOID(CheckNetwork(network, where));
  return network;
}

}  // namespace fourpiles
