#include "plan/step_time.h"

#include <algorithm>

#include <fmt/format.h>

#include "units/print.h"

namespace fourpiles {
namespace {

// The backward pass of a product is two: of its inputs and of its weights.
constexpr double kForwardAndBackward = 3;

// Of the peak, where no measurement is known: what large products in bfloat16 reach on an H100 SXM
// (794.5 of 989 TFLOP/s; stas00/ml-engineering, compute/accelerator, MAMF).
constexpr double kUsualShare = 0.8;

// PCIe 4.0 with 16 lanes, one way: 16 × 16 GT/s × 128/130.
constexpr double kUsualLink = 31.5e9;
// 400 Gb/s a device (NVIDIA DGX H100 data sheet: eight ConnectX-7).
constexpr double kUsualNetwork = 50e9;

// NVIDIA H100 SXM data sheet.
constexpr Machine kStandIn = {.peak_flops = 989e12,
                              .matrix_flops = kUsualShare * 989e12,
                              .memory_bytes = 3.35e12,
                              .link_bytes = 450e9,
                              .network_bytes = kUsualNetwork};

const Device::Speed* SpeedOf(const std::vector<Device::Speed>& speeds, std::string_view format) {
  const auto speed = std::ranges::find(speeds, format, &Device::Speed::format);
  return speed == speeds.end() ? nullptr : &*speed;
}

double Rate(const std::optional<Bytes>& given, const std::optional<std::int64_t>& known,
            double usual) {
  return given                                        ? static_cast<double>(given->value())
         : static_cast<double>(known.value_or(0)) > 0 ? static_cast<double>(*known)
                                                      : usual;
}

// Members of the group that stand in one node.
double Members(const Machine& machine, const Group& group) {
  return static_cast<double>(
      std::clamp<std::int64_t>(machine.per_node / group.stride, 1, group.ranks));
}

double Beyond(double seconds, double hidden_behind) {
  return std::max(0.0, seconds - hidden_behind);
}

}  // namespace

double GatherSeconds(const Machine& machine, const Group& group, double bytes) {
  if (group.ranks == 1) {
    return 0;
  }
  const double members = Members(machine, group);
  const double nodes = static_cast<double>(group.ranks) / members;
  const double within = bytes * (members - 1) / members / machine.link_bytes;
  const double between = bytes * (nodes - 1) / nodes / (members * machine.network_bytes);
  return std::max(within, between);
}

double ExchangeSeconds(const Machine& machine, const Group& group, double bytes) {
  const double members = Members(machine, group);
  const auto ranks = static_cast<double>(group.ranks);
  return std::max(bytes * (members - 1) / ranks / machine.link_bytes,
                  bytes * (ranks - members) / ranks / machine.network_bytes);
}

namespace {

// One micro-batch on one stage, without what is sent between stages.
struct MicroBatchTime {
  double products = 0;
  double memory = 0;
  double tensor = 0;
  double context = 0;
  double expert = 0;
};
double Total(const MicroBatchTime& time) {
  return time.products + time.memory + time.tensor + time.context + time.expert;
}

double TokensOf(const StepShape& shape) {
  return static_cast<double>(shape.micro_batch_size) * static_cast<double>(shape.sequence_length) /
         static_cast<double>(shape.layout.context);
}

// Layers that run forward again run so as a whole; of attention alone only its core does.
struct Passes {
  double layers = kForwardAndBackward;
  double attention = kForwardAndBackward;
  double exchanges = 2;  // forward; what is gathered forward is scattered backward
};
Passes PassesOf(const Recompute& recompute) {
  Passes passes;
  const double again = 1 / static_cast<double>(recompute.every);
  if (recompute.kind == RecomputeKind::kLayers) {
    passes.layers += again;
    passes.exchanges += again;
  }
  passes.attention += recompute.kind == RecomputeKind::kNone ? 0 : again;
  return passes;
}

MicroBatchTime LayersTime(const Machine& machine, const StepShape& shape,
                          const LayersWork& layers) {
  const LayerWork& work = layers.work;
  const Layout& layout = shape.layout;
  const double tokens = TokensOf(shape);
  const Passes passes = PassesOf(shape.recompute);
  const double flops =
      passes.layers * work.matrix_flops * tokens +
      passes.attention * work.attention_flops * tokens * MeanTokensSeen(layers.view);
  const double weights = passes.layers * work.matrix_elements * shape.compute_bytes;
  const auto sent = [&](double elements) { return elements * tokens * shape.compute_bytes; };
  const Group tensor = {.ranks = layout.tensor};
  const Group context = {.ranks = layout.context, .stride = layout.tensor};
  const Group expert = {.ranks = layout.expert, .stride = layout.expert_tensor};
  MicroBatchTime time = {
      .products = std::max(flops / machine.matrix_flops, weights / machine.memory_bytes),
      .memory = passes.layers * sent(work.moved_elements) / machine.memory_bytes,
      .tensor = passes.exchanges * GatherSeconds(machine, tensor, sent(work.tensor_elements)),
      // Keys and values are gathered forward and again backward, and their gradients scattered.
      .context = kForwardAndBackward *
                 GatherSeconds(machine, context,
                               sent(work.context_elements) * static_cast<double>(layout.context)),
      // There and back, forward and backward.
      .expert =
          2 * passes.exchanges * ExchangeSeconds(machine, expert, sent(work.routed_elements))};
  time.products *= layers.layers;
  time.memory *= layers.layers;
  time.tensor *= layers.layers;
  time.context *= layers.layers;
  time.expert *= layers.layers;
  return time;
}

MicroBatchTime StageTime(const Machine& machine, const StepShape& shape, const StageWork& stage) {
  MicroBatchTime sum;
  for (const LayersWork& layers : stage.layers) {
    const MicroBatchTime time = LayersTime(machine, shape, layers);
    sum.products += time.products;
    sum.memory += time.memory;
    sum.tensor += time.tensor;
    sum.context += time.context;
    sum.expert += time.expert;
  }
  return sum;
}

// What one micro-batch sends to the stages beside, and is sent: outputs forward, gradients
// backward, for each chunk. Interleaved schedules send beside the computation (Megatron-LM,
// overlap_p2p_comm, which needs a virtual pipeline); others wait.
double BetweenStages(const Machine& machine, const StepShape& shape, const StageWork& stage,
                     double computes) {
  const Layout& layout = shape.layout;
  if (layout.pipeline == 1) {
    return 0;
  }
  const bool in_node = layout.devices <= layout.per_host;
  const double rate = in_node ? machine.link_bytes : machine.network_bytes;
  const double bytes = TokensOf(shape) * stage.hidden_size * shape.compute_bytes /
                       static_cast<double>(layout.sequence_parallel ? layout.tensor : 1);
  const double seconds = 2 * static_cast<double>(layout.chunks) * bytes / rate;
  return layout.chunks > 1 ? Beyond(seconds, computes) : seconds;
}

// Parameters that are alike on the ranks of a group.
struct Shared {
  double elements = 0;
  Group group = {};
};

// FSDP over fewer than all: shards are gathered among them, and gradients added up over the rest.
struct ShardGroups {
  Group shards = {};
  Group replicas = {};
};
ShardGroups GroupsOf(const Layout& layout, const Group& all) {
  const std::int64_t sharded = layout.fsdp       ? std::min(layout.fsdp_ranks, all.ranks)
                               : layout.zero > 0 ? all.ranks
                                                 : 1;
  return {.shards = {.ranks = sharded, .stride = all.stride},
          .replicas = {.ranks = all.ranks / sharded, .stride = all.stride * sharded}};
}

// Seconds that gradients and shards take beyond the computation that runs beside them: gradients
// beside the backward pass, weights beside the forward pass (PyTorch DDP and FSDP; Megatron-LM,
// overlap_grad_reduce, overlap_param_gather). Once a step that is the pass of one micro-batch.
double DataSeconds(const Machine& machine, const StepShape& shape, const Shared& shared,
                   double computes) {
  const Layout& layout = shape.layout;
  const auto [shards, replicas] = GroupsOf(layout, shared.group);
  const double weights = GatherSeconds(machine, shards, shared.elements * shape.compute_bytes);
  const double gradients = GatherSeconds(machine, shards, shared.elements * shape.gradient_bytes);
  const double added =
      2 * GatherSeconds(machine, replicas,
                        shared.elements * shape.gradient_bytes / static_cast<double>(shards.ranks));
  const double forward = computes / kForwardAndBackward;
  const double backward = computes - forward;
  const auto count = static_cast<double>(shape.micro_batches);
  // With a pipeline what was gathered stays, and gradients are sent once (PyTorch,
  // distributed/pipelining/stage.py, backward_maybe_with_nosync).
  const bool every_time = layout.pipeline == 1 && (layout.fsdp || layout.zero == 3);
  if (every_time) {
    const bool again = layout.zero == 3 || layout.reshards;
    return count *
               (Beyond(weights, forward) + Beyond((again ? weights : 0) + gradients, backward)) +
           Beyond(added, backward);
  }
  const double times = layout.zero == 2 ? count : 1;
  return times * Beyond(gradients, backward) + Beyond(added, backward) + Beyond(weights, forward);
}

// Every rank steps what it has of the states.
double OptimizerSeconds(const Machine& machine, const StepShape& shape, const StageWork& stage) {
  const ShardRanks ranks = SharesOf(shape.layout).optimizer_state;
  const double elements = stage.dense_elements / static_cast<double>(ranks.dense) +
                          stage.routed_elements / static_cast<double>(ranks.experts);
  return elements * shape.step_bytes / machine.memory_bytes;
}

// Narayanan et al. 2021, arXiv 2104.04473, section 2.2: (p − 1) / v micro-batches. ZB-H1 lets the
// gradients of weights wait, which leaves a third (Qi et al. 2023, arXiv 2401.10241, section 2.2,
// where the three passes take as long).
double Bubble(const Layout& layout, double micro_batch) {
  const double share = layout.schedule == PipelineSchedule::kZeroBubble ? 1.0 / 3 : 1.0;
  return share * static_cast<double>(layout.pipeline - 1) / static_cast<double>(layout.chunks) *
         micro_batch;
}

StepTime TimeOfStage(const Machine& machine, const StepShape& shape, const StageWork& stage) {
  const Layout& layout = shape.layout;
  const MicroBatchTime once = StageTime(machine, shape, stage);
  const double computes = Total(once);
  const double between = BetweenStages(machine, shape, stage, computes);
  const auto count = static_cast<double>(shape.micro_batches);
  const Shared dense = {stage.dense_elements,
                        {.ranks = DataRanks(layout), .stride = layout.tensor}};
  const Shared routed = {
      stage.routed_elements,
      {.ranks = ExpertDataRanks(layout), .stride = layout.expert * layout.expert_tensor}};
  return {.products = count * once.products,
          .memory = count * once.memory,
          .tensor = count * once.tensor,
          .context = count * once.context,
          .expert = count * once.expert,
          .pipeline = count * between,
          .bubble = Bubble(layout, computes + between),
          .data = DataSeconds(machine, shape, dense, computes) +
                  (stage.routed_elements > 0 ? DataSeconds(machine, shape, routed, computes) : 0),
          .optimizer = OptimizerSeconds(machine, shape, stage)};
}

}  // namespace

double Total(const StepTime& time) {
  return time.products + time.memory + time.tensor + time.context + time.expert + time.pipeline +
         time.bubble + time.data + time.optimizer;
}

StepTime StepTimeOf(const Machine& machine, const StepShape& shape,
                    const std::vector<StageWork>& stages) {
  StepTime slowest;
  for (const StageWork& stage : stages) {
    const StepTime time = TimeOfStage(machine, shape, stage);
    slowest = Total(time) > Total(slowest) ? time : slowest;
  }
  return slowest;
}

double ModelFlops(const Network& network, std::int64_t samples, std::int64_t sequence_length) {
  double of_token = 0;
  for (const Block& block : network.blocks) {
    const LayerWork work = WorkOf(network, block, 1);
    const double seen = MeanTokensSeen(ViewOf(network, block, sequence_length));
    of_token +=
        static_cast<double>(block.repeat) * (work.matrix_flops + work.attention_flops * seen);
  }
  return kForwardAndBackward * of_token * static_cast<double>(samples) *
         static_cast<double>(sequence_length);
}

MachineReading MachineOf(const Device& device, const NumberFormat& compute,
                         const GivenRates& rates) {
  const Device::Speed* peak = SpeedOf(device.dense_tflops, compute.name);
  if (peak == nullptr || !device.bandwidth_bytes_per_second) {
    MachineReading reading = {.machine = kStandIn, .is_known = false};
    reading.machine.link_bytes = Rate(rates.link, {}, kStandIn.link_bytes);
    reading.machine.network_bytes = Rate(rates.network, {}, kStandIn.network_bytes);
    return reading;
  }
  const Device::Speed* seen = SpeedOf(device.achieved_tflops, compute.name);
  MachineReading reading = {
      .machine = {
          .peak_flops = peak->tflops * 1e12,
          .matrix_flops = seen == nullptr ? kUsualShare * peak->tflops * 1e12 : seen->tflops * 1e12,
          .memory_bytes = static_cast<double>(*device.bandwidth_bytes_per_second),
          .link_bytes = Rate(rates.link, device.link_bytes_per_second, kUsualLink),
          .network_bytes = Rate(rates.network, device.network_bytes_per_second, kUsualNetwork)}};
  if (seen == nullptr) {
    reading.assumed.push_back(
        fmt::format("products reach {:.0f} % of {:.0f} TFLOP/s", kUsualShare * 100, peak->tflops));
  }
  if (!rates.link && !device.link_bytes_per_second) {
    reading.assumed.push_back(fmt::format("{:.1f} GB/s within a node", kUsualLink / 1e9));
  }
  if (!rates.network && !device.network_bytes_per_second) {
    reading.assumed.push_back(fmt::format("{:.0f} GB/s between nodes", kUsualNetwork / 1e9));
  }
  return reading;
}

}  // namespace fourpiles
