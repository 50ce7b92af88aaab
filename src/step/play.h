#pragma once

// Plays the part of one rank: its actions run in order on shapes alone, and every allocation is
// born and dies at a moment.

#include <memory>
#include <optional>

#include "step/optimizer.h"
#include "step/profile.h"
#include "step/schedule.h"
#include "step/tape.h"

namespace fourpiles {

// What is run forward again in the backward pass, rather than kept.
enum class RecomputeKind {
  kNone,
  kLayers,  // whole layers: of each its input is kept (Chen et al. 2016, arXiv 1604.06174)
  // Layers, but for what is dear to compute: every second matrix product, attention, and sums over
  // ranks are kept beside the layer's input (torchtitan, selective_ac_option "op").
  kOperators,
  kAttention,  // the core of attention (Korthikanti et al. 2022, arXiv 2205.05198, section 5)
};
struct Recompute {
  RecomputeKind kind = RecomputeKind::kNone;
  std::int64_t every = 1;  // layers 0, K, 2K, …
  // As a function of its own, whose output needs a gradient only where its input does (PyTorch,
  // torch/utils/checkpoint.py, use_reentrant=True).
  bool reentrant = false;
};

// What is there before the first action and after the last.
struct Resident {
  std::vector<Storage> storages = {};  // their `text` counts from 0
  std::vector<StorageText> texts = {};

  void Add(Storage storage, StorageText text);
  void Append(Resident other);
};

// What is gathered of the blocks of a network whose parameters are sharded, and what becomes of
// their gradients. By block, of one layer.
struct GatheredBlocks {
  std::vector<Bytes> weights = {};    // as they are computed with
  std::vector<Bytes> sent = {};       // gradients, as they are sent; 0: as they are
  std::vector<Bytes> gradients = {};  // this rank's share, born when it comes; 0: it is there
  std::int64_t ranks = 1;             // that have the shares
  bool own_streams = false;           // FSDP: they come and go in streams of their own
};

// One of the distinct roles in a job: all that a rank holds and does.
struct Part {
  std::string rank = {};   // "rank 0", "ranks 0 to 62"
  std::int64_t ranks = 1;  // how many are alike
  std::shared_ptr<const Network> network = {};
  std::shared_ptr<const Resident> resident = {};
  std::vector<Action> schedule = {};
  Batch batch = {};
  Numbers numbers = {};
  ElementType activation_format = kFloat32;  // of a lower bound
  GradientUse gradients = GradientUse::kBorn;
  Recompute recompute = {};
  // Frozen parameters that are kept as codes, by block and parameter; empty: none.
  std::vector<std::vector<bool>> coded = {};
  GatheredBlocks gathered = {};
  bool gathers_stay = false;  // from the forward to the backward pass
  // What a stage of a pipeline is given by the one before, for each chunk of its layers.
  std::optional<Shape> received = {};
  // What layers keep for the backward pass stands on the host until then.
  bool offloads_activations = false;
  // The micro-batch before may have been as long: what is held from one to the next counts in full.
  bool holds_over_steps = true;
  // False: nothing is kept for a backward pass, as under torch.no_grad().
  bool records = true;
  // The optimizer makes its states as it steps.
  bool is_first_step = false;
  Bytes step_temporaries = Bytes(0);  // of the optimizer
};

// Error: sizes whose product passes 2^53; an operator that the profile has no rule for.
Result<Tape> Play(const Part& part, const Profile& profile);

}  // namespace fourpiles
