#include "plan/rank_state.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/try.h"
#include "formats/storage.h"
#include "plan/serving_weights.h"
#include "step/state.h"

namespace fourpiles {
namespace {

// DeepSpeed, runtime/zero/config.py, reduce_bucket_size: elements.
constexpr std::int64_t kZeroBucket = 500'000'000;

void MoveToHost(Resident& resident) {
  for (Storage& storage : resident.storages) {
    storage.place = storage.place == Place::kDevice ? Place::kHostPinned : storage.place;
  }
}

// Coded weights are divided as they lie.
Result<Resident> CodedWeights(const TrainingJob& training, const Network& network,
                              std::int64_t ranks) {
  TRY(Resident weights, SchemeWeights(network, *training.base, training.base_format));
  if (ranks == 1) {
    return weights;
  }
  const Bytes all = DeviceBytes(weights);
  Resident share;
  share.Add({.pile = Pile::kWeights,
             .format = kByte.name,
             .elements = Elements((all.value() + ranks - 1) / ranks),
             .bytes = Exactly(Bytes((all.value() + ranks - 1) / ranks))},
            {.what = "weights, this rank's share",
             .formula = fmt::format("{} bytes of codes, scales and plain weights ÷ {} ranks",
                                    all.value(), ranks),
             .source = "PyTorch, distributed/fsdp: flattened and padded to equal shares"});
  return share;
}

Result<Resident> Weights(const TrainingJob& training, const Network& network) {
  const ShardRanks ranks = SharesOf(training.layout).weights;
  TRY(Resident weights, training.base ? CodedWeights(training, network, ranks.dense)
                                      : WeightStorages(network, training.recipe.weights, ranks));
  if (training.offloads_parameters) {
    MoveToHost(weights);
  }
  return weights;
}

// What training keeps besides: gradients, where they are resident, and the optimizer's states.
Result<Resident> TrainedState(const TrainingJob& training, const Network& network) {
  const Shares shares = SharesOf(training.layout);
  Resident state;
  if (GradientsAreResident(training)) {
    TRY(state, GradientStorage(network, training.recipe, shares.gradients));
    if (training.offloads_parameters) {
      MoveToHost(state);
    }
  }
  TRY(Resident states,
      OptimizerStorages(network, training.recipe, training.optimizer, shares.optimizer_state));
  if (training.offloads_optimizer || training.offloads_parameters) {
    MoveToHost(states);
  }
  state.Append(std::move(states));
  // What the host steps with.
  if (training.offloads_optimizer && !training.offloads_parameters) {
    TRY(Resident sent, GradientStorage(network, training.recipe, shares.optimizer_state));
    for (std::size_t i = 0; i < sent.storages.size(); ++i) {
      sent.texts[i].what = "gradients for the host's step";
    }
    MoveToHost(sent);
    state.Append(std::move(sent));
  }
  return state;
}

// Copies of gradients that are sent in pieces, and stay.
Result<Resident> Buckets(const TrainingJob& training, const Network& network) {
  const Layout& layout = training.layout;
  Resident resident;
  const std::int64_t trained = TrainableParameterCount(network);
  const Framework& framework = training.profile.framework;
  const bool sends = DataRanks(layout) > 1 && !layout.fsdp && trained > 0;
  if (!sends || training.lower_bound || !framework.copies_into_buckets) {
    return resident;
  }
  if (layout.zero == 0) {
    TRY(resident, GradientStorage(network, training.recipe));
    for (std::size_t i = 0; i < resident.storages.size(); ++i) {
      resident.storages[i].pile = Pile::kWorkspace;
      resident.texts[i].what = "buckets of gradients";
      resident.texts[i].source =
          "PyTorch, nn/parallel/distributed.py: gradient_as_bucket_view=False keeps gradients and "
          "buckets apart";
    }
    return resident;
  }
  if (layout.zero >= 2) {
    const std::int64_t elements = std::min(kZeroBucket, trained);
    const Checked bytes = StorageBytes(Checked(elements), training.recipe.gradients);
    resident.Add(
        {.pile = Pile::kWorkspace,
         .format = training.recipe.gradients.name,
         .elements = Elements(elements),
         .bytes = Exactly(Bytes(OrLargest(bytes)))},
        {.what = "bucket of gradients",
         .formula =
             fmt::format("the least of {} and {} trainable parameters", kZeroBucket, trained),
         .source = "DeepSpeed, runtime/zero/config.py: reduce_bucket_size, contiguous_gradients"});
  }
  return resident;
}

}  // namespace

Bytes DeviceBytes(const Resident& resident) {
  Bytes sum(0);
  for (const Storage& storage : resident.storages) {
    sum += storage.place == Place::kDevice ? ExpectedBytes(storage) : Bytes(0);
  }
  return sum;
}

bool GradientsAreResident(const TrainingJob& training) {
  return training.step_kernels != StepKernels::kInBackward &&
         (training.recipe.gradients_resident || training.layout.zero >= 2 ||
          training.profile.framework.zeroes_gradients);
}

Numbers NumbersOf(const Recipe& recipe) {
  if (recipe.gathered) {
    return {.weights = TypeOf(recipe.compute), .compute = TypeOf(recipe.compute)};
  }
  return {.weights = TypeOf(recipe.weights),
          .compute = TypeOf(recipe.compute),
          .autocast = StorageBits(recipe.weights) > StorageBits(recipe.compute)};
}

bool GathersWeights(const TrainingJob& training) {
  const bool sharded =
      DataRanks(training.layout) > 1 && (training.layout.zero == 3 || training.layout.fsdp);
  return !training.lower_bound && (sharded || training.offloads_parameters);
}

Result<Resident> RankState(const TrainingJob& training, const Network& network,
                           const Batch& batch) {
  TRY(Resident resident, Weights(training, network));
  if (!training.evaluates) {
    TRY(Resident state, TrainedState(training, network));
    resident.Append(std::move(state));
    TRY(Resident scaling, ScalingStorages(network, training.recipe));
    resident.Append(std::move(scaling));
    TRY(Resident buckets, Buckets(training, network));
    resident.Append(std::move(buckets));
  }
  if (!training.lower_bound) {
    TRY(Resident buffers, BufferStorages(network, training.recipe.weights));
    resident.Append(std::move(buffers));
    TRY(Resident inputs, BatchStorages(network, batch, training.recipe.weights));
    resident.Append(std::move(inputs));
  }
  return resident;
}

Result<Bytes> StateBytes(const TrainingJob& training, const Network& network) {
  const Shares shares = SharesOf(training.layout);
  TRY(const Resident weights, WeightStorages(network, training.recipe.weights, shares.weights));
  if (training.evaluates) {
    return DeviceBytes(weights);
  }
  TRY(const Resident gradients, GradientStorage(network, training.recipe, shares.gradients));
  TRY(const Resident states,
      OptimizerStorages(network, training.recipe, training.optimizer, shares.optimizer_state));
  return DeviceBytes(weights) + DeviceBytes(gradients) + DeviceBytes(states);
}

namespace {

// `one` has a single layer.
Result<Bytes> WeightsOfLayer(const TrainingJob& training, const Network& one) {
  TRY(const Resident weights,
      training.base              ? SchemeWeights(one, *training.base, training.base_format)
      : training.recipe.gathered ? WeightStorages(one, training.recipe.compute)
                                 : WeightStorages(one, training.recipe.weights));
  return DeviceBytes(weights);
}

// Trainable elements of one layer that this rank has: experts are divided over fewer ranks.
Checked ShareOfLayer(const Block& block, const ShardRanks& ranks) {
  Checked dense = 0;
  Checked experts = 0;
  for (const Parameter& parameter : block.parameters) {
    Checked& sum = parameter.routed ? experts : dense;
    sum = sum + Checked(parameter.trainable ? ElementsOf(parameter) : 0);
  }
  return DivideRoundingUp(dense, ranks.dense) + DivideRoundingUp(experts, ranks.experts);
}

}  // namespace

Result<GatheredBlocks> GatheredOf(const TrainingJob& training, const Network& network) {
  GatheredBlocks gathered;
  const ElementType computed = NumbersOf(training.recipe).weights;
  const bool copies = !training.profile.framework.flat_parameters ||
                      computed.bits != StorageBits(training.recipe.gradients);
  const bool born = !GradientsAreResident(training);
  gathered.ranks = SharesOf(training.layout).weights.dense;
  gathered.own_streams = training.layout.fsdp;
  Network one = network;
  for (const Block& block : network.blocks) {
    one.blocks = {block};
    one.blocks.front().repeat = 1;
    TRY(const Bytes weights, WeightsOfLayer(training, one));
    gathered.weights.push_back(weights);
    const std::int64_t trained = TrainableElementsOfLayer(block);
    const Checked bytes = StorageBytes(Checked(trained), training.recipe.gradients);
    gathered.sent.push_back(copies ? Bytes(OrLargest(bytes)) : Bytes(0));
    const Checked share = StorageBytes(ShareOfLayer(block, SharesOf(training.layout).gradients),
                                       training.recipe.gradients);
    gathered.gradients.push_back(born ? Bytes(OrLargest(share)) : Bytes(0));
  }
  return gathered;
}

}  // namespace fourpiles
