#pragma once

// How long a training step takes, estimated: a roofline over products, memory and traffic between
// devices. Every term, its source and a worked number stand in docs/PLAN.md. Nothing here is
// fitted to a run.

#include <cstdint>
#include <string>
#include <vector>

#include "plan/device.h"
#include "plan/layer_work.h"
#include "plan/layout.h"
#include "step/play.h"

namespace fourpiles {

// Amounts a second of one device.
struct Machine {
  double peak_flops = 0;      // dense, as the vendor says
  double matrix_flops = 0;    // that products were seen to reach
  double memory_bytes = 0;    // read or written
  double link_bytes = 0;      // sent to devices of its node, one way
  double network_bytes = 0;   // sent to other nodes, one way
  std::int64_t per_node = 8;  // devices
};

// What is known of a device's speed, and in words what is assumed for want of it.
struct MachineReading {
  Machine machine = {};
  bool is_known = true;  // false: speeds of another device stand in, and seconds mean nothing
  std::vector<std::string> assumed = {};
};
// Rates that were given take the place of the device's.
struct GivenRates {
  std::optional<Bytes> link = {};
  std::optional<Bytes> network = {};
};
MachineReading MachineOf(const Device& device, const NumberFormat& compute,
                         const GivenRates& rates);

// Ranks that send to one another, every stride-th of a stage.
struct Group {
  std::int64_t ranks = 1;
  std::int64_t stride = 1;
};

// Seconds until every rank of the group has all of `bytes`, of which each had its share; or until
// each has its share of their sums. Links within nodes and the networks of all members of a node
// are used at once.
double GatherSeconds(const Machine& machine, const Group& group, double bytes);
// Until every rank has sent `bytes` to the others, as many to each.
double ExchangeSeconds(const Machine& machine, const Group& group, double bytes);

// Layers alike of a stage, with how attention sees the sequence in them.
struct LayersWork {
  LayerWork work = {};
  SequenceView view = {};
  double layers = 0;
};

// What a stage of the pipeline has, per rank.
struct StageWork {
  std::vector<LayersWork> layers = {};
  double hidden_size = 0;
  double dense_elements = 0;   // trainable parameters outside of routed experts
  double routed_elements = 0;  // of routed experts
};

// One step of a layout. Bytes are those of one element.
struct StepShape {
  Layout layout = {};
  Recompute recompute = {};
  std::int64_t micro_batch_size = 1;
  std::int64_t sequence_length = 1;
  std::int64_t micro_batches = 1;
  double compute_bytes = 2;
  double gradient_bytes = 2;
  // Read or written by the optimizer for every parameter that it steps.
  double step_bytes = 0;
};

// Seconds, by what they go to; none of them overlaps another.
struct StepTime {
  double products = 0;   // with weights, and attention
  double memory = 0;     // operators that only read and write
  double tensor = 0;     // traffic of ranks that cut layers
  double context = 0;    // of ranks that cut the sequence
  double expert = 0;     // of ranks that have experts
  double pipeline = 0;   // between stages
  double bubble = 0;     // that a stage waits
  double data = 0;       // gradients and shards, beyond what the computation hides
  double optimizer = 0;  // its step
};
double Total(const StepTime& time);

// Of the slowest stage.
StepTime StepTimeOf(const Machine& machine, const StepShape& shape,
                    const std::vector<StageWork>& stages);

// Floating-point operations of a step that the model needs, whatever runs again: of the whole
// network, uncut.
double ModelFlops(const Network& network, std::int64_t samples, std::int64_t sequence_length);

}  // namespace fourpiles
