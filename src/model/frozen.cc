#include "model/frozen.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/nearest_name.h"
#include "base/try.h"
#include "model/module_pattern.h"
#include "model/modules.h"
#include "units/parse.h"

namespace fourpiles {
namespace {

constexpr std::string_view kLast = "last:";
constexpr std::string_view kAllButLast = "all-but-last:";

// A parameter of one layer.
struct Place {
  std::size_t block = 0;
  std::int64_t number = 0;  // of the layer
  std::size_t parameter = 0;
};
using Holds = std::function<bool(const Network& network, const Place& place)>;

const Block& BlockOf(const Network& network, const Place& place) {
  return network.blocks[place.block];
}

const Parameter& ParameterOf(const Network& network, const Place& place) {
  return BlockOf(network, place).parameters[place.parameter];
}

std::string ModuleNameOf(const Network& network, const Place& place) {
  return FullName(BlockOf(network, place), place.number,
                  OwnerOf(WithNumber(ParameterOf(network, place).name, 0)));
}

// Parameters, by the numbers of their blocks and their own.
using ParameterSet = std::set<std::pair<std::size_t, std::size_t>>;

// Those that operators of these kinds read, in whatever block they are.
ParameterSet ReadBy(const Network& network, std::span<const OperatorKind> kinds) {
  ParameterSet read;
  for (std::size_t number = 0; number < network.blocks.size(); ++number) {
    for (const Operator& op : network.blocks[number].operators) {
      if (std::ranges::find(kinds, op.kind) == kinds.end()) {
        continue;
      }
      for (const ParameterUse& use : op.parameters) {
        read.emplace(use.block < 0 ? number : static_cast<std::size_t>(use.block),
                     static_cast<std::size_t>(use.parameter));
      }
    }
  }
  return read;
}

// By what reads them, or where the operators of a block are not described by what they are called.
Holds Embeddings(const Network& network) {
  constexpr OperatorKind kKinds[] = {OperatorKind::kEmbedding, OperatorKind::kPositions,
                                     OperatorKind::kTokenTypes};
  return [read = ReadBy(network, kKinds)](const Network& of, const Place& place) {
    return BlockOf(of, place).operators.empty() ? EmbedsByName(ModuleNameOf(of, place))
                                                : read.contains({place.block, place.parameter});
  };
}

Holds Head(const Network& network) {
  constexpr OperatorKind kKinds[] = {OperatorKind::kLoss};
  return [read = ReadBy(network, kKinds)](const Network& of, const Place& place) {
    constexpr std::string_view kNames[] = {"lm_head", "embed_out", "output"};
    const bool is_read = read.contains({place.block, place.parameter});
    if (is_read || !BlockOf(of, place).operators.empty()) {
      return is_read;
    }
    const std::string module = ModuleNameOf(of, place);
    return std::ranges::any_of(kNames,
                               [&](std::string_view name) { return NamesModule(name, module); });
  };
}

Holds Vision(const Network&) {
  return [](const Network& of, const Place& place) {
    const std::string name =
        FullName(BlockOf(of, place), place.number, ParameterOf(of, place).name);
    return NamesPart("*vision*", name) || NamesPart("*visual*", name);
  };
}

Holds Norms(const Network&) {
  return [](const Network& of, const Place& place) {
    return IsOfNorm(BlockOf(of, place), place.parameter);
  };
}

Holds Biases(const Network&) {
  return [](const Network& of, const Place& place) { return IsBias(ParameterOf(of, place)); };
}

struct Word {
  std::string_view word = {};
  Holds (*holds)(const Network& network) = nullptr;
};
constexpr Word kWords[] = {{"embeddings", Embeddings},
                           {"head", Head},
                           {"vision", Vision},
                           {"norms", Norms},
                           {"biases", Biases}};

// The layers of the last stack: of a model that sees, those of the text.
struct Stack {
  std::string name = {};
  std::int64_t layers = 0;
  std::size_t first_block = 0;
};

Stack LastStack(const Network& network) {
  Stack stack;
  for (std::size_t i = 0; i < network.blocks.size(); ++i) {
    const Block& block = network.blocks[i];
    if (IsNumbered(block)) {
      if (block.name != stack.name) {
        stack = {.name = block.name, .first_block = i};
      }
      stack.layers = block.first + block.repeat;
    }
  }
  return stack;
}

// "last:4" and "all-but-last:4".
Result<Holds> LayersOf(const Network& network, std::string_view part, std::string_view where) {
  const bool before = part.starts_with(kAllButLast);
  const Stack stack = LastStack(network);
  if (stack.layers == 0) {
    return WrongUsage({.where = std::string(where),
                       .found = fmt::format("the model has no layers for \"{}\"", part),
                       .expected = "expected a model with layers",
                       .hint = "a pattern of names will do"});
  }
  TRY(const std::int64_t last,
      ParseCount(part.substr(part.find(':') + 1), where, {1, stack.layers}));
  const std::int64_t first = stack.layers - last;
  return Holds([stack, first, before](const Network& of, const Place& place) {
    const bool in_stack = BlockOf(of, place).name == stack.name;
    const bool is_before = in_stack ? place.number < first : place.block < stack.first_block;
    return before ? is_before : in_stack && !is_before;
  });
}

Result<Holds> HoldsOf(const Network& network, const std::string& part, std::string_view where) {
  const auto* const word = std::ranges::find(kWords, part, &Word::word);
  if (word != std::end(kWords)) {
    return word->holds(network);
  }
  if (part.starts_with(kLast) || part.starts_with(kAllButLast)) {
    return LayersOf(network, part, where);
  }
  return Holds([part](const Network& of, const Place& place) {
    const std::string& name = ParameterOf(of, place).name;
    return NamesPart(part, FullName(BlockOf(of, place), place.number, WithNumber(name, 0)));
  });
}

void ForEachPlace(const Network& network, const std::function<void(const Place& place)>& use) {
  for (std::size_t block = 0; block < network.blocks.size(); ++block) {
    const Block& of = network.blocks[block];
    for (std::int64_t number = of.first; number < of.first + of.repeat; ++number) {
      for (std::size_t parameter = 0; parameter < of.parameters.size(); ++parameter) {
        use({block, number, parameter});
      }
    }
  }
}

bool HasPart(const Network& network, const Holds& holds) {
  bool found = false;
  ForEachPlace(network, [&](const Place& place) { found = found || holds(network, place); });
  return found;
}

// Last parts of the names of modules, each once.
std::vector<std::string> ModuleNames(const Network& network) {
  std::vector<std::string> names;
  for (const Block& block : network.blocks) {
    for (const Parameter& parameter : block.parameters) {
      const std::string name = FullName(block, block.first, WithNumber(parameter.name, 0));
      std::string module(LastPart(OwnerOf(name)));
      if (std::ranges::find(names, module) == names.end()) {
        names.push_back(std::move(module));
      }
    }
  }
  return names;
}

tl::unexpected<Error> NoPart(const Network& network, std::string_view part,
                             std::string_view where) {
  std::vector<std::string_view> known;
  for (const Word& word : kWords) {
    known.push_back(word.word);
  }
  const std::vector<std::string> modules = ModuleNames(network);
  known.insert(known.end(), modules.begin(), modules.end());
  if (modules.empty() || modules == std::vector<std::string>{""}) {
    return WrongUsage({.where = std::string(where),
                       .found = "a bare parameter count has no parts",
                       .expected = "expected a model whose parts have names",
                       .hint = "give a model of the catalogue, or its folder"});
  }
  const bool is_word = std::ranges::find(kWords, part, &Word::word) != std::end(kWords);
  return WrongUsage(
      {.where = std::string(where),
       .found = is_word ? fmt::format("the model has no {}", part)
                        : fmt::format("no part of the model is called \"{}\"", part),
       .expected = is_word ? "expected a part that it has" : DidYouMean(part, known),
       .hint = fmt::format("embeddings, head, vision, norms, biases, last:K, all-but-last:K, or a "
                           "pattern of names: {}",
                           fmt::join(modules, ", "))});
}

// Whether the parts hold each parameter.
Result<Holds> AnyOf(const Network& network, std::span<const std::string> parts,
                    std::string_view where) {
  std::vector<Holds> all;
  for (const std::string& part : parts) {
    TRY(Holds holds, HoldsOf(network, part, where));
    if (!HasPart(network, holds)) {
      return NoPart(network, part, where);
    }
    all.push_back(std::move(holds));
  }
  return Holds([all](const Network& of, const Place& place) {
    return std::ranges::any_of(all, [&](const Holds& holds) { return holds(of, place); });
  });
}

// Freezes those parameters for which `holds` is `frozen`.
Result<Network> WithParts(Network network, std::span<const std::string> parts, bool frozen,
                          std::string_view where) {
  TRY(const Holds holds, AnyOf(network, parts, where));
  std::vector<std::string> stays;  // of each layer, parameter by parameter
  ForEachPlace(network, [&](const Place& place) {
    if (place.parameter == 0) {
      stays.emplace_back();
    }
    stays.back() += holds(network, place) == frozen ? '0' : '1';
  });
  std::size_t layer = 0;
  PartLayers(network, [&](const Block& block, std::int64_t) {
    return block.parameters.empty() ? std::string() : stays[layer++];
  });
  layer = 0;
  for (Block& block : network.blocks) {
    for (std::size_t i = 0; i < block.parameters.size(); ++i) {
      Parameter& parameter = block.parameters[i];
      parameter.trainable = parameter.trainable && stays[layer][i] == '1';
    }
    layer += block.parameters.empty() ? 0 : static_cast<std::size_t>(block.repeat);
  }
  if (TrainableParameterCount(network) == 0) {
    return WrongUsage({.where = std::string(where),
                       .found = "every parameter would be frozen",
                       .expected = "expected some that are trained",
                       .hint = "name fewer parts, or add an adapter: --adapter lora:rank=16"});
  }
  return network;
}

}  // namespace

Result<Network> WithFrozen(Network network, std::span<const std::string> parts,
                           std::string_view where) {
  return WithParts(std::move(network), parts, true, where);
}

Result<Network> WithTrainedOnly(Network network, std::span<const std::string> parts,
                                std::string_view where) {
  return WithParts(std::move(network), parts, false, where);
}

// By its operator, or by what norms are called: "ln_1", "LayerNorm", "norm".
bool IsOfNorm(const Block& block, std::size_t number) {
  const bool is_read = std::ranges::any_of(block.operators, [&](const Operator& op) {
    const bool is_norm = op.kind == OperatorKind::kLayerNorm || op.kind == OperatorKind::kRmsNorm ||
                         op.kind == OperatorKind::kBatchNorm || op.kind == OperatorKind::kGroupNorm;
    const ParameterUse use = {.parameter = static_cast<std::int32_t>(number)};
    return is_norm && std::ranges::find(op.parameters, use) != op.parameters.end();
  });
  std::string module(
      LastPart(FullName(block, block.first, OwnerOf(block.parameters[number].name))));
  std::ranges::transform(module, module.begin(), [](unsigned char letter) {
    return static_cast<char>(std::tolower(letter));
  });
  return is_read || module.find("norm") != std::string::npos || NamesModule("ln_*", module) ||
         NamesModule("ln?", module);
}

bool IsBias(const Parameter& parameter) {
  return LastPart(parameter.name).ends_with("bias");
}

}  // namespace fourpiles
