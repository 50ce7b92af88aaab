#include "step/state.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/try.h"
#include "formats/storage.h"
#include "step/memory.h"
#include "step/optimizer_state.h"

namespace fourpiles {
namespace {

constexpr std::string_view kShardSource =
    "Rajbhandari et al. 2020, ZeRO, arXiv 1910.02054, section 5; padded to equal shares";

// A storage of exactly so many elements.
Result<Storage> Sized(Pile pile, Checked elements, const ElementType& type,
                      const std::string& what) {
  const Checked bytes = StorageBytes(elements, type.bits);
  if (!bytes.ok()) {
    return WrongUsage(
        {.where = "budget",
         .found = what + " passes 2^53 bytes",
         .expected = "expected less",
         .hint = "check the parameter count, the batch size and the sequence length"});
  }
  return Storage{.pile = pile,
                 .format = type.name,
                 .elements = Elements(elements.value()),
                 .bytes = Exactly(Bytes(bytes.value()))};
}

// One of `ranks` equal shares of a flattened pile, or all of it.
struct Share {
  Pile pile = Pile::kWeights;
  std::int64_t elements = 0;
  ElementType type = {};
  std::int64_t ranks = 1;
  Place place = Place::kDevice;
};
Result<void> AddShare(Resident& resident, const Share& share, StorageText text) {
  if (share.elements == 0) {
    return {};
  }
  if (share.ranks > 1) {
    text.formula = fmt::format("{} ÷ {} ranks", text.formula, share.ranks);
    text.source = kShardSource;
  }
  TRY(Storage storage, Sized(share.pile, DivideRoundingUp(Checked(share.elements), share.ranks),
                             share.type, text.what));
  storage.place = share.place;
  resident.Add(storage, std::move(text));
  return {};
}

// The matrices of the layers, which are those that linear modules multiply by.
struct LayerMatrices {
  std::int64_t tensors = 0;
  std::int64_t elements = 0;
};
LayerMatrices MatricesOf(const Network& network) {
  LayerMatrices matrices;
  for (const Block& block : network.blocks) {
    for (const Parameter& parameter : block.parameters) {
      if (IsNumbered(block) && parameter.shape.size() >= 2) {
        matrices.tensors += parameter.copies * block.repeat;
        matrices.elements += ElementsOf(parameter) * block.repeat;
      }
    }
  }
  return matrices;
}

// Trainable elements, apart those that are kept in float32 whatever the recipe says.
struct Counts {
  std::int64_t by_recipe = 0;
  std::int64_t float32 = 0;
};
Counts TrainableCounts(const Network& network) {
  Counts counts;
  for (const Block& block : network.blocks) {
    for (const Parameter& parameter : block.parameters) {
      if (parameter.trainable) {
        (parameter.float32 ? counts.float32 : counts.by_recipe) +=
            ElementsOf(parameter) * block.repeat;
      }
    }
  }
  return counts;
}

// The parameters of routed experts, or all others; what they compute is left out.
Network Parameters(const Network& network, bool routed) {
  Network some = network;
  for (Block& block : some.blocks) {
    block.operators.clear();
    std::erase_if(block.parameters,
                  [&](const Parameter& parameter) { return parameter.routed != routed; });
  }
  return some;
}

// Calls it for the whole network, or where experts are divided by others, for each of both.
template <class AddSome>
Result<void> ForEachShare(const Network& network, const ShardRanks& ranks, AddSome add) {
  if (ranks.dense == ranks.experts) {
    return add(network, ranks.dense);
  }
  TRY_VOID(add(Parameters(network, false), ranks.dense));
  return add(Parameters(network, true), ranks.experts);
}

// Two shares, where some parameters are kept in float32.
Result<void> AddTrainable(Resident& resident, const Network& network, Share share,
                          StorageText text) {
  const Counts counts = TrainableCounts(network);
  text.formula = fmt::format("{} trainable parameters", counts.by_recipe);
  share.elements = counts.by_recipe;
  TRY_VOID(AddShare(resident, share, text));
  text.formula = fmt::format("{} trainable parameters in float32", counts.float32);
  share.elements = counts.float32;
  share.type = kFloat32;
  return AddShare(resident, share, std::move(text));
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

}  // namespace

std::string_view Name(StepKernels kernels) {
  switch (kernels) {
    case StepKernels::kLoop:
      return "loop";
    case StepKernels::kForeach:
      return "foreach";
    case StepKernels::kInBackward:
      return "in-backward";
    case StepKernels::kFused:
      break;
  }
  return "fused";
}

namespace {

Result<void> AddWeights(Resident& resident, const Network& network, const NumberFormat& format) {
  for (const Block& block : network.blocks) {
    for (const Parameter& parameter : block.parameters) {
      const std::string name = PatternName(block, parameter);
      TRY(const Storage storage,
          Sized(Pile::kWeights, Checked(ElementsOf(parameter)) * block.repeat,
                parameter.float32 ? kFloat32 : TypeOf(format), name));
      resident.Add(storage, {.what = name,
                             .formula = ShapeFormula(block, parameter),
                             .source = "shapes of the architecture"});
    }
  }
  return {};
}

}  // namespace

Result<Resident> WeightStorages(const Network& network, const NumberFormat& format,
                                const ShardRanks& ranks) {
  Resident resident;
  TRY_VOID(ForEachShare(network, ranks, [&](const Network& some, std::int64_t shares) {
    if (shares == 1) {
      return AddWeights(resident, some, format);
    }
    const std::int64_t whole = ParameterCount(some);
    return AddShare(
        resident,
        {.pile = Pile::kWeights, .elements = whole, .type = TypeOf(format), .ranks = shares},
        {.what = "weights, this rank's share", .formula = fmt::format("{} parameters", whole)});
  }));
  return resident;
}

Result<Resident> BufferStorages(const Network& network, const NumberFormat& format) {
  Resident resident;
  for (const Buffer& buffer : network.buffers) {
    const ElementType type =
        buffer.bits == 0 ? TypeOf(format) : ElementType{.name = "buffer", .bits = buffer.bits};
    TRY(const Storage storage, Sized(Pile::kWeights, buffer.elements, type, buffer.name));
    resident.Add(storage, {.what = buffer.name,
                           .formula = fmt::format("{}", buffer.elements),
                           .source = "a buffer of the module"});
  }
  return resident;
}

// Worked: a matrix of 4096 × 4096 with its transpose takes 2 × 16 MiB, and its five tensors (input,
// weight, output, two gradients) with a history of 1024 and two scales 5 × 1026 × 4 bytes.
Result<Resident> ScalingStorages(const Network& network, const Recipe& recipe) {
  constexpr ElementType kFloat8 = {"float8_e4m3fn", 8};
  constexpr std::int64_t kTensorsOfProduct = 5;
  Resident resident;
  const LayerMatrices matrices = MatricesOf(network);
  TRY_VOID(AddShare(resident,
                    {.pile = Pile::kActivations,
                     .elements = matrices.elements * recipe.float8_copies,
                     .type = kFloat8},
                    {.what = "float8 copies of weights",
                     .formula = fmt::format("{} × {} elements of the layers' matrices",
                                            recipe.float8_copies, matrices.elements),
                     .source = recipe.source}));
  const std::int64_t numbers = recipe.amax_history > 0 ? recipe.amax_history + 2 : 0;
  TRY_VOID(AddShare(resident,
                    {.pile = Pile::kWeights,
                     .elements = matrices.tensors * kTensorsOfProduct * numbers,
                     .type = kFloat32},
                    {.what = "histories and scales of float8 tensors",
                     .formula = fmt::format("{} matrices × {} tensors × {}", matrices.tensors,
                                            kTensorsOfProduct, numbers),
                     .source = recipe.source}));
  TRY_VOID(
      AddShare(resident,
               {.pile = Pile::kWorkspace, .elements = recipe.loss_scaler ? 3 : 0, .type = kFloat32},
               {.what = "scaler of the loss",
                .formula = "scale, growth tracker, found_inf",
                .source = recipe.source}));
  return resident;
}

Result<Resident> GradientStorage(const Network& network, const Recipe& recipe,
                                 const ShardRanks& ranks) {
  Resident resident;
  TRY_VOID(ForEachShare(network, ranks, [&](const Network& some, std::int64_t shares) {
    return AddTrainable(
        resident, some,
        {.pile = Pile::kGradients, .type = TypeOf(recipe.gradients), .ranks = shares},
        {.what = "gradients", .source = recipe.source});
  }));
  return resident;
}

namespace {

Result<void> AddStates(Resident& resident, const Network& network, const Recipe& recipe,
                       const Optimizer& optimizer, std::int64_t ranks) {
  // What is kept in float32 anyway needs no copy.
  if (const std::int64_t copied = TrainableCounts(network).by_recipe; recipe.master && copied > 0) {
    TRY_VOID(AddShare(resident,
                      {.pile = Pile::kOptimizerState,
                       .elements = copied,
                       .type = TypeOf(*recipe.master),
                       .ranks = ranks},
                      {.what = "master copy of the weights",
                       .formula = fmt::format("{} trainable parameters", copied),
                       .source = recipe.source}));
  }
  for (const OptimizerState& state : optimizer.states) {
    for (const StateAmount& amount : AmountsOf(network, optimizer, state, recipe.states)) {
      TRY_VOID(AddShare(resident,
                        {.pile = Pile::kOptimizerState,
                         .elements = amount.elements,
                         .type = amount.type,
                         .ranks = ranks,
                         .place = amount.place},
                        {.what = optimizer.names.id + " " + amount.what,
                         .formula = fmt::format("{} {}", amount.elements, amount.words),
                         .source = optimizer.source}));
    }
  }
  return {};
}

}  // namespace

Result<Resident> OptimizerStorages(const Network& network, const Recipe& recipe,
                                   const Optimizer& optimizer, const ShardRanks& ranks) {
  Resident resident;
  TRY_VOID(ForEachShare(network, ranks, [&](const Network& some, std::int64_t shares) {
    return AddStates(resident, some, recipe, optimizer, shares);
  }));
  if (optimizer.scalars > 0) {
    const std::int64_t tensors = TrainableTensorCount(network);
    TRY(Storage scalars, Sized(Pile::kOptimizerState, Checked(tensors) * optimizer.scalars,
                               kFloat32, "step counters"));
    scalars.place = Place::kHost;
    resident.Add(scalars, {.what = optimizer.names.id + " step counters",
                           .formula = fmt::format("{} tensors × {}", tensors, optimizer.scalars),
                           .source = optimizer.source});
  }
  return resident;
}

Result<Resident> BatchStorages(const Network& network, const Batch& batch,
                               const NumberFormat& format) {
  Resident resident;
  for (const BatchTensor& tensor : network.batch) {
    const Checked elements = Checked(batch.micro_batch_size) * tensor.elements *
                             (tensor.per_token ? batch.sequence_length : 1);
    const ElementType plain = tensor.float32 ? kFloat32 : TypeOf(format);
    TRY(const Storage storage,
        Sized(Pile::kActivations, elements, tensor.indices ? kInt64 : plain, tensor.name));
    resident.Add(storage,
                 {.what = tensor.name + " of the batch",
                  .formula = fmt::format(
                      "{} samples{} × {}", batch.micro_batch_size,
                      tensor.per_token ? fmt::format(" × {} tokens", batch.sequence_length) : "",
                      tensor.elements),
                  .source = "what a step is given"});
  }
  return resident;
}

Result<Bytes> StepTemporaries(const Network& network, const Optimizer& optimizer,
                              const NumberFormat& format, StepKernels kernels,
                              const ShardRanks& ranks) {
  Checked elements = 0;
  if (kernels == StepKernels::kForeach && optimizer.foreach_temporaries) {
    TRY_VOID(ForEachShare(network, ranks, [&](const Network& some, std::int64_t shares) {
      elements = elements + DivideRoundingUp(Checked(TrainableParameterCount(some)), shares) *
                                *optimizer.foreach_temporaries;
      return Result<void>();
    }));
  } else if (kernels != StepKernels::kFused) {
    elements = Checked(LargestTrainableTensor(network)) * optimizer.loop_temporaries;
  }
  // Those of a step that is made in a format of its own have that format; of codes, float32.
  const bool coded = !optimizer.states.empty() && optimizer.states.front().scales.block > 0;
  const bool own = !coded && !optimizer.states.empty();
  const ElementType plain = TypeOf(own ? optimizer.states.front().format.value_or(format) : format);
  const ElementType type = coded ? kFloat32 : plain;
  TRY(const Storage storage,
      Sized(Pile::kWorkspace, elements, type, "the optimizer's temporaries"));
  return storage.bytes.expected;
}

}  // namespace fourpiles
