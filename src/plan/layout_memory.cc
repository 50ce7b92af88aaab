#include "plan/layout_memory.h"

#include <algorithm>

#include "base/try.h"
#include "plan/pipeline.h"
#include "plan/rank_state.h"
#include "step/tape.h"

namespace fourpiles {
namespace {

std::vector<std::int64_t> CutKey(const Layout& layout) {
  return {layout.sequence_parallel ? 1 : 0, layout.context, layout.expert, layout.expert_tensor,
          layout.tensor};
}

std::vector<std::int64_t> StagesKey(const Layout& layout) {
  return {layout.pipeline, layout.chunks, layout.first_stage_layers.value_or(-1),
          layout.last_stage_layers.value_or(-1)};
}

template <class... Numbers>
std::vector<std::int64_t> With(std::vector<std::int64_t> key, Numbers... numbers) {
  (key.push_back(static_cast<std::int64_t>(numbers)), ...);
  return key;
}

// Of the layers of one stage: which blocks they are of, and how many, chunk by chunk.
std::vector<std::int64_t> LayersOf(const Network& network, const std::vector<LayerSpan>& chunks) {
  std::vector<std::int64_t> layers;
  for (const LayerSpan& chunk : chunks) {
    layers.push_back(-1);
    for (std::size_t i = 0; i < network.blocks.size(); ++i) {
      const Block& block = network.blocks[i];
      const std::int64_t first = std::max(block.first, chunk.first);
      const std::int64_t end = std::min(block.first + block.repeat, chunk.first + chunk.layers);
      if (IsNumbered(block) && first < end) {
        layers.push_back(static_cast<std::int64_t>(i));
        layers.push_back(end - first);
      }
    }
  }
  return layers;
}

// Whether the weights come from other ranks, and how; else how the gradients live.
std::vector<std::int64_t> ShardKey(const TrainingJob& training) {
  const Layout& layout = training.layout;
  if (!GathersWeights(training)) {
    return {0, GradientsAreResident(training) ? 1 : 0};
  }
  return {1, layout.zero, layout.fsdp ? layout.fsdp_ranks : 0, layout.reshards ? 1 : 0,
          layout.reshards_all ? 1 : 0};
}

StageWork WorkOfStage(const Network& stage, std::int64_t tensor, std::int64_t sequence_length) {
  StageWork work = {.hidden_size = static_cast<double>(stage.hidden_size.value_or(0))};
  for (const Block& block : stage.blocks) {
    work.layers.push_back({.work = fourpiles::WorkOf(stage, block, tensor),
                           .view = ViewOf(stage, block, sequence_length),
                           .layers = static_cast<double>(block.repeat)});
    for (const Parameter& parameter : block.parameters) {
      const double elements = static_cast<double>(ElementsOf(parameter)) *
                              static_cast<double>(block.repeat) * (parameter.trainable ? 1 : 0);
      (parameter.routed ? work.routed_elements : work.dense_elements) += elements;
    }
  }
  return work;
}

// Which of the network's blocks the layers are of.
std::size_t KindOf(const Network& network, const Block& layers) {
  const auto kind = std::ranges::find_if(network.blocks, [&](const Block& block) {
    return IsNumbered(block) && block.name == layers.name && block.first <= layers.first &&
           layers.first < block.first + block.repeat;
  });
  return static_cast<std::size_t>(kind - network.blocks.begin());
}

// By action: what was allocated as it ran and is kept when the first forward pass ends that runs
// backward at once.
std::vector<Bytes> KeptByActions(const Tape& tape) {
  const Moment end = tape.forward_ends.front();
  std::vector<Bytes> kept(tape.actions.size());
  for (const Storage& storage : tape.storages) {
    const bool is_made_here =
        storage.text < 0 && storage.place == Place::kDevice && storage.born == storage.made;
    if (is_made_here && IsAlive(storage, end)) {
      const Kernel& kernel = tape.moments[static_cast<std::size_t>(storage.made)];
      kept[static_cast<std::size_t>(kernel.action)] += ExpectedBytes(storage);
    }
  }
  return kept;
}

// Whether it is known of every kind of layers what one keeps.
bool AreKnown(const std::vector<Bytes>& kept, const Network& network) {
  for (std::size_t kind = 0; kind < kept.size(); ++kind) {
    if (kept[kind] == Bytes(0) && IsNumbered(network.blocks[kind])) {
      return false;
    }
  }
  return true;
}

// Of each of the network's blocks, the least that a layer keeps of a forward pass, where the tape
// tells it and it is not known. The first layer of a pass may keep what all share, and the last
// other things than those between, so three must have run.
void LearnKept(std::vector<Bytes>& least, const Tape& tape, const Network& network) {
  constexpr std::size_t kEnough = 3;
  if (AreKnown(least, network)) {
    return;
  }
  const std::vector<Bytes> kept = KeptByActions(tape);
  const auto last = static_cast<std::size_t>(tape.forward_ends.front() - 1);
  const std::int64_t pass =
      tape.actions[static_cast<std::size_t>(tape.moments[last].action)].micro_batch;
  std::vector<std::vector<Bytes>> by_kind(network.blocks.size() + 1);
  for (std::size_t i = 0; i < tape.actions.size(); ++i) {
    const Action& action = tape.actions[i];
    if (action.kind == ActionKind::kForward && action.micro_batch == pass && action.layers == 1) {
      const Block& block = tape.network->blocks[static_cast<std::size_t>(action.block)];
      by_kind[KindOf(network, block)].push_back(kept[i]);
    }
  }
  for (std::size_t kind = 0; kind < least.size(); ++kind) {
    if (least[kind] == Bytes(0) && by_kind[kind].size() >= kEnough) {
      least[kind] = std::ranges::min(by_kind[kind]);
    }
  }
}

}  // namespace

const Network& LayoutMemory::CutOf(const Layout& layout) {
  const Key key = CutKey(layout);
  const auto found = cuts_.find(key);
  return found != cuts_.end() ? found->second
                              : cuts_.emplace(key, CutForRanks(network_, layout)).first->second;
}

const std::vector<std::int64_t>& LayoutMemory::KindsOf(const Layout& layout, std::int64_t every) {
  const Key key = With(StagesKey(layout), every);
  const auto found = kinds_.find(key);
  if (found != kinds_.end()) {
    return found->second;
  }
  std::vector<std::int64_t> kinds = {0};
  std::vector<std::vector<std::int64_t>> seen;
  const auto stages = StageLayers(layout, network_.num_hidden_layers.value_or(0));
  for (std::int64_t stage = 1; stage + 1 < layout.pipeline; ++stage) {
    std::vector<std::int64_t> layers = LayersOf(network_, stages[static_cast<std::size_t>(stage)]);
    if (every > 1 || std::ranges::find(seen, layers) == seen.end()) {
      seen.push_back(std::move(layers));
      kinds.push_back(stage);
    }
  }
  if (layout.pipeline > 1) {
    kinds.push_back(layout.pipeline - 1);
  }
  return kinds_.emplace(key, std::move(kinds)).first->second;
}

const RankStage& LayoutMemory::StageOf(const Layout& layout, std::int64_t number) {
  Key key = CutKey(layout);
  const Key stages = StagesKey(layout);
  key.insert(key.end(), stages.begin(), stages.end());
  key.push_back(number);
  const auto found = stages_.find(key);
  return found != stages_.end()
             ? found->second
             : stages_.emplace(std::move(key), fourpiles::StageOf(CutOf(layout), layout, number))
                   .first->second;
}

// Of a stage, whatever the micro-batches.
Result<GatheredBlocks> LayoutMemory::GatheredBy(const TrainingJob& training, std::int64_t number) {
  if (!GathersWeights(training)) {
    return GatheredBlocks();
  }
  Key key = CutKey(training.layout);
  for (const Key& part : {StagesKey(training.layout), ShardKey(training)}) {
    key.insert(key.end(), part.begin(), part.end());
  }
  key.push_back(number);
  if (const auto found = gathered_.find(key); found != gathered_.end()) {
    return found->second;
  }
  TRY(GatheredBlocks gathered, fourpiles::GatheredBy(training, StageOf(training.layout, number)));
  return gathered_.emplace(std::move(key), std::move(gathered)).first->second;
}

Result<LayoutMemory::Standing> LayoutMemory::StandingOf(const TrainingJob& training,
                                                        std::int64_t number) {
  Layout layout = training.layout;
  layout.context = 1;  // what stands is cut by other ranks alone
  Key key = CutKey(layout);
  const Key stages = StagesKey(layout);
  key.insert(key.end(), stages.begin(), stages.end());
  key = With(std::move(key), number, layout.zero, layout.fsdp ? layout.fsdp_ranks : 0);
  if (const auto found = standing_.find(key); found != standing_.end()) {
    return found->second;
  }
  const Network& network = *StageOf(layout, number).network;
  constexpr Batch kNone = {.micro_batch_size = 0};
  TRY(const Resident resident, RankState(training, network, kNone));
  TRY(const Bytes temporaries, TemporariesOf(training, network));
  return standing_.emplace(std::move(key), Standing{DeviceBytes(resident), temporaries})
      .first->second;
}

Result<Bytes> LayoutMemory::AtLeast(const TrainingJob& training) {
  Bytes least(0);
  for (const std::int64_t number : KindsOf(training.layout, training.recompute.every)) {
    TRY(const Standing standing, StandingOf(training, number));
    least = std::max(least, standing.resident);
  }
  return least;
}

// With the batch, which stands too.
Result<Bytes> LayoutMemory::ResidentOfStage(const TrainingJob& training, std::int64_t number) {
  TRY(const Standing standing, StandingOf(training, number));
  const Layout& layout = training.layout;
  const bool has_batch = number == 0 || number == layout.pipeline - 1;
  if (!has_batch || training.lower_bound) {
    return standing.resident;
  }
  const Batch batch = {
      .micro_batch_size = training.micro_batch_size,
      .sequence_length = (training.sequence_length + layout.context - 1) / layout.context};
  TRY(const Resident inputs,
      BatchStorages(*StageOf(layout, number).network, batch, training.recipe.weights));
  return standing.resident + DeviceBytes(inputs);
}

LayoutMemory::Key LayoutMemory::KeptKey(const TrainingJob& training) {
  Key key = CutKey(training.layout);
  const Key shard = ShardKey(training);
  key.insert(key.end(), shard.begin(), shard.end());
  return With(std::move(key), training.micro_batch_size, training.recompute.kind);
}

// When a pass of the last chunk has run forward, all its layers and those of the passes that wait
// keep what they do. Not told where outputs that were sent are let go of, or layers take turns.
Bytes LayoutMemory::KeptAtLeast(const TrainingJob& training, std::int64_t number) {
  const Framework& framework = training.profile.framework;
  if (framework.frees_sent_outputs || training.recompute.every > 1) {
    return Bytes(0);
  }
  const auto known = kept_.find(KeptKey(training));
  if (known == kept_.end()) {
    return Bytes(0);
  }
  const RankStage& stage = StageOf(training.layout, number);
  std::vector<std::int64_t> passes = {0};
  std::vector<std::pair<std::size_t, std::size_t>> chunks = {{0, stage.network->blocks.size()}};
  if (!stage.is_whole) {
    passes = WaitingPasses(training.layout, number, training.gradient_accumulation);
    chunks = stage.chunks;
  }
  ++passes.back();  // which runs
  Checked kept = 0;
  for (std::size_t chunk = 0; chunk < chunks.size(); ++chunk) {
    for (std::size_t i = chunks[chunk].first; i < chunks[chunk].second; ++i) {
      const Block& block = stage.network->blocks[i];
      const std::size_t kind = KindOf(network_, block);
      const Bytes of_layer = kind < known->second.size() ? known->second[kind] : Bytes(0);
      kept = kept + Checked(of_layer.value()) * block.repeat * passes[chunk];
    }
  }
  return Bytes(OrLargest(kept));
}

Result<LayoutMemory::Played> LayoutMemory::PlayedOf(const TrainingJob& training,
                                                    std::int64_t number) {
  const Layout& layout = training.layout;
  constexpr std::int64_t kDistinct = 3;  // micro-batches that a schedule tells apart
  Key key = CutKey(layout);
  for (const Key& part : {StagesKey(layout), ShardKey(training)}) {
    key.insert(key.end(), part.begin(), part.end());
  }
  if (layout.pipeline > 1) {
    const Key waiting = WaitingPasses(layout, number, training.gradient_accumulation);
    key.insert(key.end(), waiting.begin(), waiting.end());
  }
  key = With(std::move(key), number, training.micro_batch_size,
             std::min(training.gradient_accumulation, kDistinct), training.recompute.kind,
             training.recompute.every);
  if (const auto found = played_.find(key); found != played_.end()) {
    return found->second;
  }
  TRY(GatheredBlocks gathered, GatheredBy(training, number));
  const Part part =
      PlayedPart(training, StageOf(layout, number), std::move(gathered), LayersPlayed::kAlikeOnce);
  TRY(const Tape tape, Play(part, training.profile));
  ++plays_;
  std::vector<Bytes>& kept = kept_[KeptKey(training)];
  kept.resize(network_.blocks.size());
  LearnKept(kept, tape, network_);
  const Played played = {.peak = fourpiles::PeakOf(tape, Place::kDevice).bytes,
                         .step = fourpiles::PeakOf(tape, Place::kDevice, ActionKind::kStep).bytes,
                         .streams = PeaksOfStreams(tape)};
  return played_.emplace(std::move(key), played).first->second;
}

Result<LayoutMemory::Fullest> LayoutMemory::PeakOf(const TrainingJob& training, Bytes limit,
                                                   Bytes hopeless) {
  Fullest fullest;
  for (const std::int64_t number : KindsOf(training.layout, training.recompute.every)) {
    TRY(const Bytes resident, ResidentOfStage(training, number));
    if (const Bytes least = resident + KeptAtLeast(training, number); least > hopeless) {
      return Fullest{least, number, least};
    }
    TRY(const Standing standing, StandingOf(training, number));
    TRY(const Played played, PlayedOf(training, number));
    const Bytes peak = resident + std::max(played.peak, played.step + standing.temporaries);
    if (peak > fullest.peak) {
      fullest = {peak, number, resident + played.streams};
    }
    if (fullest.peak > limit) {
      break;
    }
  }
  return fullest;
}

const std::vector<StageWork>& LayoutMemory::WorkOf(const TrainingJob& training) {
  // Ranks that add up whole sums send as much as those that scatter and gather them.
  Layout layout = training.layout;
  layout.context = 1;
  layout.sequence_parallel = layout.tensor > 1;
  Key key = CutKey(layout);
  const Key stages = StagesKey(layout);
  key.insert(key.end(), stages.begin(), stages.end());
  const auto found = work_.find(key);
  if (found != work_.end()) {
    return found->second;
  }
  std::vector<StageWork> work;
  for (const std::int64_t number : KindsOf(layout, 1)) {
    work.push_back(
        WorkOfStage(*StageOf(layout, number).network, layout.tensor, training.sequence_length));
  }
  return work_.emplace(std::move(key), std::move(work)).first->second;
}

}  // namespace fourpiles
