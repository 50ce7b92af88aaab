#include "model/fused_attention.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

namespace fourpiles {
namespace {

constexpr std::array<std::string_view, 3> kNames = {"q_proj", "k_proj", "v_proj"};

// What the three may have, beside the module's name, in the order of the fused parameters.
constexpr std::array<std::string_view, 4> kSuffixes = {".weight", ".bias", ".lora_A.weight",
                                                       ".lora_B.weight"};

using ThreeOperators = std::array<std::size_t, 3>;

const Parameter& ParameterOf(const Block& block, const ParameterUse& use) {
  return block.parameters[static_cast<std::size_t>(use.parameter)];
}

// Other adapters, and trained copies, have no fused form.
bool CanBeFused(const Block& block, const Operator& op) {
  return std::ranges::all_of(op.parameters, [&](const ParameterUse& use) {
    if (use.block >= 0) {
      return false;
    }
    const std::string_view name = ParameterOf(block, use).name;
    return name.starts_with(op.name) &&
           std::ranges::find(kSuffixes, name.substr(op.name.size())) != kSuffixes.end();
  });
}

// The operators of queries, keys and values, by number.
std::optional<ThreeOperators> FindThree(const Block& block) {
  ThreeOperators found = {};
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    const auto op = std::ranges::find_if(block.operators, [&](const Operator& candidate) {
      return candidate.kind == OperatorKind::kLinear && candidate.name.ends_with(kNames[i]);
    });
    if (op == block.operators.end() || !CanBeFused(block, *op)) {
      return std::nullopt;
    }
    if (i > 0 && op->inputs != block.operators[found.front()].inputs) {
      return std::nullopt;
    }
    found[i] = static_cast<std::size_t>(op - block.operators.begin());
  }
  return found;
}

// What the three have at one place, "weight" or "lora_A.weight", as rows of one tensor.
void AddRows(std::map<std::string, Parameter>& fused, const Parameter& part,
             std::string_view suffix, const std::string& name) {
  const auto [place, is_new] = fused.try_emplace(std::string(suffix), part);
  if (is_new) {
    place->second.name = name + std::string(suffix);
  } else {
    place->second.shape.front() += part.shape.front();
  }
}

struct Fused {
  Operator linear = {};
  Operator split = {};
  std::map<std::string, Parameter> parameters = {};  // by the end of their name
  std::vector<bool> replaced = {};                   // of the block's parameters
};

Fused FusedOf(const Block& block, const ThreeOperators& three) {
  const Operator& first = block.operators[three.front()];
  const std::string stem = first.name.substr(0, first.name.size() - kNames.front().size());
  Fused fused = {.linear = first, .replaced = std::vector<bool>(block.parameters.size())};
  fused.linear.name = stem + "qkv";
  fused.linear.widths = {0};
  fused.linear.adapter_rank = 0;
  fused.linear.parameters.clear();
  fused.split = {.kind = OperatorKind::kSplit, .name = fused.linear.name};
  for (const std::size_t number : three) {
    const Operator& op = block.operators[number];
    fused.linear.widths.front() += op.widths.front();
    fused.linear.adapter = op.adapter == AdapterForm::kNone ? fused.linear.adapter : op.adapter;
    fused.linear.adapter_rank += op.adapter_rank;
    fused.linear.adapter_dropout = fused.linear.adapter_dropout || op.adapter_dropout;
    fused.split.widths.push_back(op.widths.front());
    fused.split.outputs.push_back(op.outputs.front());
    for (const ParameterUse& use : op.parameters) {
      const Parameter& part = ParameterOf(block, use);
      AddRows(fused.parameters, part, std::string_view(part.name).substr(op.name.size()),
              fused.linear.name);
      fused.replaced[static_cast<std::size_t>(use.parameter)] = true;
    }
  }
  return fused;
}

Value NewValue(const Block& block) {
  Value last = 0;
  for (const Operator& op : block.operators) {
    for (const Value output : op.outputs) {
      last = std::max(last, output);
    }
  }
  return last + 1;
}

// The fused parameters come first, the others move behind them.
void PutParameters(Block& block, const Fused& fused, Operator& linear) {
  std::vector<Parameter> parameters;
  for (const std::string_view suffix : kSuffixes) {
    if (const auto part = fused.parameters.find(std::string(suffix));
        part != fused.parameters.end()) {
      linear.parameters.push_back({.parameter = static_cast<std::int32_t>(parameters.size())});
      parameters.push_back(part->second);
    }
  }
  std::vector<std::int32_t> places(block.parameters.size());
  for (std::size_t i = 0; i < block.parameters.size(); ++i) {
    places[i] = static_cast<std::int32_t>(parameters.size());
    if (!fused.replaced[i]) {
      parameters.push_back(std::move(block.parameters[i]));
    }
  }
  for (Operator& op : block.operators) {
    for (ParameterUse& use : op.parameters) {
      use.parameter =
          use.block < 0 ? places[static_cast<std::size_t>(use.parameter)] : use.parameter;
    }
  }
  block.parameters = std::move(parameters);
}

void Fuse(Block& block, const ThreeOperators& three) {
  Fused fused = FusedOf(block, three);
  const Value whole = NewValue(block);
  fused.linear.outputs = {whole};
  fused.split.inputs = {whole};
  PutParameters(block, fused, fused.linear);
  std::vector<Operator> operators;
  operators.reserve(block.operators.size());
  for (std::size_t i = 0; i < block.operators.size(); ++i) {
    if (i == three.front()) {
      operators.push_back(fused.linear);
      operators.push_back(fused.split);
    } else if (i != three[1] && i != three[2]) {
      operators.push_back(std::move(block.operators[i]));
    }
  }
  block.operators = std::move(operators);
}

}  // namespace

Network WithFusedAttention(Network network) {
  for (Block& block : network.blocks) {
    if (const std::optional<ThreeOperators> three = FindThree(block); three && IsNumbered(block)) {
      Fuse(block, *three);
    }
  }
  return network;
}

}  // namespace fourpiles
