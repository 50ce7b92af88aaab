#include "model/from_tensors.h"

#include <map>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/terminal_text.h"
#include "base/try.h"
#include "tensors/name_pattern.h"

namespace fourpiles {
namespace {

// "model.layers.7.mlp.up" as the block "model.layers.{}", 7 and "mlp.up".
struct LayerName {
  std::string block = {};
  std::int64_t layer = 0;
  std::string rest = {};
};

// A name of a file is data: it is printed with the budget, so it is made safe and short.
std::string SafeName(const std::string& name) {
  constexpr std::size_t kLongest = 200;
  return EscapeForTerminal(name.size() <= kLongest ? name : name.substr(0, kLongest) + "…");
}

std::optional<LayerName> SplitName(const std::string& name) {
  for (std::size_t begin = 0; begin < name.size();) {
    const std::size_t end = name.find('.', begin);
    if (end == std::string::npos) {
      return std::nullopt;  // a number at the end is no layer's
    }
    const NamePattern part = PatternOf(std::string_view(name).substr(begin, end - begin));
    if (!part.numbers.empty()) {
      return LayerName{.block = name.substr(0, begin) + "{}",
                       .layer = part.numbers.front(),
                       .rest = name.substr(end + 1)};
    }
    begin = end + 1;
  }
  return std::nullopt;
}

using Layers = std::map<std::int64_t, std::vector<Parameter>>;

// Runs of layers that follow each other and are alike.
void AddRuns(Network& network, const std::string& name, Layers& layers) {
  Block* run = nullptr;
  for (auto& [number, parameters] : layers) {
    if (run != nullptr && number == run->first + run->repeat && parameters == run->parameters) {
      ++run->repeat;
      continue;
    }
    network.blocks.push_back({.name = name, .first = number, .parameters = std::move(parameters)});
    run = &network.blocks.back();
  }
}

}  // namespace

Result<Network> NetworkFromTensors(const std::vector<LogicalTensor>& tensors,
                                   std::string_view where) {
  Network network;
  Block once;
  std::vector<std::string> order;  // of the blocks with layers
  std::map<std::string, Layers> by_block;
  std::int64_t unknown = 0;
  for (const LogicalTensor& tensor : tensors) {
    if (!tensor.shape_known) {
      ++unknown;
      continue;
    }
    const std::string safe_name = SafeName(tensor.name);
    std::optional<LayerName> name = SplitName(safe_name);
    if (!name) {
      once.parameters.push_back(
          {.name = safe_name, .shape = tensor.shape, .trainable = tensor.trainable});
      continue;
    }
    Layers& layers = by_block[name->block];
    if (layers.empty()) {
      order.push_back(name->block);
    }
    layers[name->layer].push_back(
        {.name = std::move(name->rest), .shape = tensor.shape, .trainable = tensor.trainable});
  }
  if (once.parameters.empty() && by_block.empty()) {
    return BadInput({.where = std::string(where),
                     .found = "no tensors whose size is known",
                     .expected = "expected those of a model"});
  }
  if (!once.parameters.empty()) {
    network.blocks.push_back(std::move(once));
  }
  for (const std::string& block : order) {
    AddRuns(network, block, by_block[block]);
  }
  if (unknown > 0) {
    network.left_out.push_back(
        fmt::format("{} packed tensor{} of unknown size", unknown, unknown == 1 ? "" : "s"));
  }
  TRY_VOID(CheckNetwork(network, where));
  return network;
}

}  // namespace fourpiles
