#pragma once

// The player of one part. Its passes are in play.cc, regions that run again in play_recompute.cc,
// what ranks send to one another in play_parallel.cc.

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "step/leaves.h"
#include "step/play.h"
#include "step/play_lower_bound.h"

namespace fourpiles {

// Operators of a block, by number: from the first until before the last.
struct Range {
  std::size_t first = 0;
  std::size_t last = 0;
};

// The values that come into these operators from before them.
std::vector<Value> InputsOf(const Block& block, const Range& ops);

// Operators of a layer that are run forward again.
struct Region {
  Action action = {};
  Range ops = {};
  std::vector<std::pair<Value, Tensor>> inputs = {};
  std::vector<Tensor> outputs = {};  // that are not made again
};

class Player {
 public:
  Player(const Part& part, const Profile& profile)
      : part_(part),
        profile_(profile),
        network_(*part.network),
        tape_(NewTape(part)),
        memory_(tape_),
        graph_(memory_, profile.framework.sums_in_place),
        kernels_(memory_, graph_, profile.framework, part.numbers) {}

  Result<Tape> Run();

 private:
  Result<void> CheckOperators() const;
  void Forward(std::int32_t number);
  void Backward(std::int32_t number);
  void BeginBackward(std::int32_t number);
  void Gather(std::int32_t number);
  void Prefetch(std::int32_t number);
  void CopyOut(std::int32_t number);
  void Reduce(std::int32_t number);
  void Receive(std::int32_t number);
  void LetGoOfSent();
  void Step(std::int32_t number);
  void Begin(std::int32_t action, const KernelKind& kind);

  Tensor RunBlock(const Action& action, Tensor x);
  void RunOperators(Stage& stage, const Block& block, Range ops, std::int32_t action);
  void RunRegion(Stage& stage, const Action& action, Range ops);
  std::vector<Tensor> Replay(std::int32_t number, Tensor gradient);
  Stage NewStage(const Action& action);
  Tensor RandomState();
  Tensor ParameterTensor(const Action& action, const ParameterUse& use, std::int64_t copy);
  bool IsRecomputed(const Action& action) const;
  bool Trains(const Block& block, const Range& ops) const;
  Result<Tape> Finished();
  void BeginForward(const Action& action);
  void Return();
  Tensor HandedOver(std::int32_t number);
  PassTensors HeldOver();
  void AddHeldBefore(const Tensor& held, Moment end);
  void HoldOverTheStep();

  const Block& BlockOf(const Action& action) const {
    return network_.blocks[static_cast<std::size_t>(action.block)];
  }

  const Part& part_;
  const Profile& profile_;
  const Network& network_;
  Tape tape_;
  Memory memory_;
  Autograd graph_;
  Kernels kernels_;
  std::vector<Leaves> leaves_ = {};
  PassTensors pass_ = {};
  std::vector<Region> regions_ = {};
  std::int64_t waiting_regions_ = 0;  // that have not run again yet
  Tensor hidden_ = {};                // what the last block put out
  std::vector<Tensor> held_inputs_ = {};
  std::int32_t received_edge_ = kNothing;
  // The same of passes that wait for others to run backward first.
  struct Waiting {
    std::int64_t micro_batch = 0;
    PassTensors pass = {};
    std::int64_t regions = 0;
    Tensor hidden = {};
    std::vector<Tensor> held_inputs = {};
    std::int32_t received_edge = kNothing;
  };
  std::vector<Waiting> waiting_ = {};
  std::int64_t micro_batch_ = 0;
  // Of blocks and layers whose parameters are sharded: the parameters, and the buffers that they
  // came in.
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<Tensor>> gathered_ = {};
  std::map<std::pair<std::int64_t, std::int64_t>, Tensor> came_in_ = {};
  std::set<std::pair<std::int64_t, std::int64_t>> shared_ = {};  // that have their gradients
  Tensor sent_ = {};                                             // gradients on their way
  std::vector<Tensor> gradients_ = {};                           // this rank's shares
  Moment first_logits_made_ = -1;
  // Of every forward action that has not run backward, in order.
  struct Passed {
    std::int32_t first_node = 0;
    std::int32_t entry_edge = kNothing;  // of what came in
  };
  std::vector<Passed> passed_ = {};
  bool backward_ = false;
  std::int32_t running_ = 0;  // the action that runs
};

}  // namespace fourpiles
