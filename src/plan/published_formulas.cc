// Four planners, each as it stands in its repository at the commit named. They count in Python's
// floating-point numbers, and so does this file.

#include "plan/published_formulas.h"

#include <algorithm>
#include <cmath>

#include "base/checked.h"

namespace fourpiles {
namespace {

double Number(std::int64_t value) {
  return static_cast<double>(value);
}

PublishedEstimate Answered(PublishedEstimate planner, double bytes) {
  if (bytes > Number(kLargestAmount)) {
    planner.reason = "more than 2^53 bytes";
  } else {
    planner.bytes = Bytes(std::llround(bytes));
  }
  return planner;
}

PublishedEstimate Refused(PublishedEstimate planner, std::string_view reason) {
  planner.reason = reason;
  return planner;
}

constexpr std::string_view kTrainsAll =
    "it trains all parameters, with no adapters or frozen parts";

bool TrainsAll(const TrainingDescription& job) {
  return job.trainable_parameters >= job.parameters;
}

// Why planners that know nothing but a full training with Adam cannot express it; empty where they
// can.
std::string_view BeyondFullAdam(const TrainingDescription& job) {
  if (!TrainsAll(job)) {
    return kTrainsAll;
  }
  return job.optimizer == DescribedOptimizer::kAdam ? std::string_view()
                                                    : "it knows no optimizer but Adam";
}

bool IsModelParallel(const TrainingDescription& job) {
  return job.tensor_parallel > 1 || job.pipeline_parallel > 1;
}

// huggingface/accelerate 16cb6eb8, src/accelerate/commands/estimate.py, estimate_training_usage:
// the largest of model, gradients, optimizer and step, not their sum. In float32 that is the step,
// four copies; in 16 bits the optimizer, twice the float32 weights. 8,030,261,248 parameters in
// bfloat16: × 8 = 59.83 GiB.
PublishedEstimate Accelerate(const TrainingDescription& job) {
  const PublishedEstimate planner = {
      .name = "accelerate estimate-memory",
      .assumes = "the largest of weights, gradients, optimizer and step; no activations"};
  if (const std::string_view beyond = BeyondFullAdam(job); !beyond.empty()) {
    return Refused(planner, beyond);
  }
  if (IsModelParallel(job) || job.zero_stage > 0 || job.has_distributed_optimizer) {
    return Refused(planner, "it shards nothing");
  }
  return Answered(planner, Number(job.parameters) * (job.precision_bytes == 2 ? 8 : 16));
}

// Why DeepSpeed's estimator of `stage` cannot express it.
std::string_view BeyondZero(const TrainingDescription& job, std::int64_t stage) {
  if (const std::string_view beyond = BeyondFullAdam(job); !beyond.empty()) {
    return beyond;
  }
  if (job.zero_stage != stage) {
    return "the job is of another ZeRO stage";
  }
  if (IsModelParallel(job)) {
    return "it knows no tensor or pipeline parallelism";
  }
  return job.precision_bytes == 2 ? std::string_view() : "it knows 16-bit training alone";
}

// deepspeedai/DeepSpeed edaa7221, deepspeed/runtime/zero/stage_1_and_2.py,
// estimate_zero2_model_states_mem_needs: 16-bit weights on each device; 18 bytes a parameter of
// gradients and optimizer over all. 8,030,261,248 parameters on one device: × 20 = 149.58 GiB.
PublishedEstimate DeepSpeedZero2(const TrainingDescription& job) {
  const PublishedEstimate planner = {.name = "DeepSpeed ZeRO-2 estimator",
                                     .assumes =
                                         "weights, gradients and optimizer in mixed "
                                         "precision; no activations or buffers"};
  if (const std::string_view beyond = BeyondZero(job, 2); !beyond.empty()) {
    return Refused(planner, beyond);
  }
  const double parameters = Number(job.parameters);
  return Answered(planner, 2 * parameters + std::floor(18 * parameters / Number(job.devices)));
}

// The same, deepspeed/runtime/zero/stage3.py, estimate_zero3_model_states_mem_needs: 18 bytes a
// parameter over all devices, and 4 for each of the largest module.
PublishedEstimate DeepSpeedZero3(const TrainingDescription& job) {
  const PublishedEstimate planner = {.name = "DeepSpeed ZeRO-3 estimator",
                                     .assumes =
                                         "weights, gradients and optimizer in mixed "
                                         "precision and the largest module; no activations"};
  if (const std::string_view beyond = BeyondZero(job, 3); !beyond.empty()) {
    return Refused(planner, beyond);
  }
  const double largest = Number(job.hidden_size) * Number(std::max(job.vocabulary, job.ffn_size));
  return Answered(planner,
                  4 * largest + std::floor(18 * Number(job.parameters) / Number(job.devices)));
}

// Parameters as calc_transformer_mem.py counts them: the output layer never tied, positions always
// learned, heads as wide as hidden_size / heads.
struct CookbookParameters {
  double of_mlp = 0;
  double rest = 0;
};

CookbookParameters CookbookCount(const TrainingDescription& job) {
  const double hidden = Number(job.hidden_size);
  const double layers = Number(job.layers);
  const double attention =
      2 * (1 + Number(job.key_value_heads) / Number(job.heads)) * layers * hidden * hidden;
  return {.of_mlp = (job.is_gated ? 3 : 2) * layers * hidden * Number(job.ffn_size),
          .rest = 2 * Number(job.vocabulary) * hidden + hidden * Number(job.sequence_length) +
                  8 * hidden * layers + 2 * hidden + attention};
}

// EleutherAI/cookbook 827ee3b2, calc/calc_transformer_mem.py, calc_mem, with its defaults:
// gradients and optimizer are divided by all devices from ZeRO 2 and 1 on, and by nothing else;
// weights of ZeRO 3 by tensor and pipeline parallelism and by all devices; activations by nothing.
// Its "checkpoint" keeps 34 bytes a token and channel, which is selective recomputation
// (Korthikanti et al. 2022, arXiv 2205.05198, table 2).
PublishedEstimate Cookbook(const TrainingDescription& job) {
  const PublishedEstimate planner = {
      .name = "EleutherAI calc_transformer_mem.py",
      .assumes = "4 bytes of gradients a parameter, Adam 12; eager attention"};
  if (!TrainsAll(job)) {
    return Refused(planner, kTrainsAll);
  }
  if (job.optimizer == DescribedOptimizer::kOther) {
    return Refused(planner, "it knows Adam, Muon and SGD with momentum");
  }
  const double state = job.optimizer == DescribedOptimizer::kAdam ? 12 : 8;
  const CookbookParameters count = CookbookCount(job);
  const double parameters =
      count.rest + count.of_mlp * Number(std::max<std::int64_t>(1, job.experts));
  const double devices = Number(job.devices);
  const double model_parallel = Number(job.tensor_parallel) * Number(job.pipeline_parallel);
  const double width = Number(job.precision_bytes);
  const double weights = parameters * width / model_parallel / (job.zero_stage == 3 ? devices : 1);
  const double gradients = parameters * 4 / (job.zero_stage >= 2 ? devices : 1);
  const double optimizer = parameters * state / (job.zero_stage >= 1 ? devices : 1);
  double buffers = 0;
  if (job.devices > 1) {
    constexpr double kGathered = 5e8;  // parameters in the bucket that gathers them
    constexpr double kLive = 1e9;      // parameters that ZeRO 3 has at a time
    buffers += job.zero_stage >= 1 ? kGathered * width : 0;
    buffers += job.zero_stage == 3 ? kLive * width : 0;
  }
  const double sequence = Number(job.sequence_length);
  const double scores = job.recompute == DescribedRecompute::kNone
                            ? 5 * Number(job.heads) * sequence / Number(job.hidden_size)
                            : 0;
  const double activations = sequence * Number(job.micro_batch_size) * Number(job.hidden_size) *
                             Number(job.layers) * (34 + scores);
  return Answered(planner, weights + gradients + optimizer + buffers + activations);
}

// Weights, gradients and optimizer of the fullest shard, compute_weight_and_optimizer_memory. It
// counts parameters exactly (8,030,261,248 for Llama-3.1-8B), so the job's own are taken.
double MegatronState(const TrainingDescription& job) {
  const double embedding = Number(job.vocabulary) * Number(job.hidden_size);
  const double layers = Number(job.parameters) - (job.is_tied ? 1 : 2) * embedding;
  const bool has_both_ends = !job.is_tied && job.pipeline_parallel == 1;
  const double shard =
      (layers / Number(job.pipeline_parallel) + embedding + (has_both_ends ? embedding : 0)) /
      Number(job.tensor_parallel);
  const double data_parallel =
      Number(job.devices) / Number(job.tensor_parallel) / Number(job.pipeline_parallel);
  return shard * (job.has_distributed_optimizer ? 6 + 12 / data_parallel : 18);
}

// How many times a stage's own activations are held: interleaved stages hold more, and a pipeline
// of few micro-batches less than one for each stage.
double MegatronInFlight(const TrainingDescription& job) {
  const double stages = Number(job.pipeline_parallel);
  if (job.virtual_pipeline > 1) {
    return 1 + (stages - 1) / (stages * Number(job.virtual_pipeline));
  }
  return std::min(1.0, Number(job.micro_batches) / stages);
}

// With sequence parallelism and selective recomputation compute_activation_memory, else
// compute_activation_memory_without_sp. One sequence of 8,192 of Llama-3.1-8B on one device: 36.1
// and 37.9 GiB.
double MegatronActivations(const TrainingDescription& job) {
  const double tokens = Number(job.sequence_length) * Number(job.micro_batch_size);
  const double hidden = Number(job.hidden_size);
  const double stages = Number(job.pipeline_parallel);
  const double cut = Number(job.tensor_parallel);
  const bool is_whole = job.pipeline_parallel == 1;
  const double input = 8 * tokens * stages + tokens * hidden * stages;
  if (job.is_sequence_parallel && job.recompute == DescribedRecompute::kSelective) {
    const double layer = tokens * (18 * hidden + 4 * Number(job.ffn_size));
    const double loss = is_whole ? 4 * tokens * (hidden + Number(job.vocabulary)) : 0;
    return ((layer * Number(job.layers) + input) * MegatronInFlight(job) + loss) / cut;
  }
  const double layer = tokens * hidden * (10 + 24 / cut);
  const double loss = is_whole ? 2 * tokens * (hidden + Number(job.vocabulary) / cut) : 0;
  constexpr double kMargin = 1.05;
  return ((layer * Number(job.layers) + input) * MegatronInFlight(job) + loss) * kMargin;
}

// NVIDIA/Megatron-LM d98e8a64, megatron/training/theoretical_memory_usage.py.
PublishedEstimate Megatron(const TrainingDescription& job) {
  const PublishedEstimate planner = {
      .name = "Megatron-LM theoretical_memory_usage.py",
      .assumes =
          "18 bytes a parameter, or 6 and 12 over data parallelism; selective "
          "recomputation, whatever is asked"};
  if (const std::string_view beyond = BeyondFullAdam(job); !beyond.empty()) {
    return Refused(planner, beyond);
  }
  if (job.zero_stage > 1) {
    return Refused(planner, "it shards the optimizer alone, as ZeRO 1");
  }
  if (job.precision_bytes != 2) {
    return Refused(planner, "it knows 16-bit training alone");
  }
  TrainingDescription sharded = job;
  sharded.has_distributed_optimizer = job.has_distributed_optimizer || job.zero_stage == 1;
  return Answered(planner, MegatronState(sharded) + MegatronActivations(sharded));
}

}  // namespace

std::vector<PublishedEstimate> PublishedEstimates(const TrainingDescription& job) {
  return {Accelerate(job), DeepSpeedZero2(job), DeepSpeedZero3(job), Cookbook(job), Megatron(job)};
}

}  // namespace fourpiles
