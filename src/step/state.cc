#include "step/state.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/try.h"
#include "formats/storage.h"

namespace fourpiles {
namespace {

constexpr std::string_view kShardSource =
    "Rajbhandari et al. 2020, ZeRO, arXiv 1910.02054, section 5; padded to equal shares";

// A storage of exactly so many elements; `storage` has the rest.
Result<Storage> Sized(Storage storage, Checked elements, const NumberFormat& format) {
  const Checked bytes = StorageBytes(elements, format);
  if (!bytes.ok()) {
    return WrongUsage({.where = "budget",
                       .found = storage.what + " passes 2^53 bytes",
                       .expected = "expected less",
                       .hint = "check the parameter count"});
  }
  storage.format = format.name;
  storage.elements = Elements(elements.value());
  storage.bytes = Exactly(Bytes(bytes.value()));
  return storage;
}

// One of `ranks` equal shares of a flattened pile, or all of it.
Result<Storage> Share(Storage storage, std::int64_t whole, std::int64_t ranks,
                      const NumberFormat& format) {
  if (ranks > 1) {
    storage.formula = fmt::format("{} ÷ {} ranks", storage.formula, ranks);
    storage.source = kShardSource;
  }
  return Sized(std::move(storage), DivideRoundingUp(Checked(whole), ranks), format);
}

std::string TensorName(const std::string& block, const std::string& parameter) {
  return block.empty() ? parameter : block + "." + parameter;
}

// "model.layers.{0..31}.mlp.up_proj.weight".
std::string PatternName(const Block& block, const Parameter& parameter) {
  std::string name = block.name;
  const std::size_t place = name.find("{}");
  if (place != std::string::npos && block.repeat == 1) {
    name = WithNumber(name, block.first);
  } else if (place != std::string::npos) {
    name.replace(place, 2, fmt::format("{{{}..{}}}", block.first, block.first + block.repeat - 1));
  }
  return TensorName(name, parameter.name);
}

// "32 layers × 8 experts × 4096 × 14336".
std::string ShapeFormula(const Block& block, const Parameter& parameter) {
  return (block.repeat > 1 ? fmt::format("{} layers × ", block.repeat) : "") +
         (parameter.copies > 1 ? fmt::format("{} experts × ", parameter.copies) : "") +
         fmt::format("{}", fmt::join(parameter.shape, " × "));
}

std::string ParametersFormula(const Network& network) {
  return fmt::format("{} trainable parameters", TrainableParameterCount(network));
}

}  // namespace

Result<std::vector<Storage>> WeightStorages(const Network& network, const NumberFormat& format,
                                            std::int64_t ranks) {
  std::vector<Storage> storages;
  if (ranks > 1) {
    const std::int64_t whole = ParameterCount(network);
    TRY(Storage share, Share({.what = "weights, this rank's share",
                              .pile = Pile::kWeights,
                              .formula = fmt::format("{} parameters", whole)},
                             whole, ranks, format));
    storages.push_back(std::move(share));
    return storages;
  }
  for (const Block& block : network.blocks) {
    for (const Parameter& parameter : block.parameters) {
      TRY(Storage storage, Sized({.what = PatternName(block, parameter),
                                  .pile = Pile::kWeights,
                                  .formula = ShapeFormula(block, parameter),
                                  .source = "shapes of the architecture",
                                  .pattern = TensorName(block.name, parameter.name)},
                                 Checked(ElementsOf(parameter)) * block.repeat, format));
      storages.push_back(std::move(storage));
    }
  }
  return storages;
}

Result<Storage> GradientStorage(const Network& network, const Recipe& recipe, std::int64_t ranks) {
  return Share({.what = "gradients",
                .pile = Pile::kGradients,
                .formula = ParametersFormula(network),
                .source = recipe.source},
               TrainableParameterCount(network), ranks, recipe.gradients);
}

Result<std::vector<Storage>> OptimizerStorages(const Network& network, const Recipe& recipe,
                                               const Optimizer& optimizer, std::int64_t ranks) {
  const std::int64_t whole = TrainableParameterCount(network);
  std::vector<Storage> storages;
  const auto add = [&](const std::string& what, const NumberFormat& format,
                       const std::string& source) -> Result<void> {
    TRY(Storage storage, Share({.what = what,
                                .pile = Pile::kOptimizerState,
                                .formula = ParametersFormula(network),
                                .source = source},
                               whole, ranks, format));
    storages.push_back(std::move(storage));
    return {};
  };
  if (recipe.master) {
    TRY_VOID(add("master copy of the weights", *recipe.master, recipe.source));
  }
  for (const OptimizerState& state : optimizer.states) {
    TRY_VOID(add(optimizer.names.id + " " + state.name, state.format.value_or(recipe.states),
                 optimizer.source));
  }
  return storages;
}

}  // namespace fourpiles
