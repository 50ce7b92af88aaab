#include "model/modules.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/nearest_name.h"
#include "model/adapter.h"
#include "model/module_pattern.h"

namespace fourpiles {
namespace {

constexpr std::string_view kWeight = "weight";
constexpr std::string_view kTiedOutput = "lm_head";

std::size_t Index(std::int32_t number) {
  return static_cast<std::size_t>(number);
}

void AddOnce(std::vector<Module>& modules, Module module) {
  const bool is_new = std::ranges::none_of(modules, [&](const Module& other) {
    return other.name == module.name && other.kind == module.kind;
  });
  if (is_new) {
    modules.push_back(std::move(module));
  }
}

// Norms of heads with weights of their own are matrices too.
std::vector<Module> ModulesByShape(const Block& block) {
  std::vector<Module> modules;
  for (std::size_t i = 0; i < block.parameters.size(); ++i) {
    const Parameter& parameter = block.parameters[i];
    const std::string_view module = OwnerOf(parameter.name);
    const bool is_matrix = LastPart(parameter.name) == kWeight && !parameter.routed &&
                           parameter.shape.size() == 2 && !module.ends_with("norm");
    if (is_matrix) {
      const bool embeds = EmbedsByName(FullName(block, block.first, module));
      const LinearSize size = {.out = parameter.shape[embeds ? 1 : 0],
                               .in = parameter.shape[embeds ? 0 : 1]};
      AddOnce(modules, {.name = std::string(module),
                        .kind = embeds ? ModuleKind::kEmbedding : ModuleKind::kLinear,
                        .size = size,
                        .weight = {.parameter = static_cast<std::int32_t>(i)}});
    }
  }
  return modules;
}

// An output layer in a block of its own, whose parameters stand elsewhere.
bool IsTiedOutput(const Block& block) {
  return block.operators.size() == 1 && block.operators.front().kind == OperatorKind::kLoss &&
         !block.operators.front().parameters.empty() &&
         block.operators.front().parameters.front().block >= 0;
}

std::optional<ModuleKind> KindOf(const Operator& op) {
  switch (op.kind) {
    case OperatorKind::kLinear:
      return ModuleKind::kLinear;
    case OperatorKind::kEmbedding:
      return ModuleKind::kEmbedding;
    case OperatorKind::kLoss:
      return op.parameters.empty() ? std::nullopt : std::optional(ModuleKind::kOutput);
    default:
      return std::nullopt;
  }
}

// The weight of GPT-2's Conv1D is (in, out), so what the operator puts out tells the two apart.
std::vector<Module> ModulesByOperator(const Network& network, const Block& block) {
  std::vector<Module> modules;
  for (const Operator& op : block.operators) {
    const std::optional<ModuleKind> kind = KindOf(op);
    if (!kind) {
      continue;
    }
    const ParameterUse& use = op.parameters.front();
    const bool tied = use.block >= 0;
    if (tied && !IsTiedOutput(block)) {
      continue;
    }
    const Block& owner = tied ? network.blocks[Index(use.block)] : block;
    const Parameter& weight = owner.parameters[Index(use.parameter)];
    if (LastPart(weight.name) == kWeight && !weight.routed) {
      const std::int64_t out = op.widths.front();
      AddOnce(modules, {.name = tied ? "" : std::string(OwnerOf(weight.name)),
                        .kind = *kind,
                        .size = {.out = out, .in = ElementsOf(weight) / out},
                        .weight = use});
    }
  }
  return modules;
}

}  // namespace

std::vector<Module> ModulesOf(const Network& network, const Block& block) {
  return block.operators.empty() ? ModulesByShape(block) : ModulesByOperator(network, block);
}

bool Runs(const Operator& op, const Module& module) {
  return KindOf(op) == module.kind && op.parameters.front() == module.weight;
}

std::string FullName(const Block& block, std::int64_t number, std::string_view inner) {
  const std::string name = WithNumber(block.name, number);
  if (name.empty() || inner.empty()) {
    return name + std::string(inner);
  }
  return fmt::format("{}.{}", name, inner);
}

bool EmbedsByName(std::string_view module) {
  const std::string_view name = LastPart(module);
  return name.find("embed") != std::string_view::npos || name == "wte" || name == "wpe";
}

std::string_view LastPart(std::string_view name) {
  return name.substr(name.rfind('.') + 1);  // npos + 1 is 0
}

std::string_view OwnerOf(std::string_view parameter) {
  const std::size_t dot = parameter.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : parameter.substr(0, dot);
}

namespace {

// Where the last operator is an output layer that is tied: the name it would have.
std::optional<std::string> TiedOutput(const Network& network) {
  if (network.blocks.empty() || network.blocks.back().operators.empty()) {
    return std::nullopt;
  }
  const Block& block = network.blocks.back();
  const Operator& op = block.operators.back();
  const bool tied =
      op.kind == OperatorKind::kLoss && !op.parameters.empty() && op.parameters.front().block >= 0;
  if (!tied || block.operators.size() == 1) {  // it has one already
    return std::nullopt;
  }
  return op.name.empty() ? std::string(kTiedOutput) : FullName(block, block.first, op.name);
}

bool IsNamed(std::span<const std::string> patterns, std::string_view module) {
  return std::ranges::any_of(
      patterns, [&](const std::string& pattern) { return NamesModule(pattern, module); });
}

}  // namespace

void GiveTiedOutputABlock(Network& network, std::span<const std::string> patterns) {
  const std::optional<std::string> name = TiedOutput(network);
  if (!name || !IsNamed(patterns, *name)) {
    return;
  }
  const auto old = static_cast<std::int32_t>(network.blocks.size() - 1);
  Operator op = std::move(network.blocks.back().operators.back());
  network.blocks.back().operators.pop_back();
  for (ParameterUse& use : op.parameters) {
    use.block = use.block < 0 ? old : use.block;
  }
  op.inputs = {0};
  op.outputs = {1};
  network.blocks.push_back({.name = *name, .operators = {std::move(op)}});
}

namespace {

using Likeness = std::function<std::string(const Block& block, std::int64_t number)>;

void AppendParts(std::vector<Block>& parts, const Block& block, const Likeness& likeness) {
  std::string of_part;
  for (std::int64_t number = block.first; number < block.first + block.repeat; ++number) {
    std::string of_layer = likeness(block, number);
    if (number == block.first || of_layer != of_part) {
      parts.push_back(block);
      parts.back().first = number;
      parts.back().repeat = 0;
      of_part = std::move(of_layer);
    }
    ++parts.back().repeat;
  }
}

}  // namespace

void PartLayers(Network& network, const Likeness& likeness) {
  std::vector<Block> parts;
  std::vector<std::int32_t> first_parts;  // of each block
  for (const Block& block : network.blocks) {
    first_parts.push_back(static_cast<std::int32_t>(parts.size()));
    AppendParts(parts, block, likeness);
  }
  for (Block& block : parts) {
    for (Operator& op : block.operators) {
      for (ParameterUse& use : op.parameters) {
        use.block = use.block < 0 ? use.block : first_parts[Index(use.block)];
      }
    }
  }
  network.blocks = std::move(parts);
}

namespace {

// Pattern by pattern whether it names the module: "0101".
std::string NamedBy(std::span<const std::string> patterns, std::string_view module) {
  std::string named;
  for (const std::string& pattern : patterns) {
    named += pattern != kAllLinear && NamesModule(pattern, module) ? '1' : '0';
  }
  return named;
}

// Last parts of names that a person may give, each once, in the order of the forward pass.
struct Names {
  std::vector<std::string> linear = {};  // of the layers
  std::vector<std::string> others = {};
};

void AddName(std::vector<std::string>& names, std::string_view name) {
  if (std::ranges::find(names, LastPart(name)) == names.end()) {
    names.emplace_back(LastPart(name));
  }
}

Names NamesOf(const Network& network) {
  Names names;
  for (const Block& block : network.blocks) {
    for (const Module& module : ModulesOf(network, block)) {
      const bool of_layer = IsNumbered(block) && module.kind == ModuleKind::kLinear;
      AddName(of_layer ? names.linear : names.others, FullName(block, block.first, module.name));
    }
  }
  if (const std::optional<std::string> tied = TiedOutput(network)) {
    AddName(names.others, *tied);
  }
  return names;
}

tl::unexpected<Error> NoModule(const Network& network, std::string_view what,
                               std::string_view pattern, std::string_view where) {
  const Names names = NamesOf(network);
  if (names.linear.empty()) {
    return WrongUsage({.where = std::string(where),
                       .found = "the model has no linear layers that are known",
                       .expected = "expected a model with layers",
                       .hint = "a bare parameter count has none; give a model"});
  }
  std::vector<std::string_view> all(names.linear.begin(), names.linear.end());
  all.insert(all.end(), names.others.begin(), names.others.end());
  const bool is_name = pattern.find_first_of("*?") == std::string_view::npos;
  std::string hint = fmt::format("linear layers: {}", fmt::join(names.linear, ", "));
  if (!names.others.empty()) {
    hint += fmt::format("; beside them: {}", fmt::join(names.others, ", "));
  }
  return WrongUsage(
      {.where = std::string(where),
       .found = fmt::format("no {} {} \"{}\"", what, is_name ? "is called" : "matches", pattern),
       .expected = DidYouMean(pattern, all),
       .hint = std::move(hint)});
}

bool AsksForAll(std::span<const std::string> patterns) {
  return patterns.empty() || std::ranges::find(patterns, kAllLinear) != patterns.end();
}

bool IsOfLayers(const Block& block, const Module& module) {
  return IsNumbered(block) && module.kind == ModuleKind::kLinear;
}

// The first pattern that names no module; "" where there are no linear layers to begin with.
std::optional<std::string_view> NamingNothing(const Network& network,
                                              std::span<const std::string> patterns) {
  std::vector<bool> used(patterns.size());
  bool any_linear = false;
  for (const Block& block : network.blocks) {
    for (const Module& module : ModulesOf(network, block)) {
      any_linear = any_linear || IsOfLayers(block, module);
      const std::string named = NamedBy(patterns, FullName(block, block.first, module.name));
      for (std::size_t i = 0; i < used.size(); ++i) {
        used[i] = used[i] || named[i] == '1' || patterns[i] == kAllLinear;
      }
    }
  }
  const auto unused = std::ranges::find(used, false);
  if (!any_linear && (AsksForAll(patterns) || unused != used.end())) {
    return "";
  }
  return unused == used.end() ? std::nullopt
                              : std::optional<std::string_view>(
                                    patterns[static_cast<std::size_t>(unused - used.begin())]);
}

}  // namespace

Result<std::vector<ChosenModule>> ChooseModules(Network& network,
                                                std::span<const std::string> patterns,
                                                std::string_view where) {
  GiveTiedOutputABlock(network, patterns);
  PartLayers(network, [&](const Block& block, std::int64_t number) {
    std::string likeness;
    for (const Module& module : ModulesOf(network, block)) {
      likeness += NamedBy(patterns, FullName(block, number, module.name));
    }
    return likeness;
  });
  if (const std::optional<std::string_view> pattern = NamingNothing(network, patterns)) {
    return NoModule(network, "linear layer", *pattern, where);
  }
  const bool all_linear = AsksForAll(patterns);
  std::vector<ChosenModule> chosen;
  for (std::size_t number = 0; number < network.blocks.size(); ++number) {
    const Block& block = network.blocks[number];
    for (Module& module : ModulesOf(network, block)) {
      const std::string named = NamedBy(patterns, FullName(block, block.first, module.name));
      if ((all_linear && IsOfLayers(block, module)) || named.find('1') != std::string::npos) {
        chosen.push_back({number, std::move(module)});
      }
    }
  }
  return chosen;
}

namespace {

bool IsCopied(std::span<const std::string> patterns, const Block& block, std::int64_t number,
              const Parameter& parameter) {
  const std::string module = FullName(block, number, OwnerOf(WithNumber(parameter.name, 0)));
  return std::ranges::any_of(
      patterns, [&](const std::string& pattern) { return NamesPart(pattern, module); });
}

constexpr std::string_view kModulesToSave = "modules_to_save";

Parameter TrainedCopy(const Parameter& original, std::string_view name) {
  Parameter copy = original;
  const std::string_view module = OwnerOf(original.name);
  copy.name =
      fmt::format("{}{}{}.{}", module, module.empty() ? "" : ".", name, LastPart(original.name));
  copy.trainable = true;
  return copy;
}

}  // namespace

void AddTrainedCopies(Block& block, std::span<const std::size_t> parameters,
                      std::string_view name) {
  for (const std::size_t original : parameters) {
    const auto copy = static_cast<std::int32_t>(block.parameters.size());
    block.parameters.push_back(TrainedCopy(block.parameters[original], name));
    block.parameters[original].trainable = false;
    for (Operator& op : block.operators) {
      std::ranges::replace(op.parameters,
                           ParameterUse{.parameter = static_cast<std::int32_t>(original)},
                           ParameterUse{.parameter = copy});
    }
  }
}

namespace {

void CopyTied(Network& network, Block& block) {
  for (ParameterUse& use : block.operators.front().parameters) {
    const Parameter& original = network.blocks[Index(use.block)].parameters[Index(use.parameter)];
    Parameter copy = TrainedCopy(original, kModulesToSave);
    copy.name = fmt::format("{}.{}", kModulesToSave, LastPart(original.name));
    use = {.parameter = static_cast<std::int32_t>(block.parameters.size())};
    block.parameters.push_back(std::move(copy));
  }
}

std::vector<std::size_t> CopiedOf(std::span<const std::string> patterns, const Block& block) {
  std::vector<std::size_t> copied;
  for (std::size_t i = 0; i < block.parameters.size(); ++i) {
    if (IsCopied(patterns, block, block.first, block.parameters[i])) {
      copied.push_back(i);
    }
  }
  return copied;
}

bool NamesCopied(const std::string& pattern, const Block& block) {
  return !CopiedOf({&pattern, 1}, block).empty() ||
         (IsTiedOutput(block) && NamesModule(pattern, block.name));
}

}  // namespace

Result<void> AddTrainedCopies(Network& network, std::span<const std::string> patterns,
                              std::string_view where) {
  GiveTiedOutputABlock(network, patterns);
  PartLayers(network, [&](const Block& block, std::int64_t number) {
    std::string likeness;
    for (const Parameter& parameter : block.parameters) {
      likeness += IsCopied(patterns, block, number, parameter) ? '1' : '0';
    }
    return likeness;
  });
  for (const std::string& pattern : patterns) {
    const bool found = std::ranges::any_of(
        network.blocks, [&](const Block& block) { return NamesCopied(pattern, block); });
    if (!found) {
      return NoModule(network, "module", pattern, where);
    }
  }
  for (Block& block : network.blocks) {
    if (IsTiedOutput(block) && IsNamed(patterns, block.name)) {
      CopyTied(network, block);
    } else {
      AddTrainedCopies(block, CopiedOf(patterns, block), kModulesToSave);
    }
  }
  return {};
}

}  // namespace fourpiles
