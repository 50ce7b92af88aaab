#pragma once

// The peaks of many layouts of one network, without playing anew what they share.
//
// What is there before a step is there to its end, so the peak of a stage is that sum and the peak
// of what is played. What is played does not depend on how many ranks share the states, nor on
// which of the alike stages it is but for the passes that wait; and of alike stages the first has
// most of those. So few plays serve thousands of layouts, and each has the bytes of PlayedBudget.

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "plan/job.h"
#include "plan/split.h"
#include "plan/step_time.h"

namespace fourpiles {

class LayoutMemory {
 public:
  // Of all networks the trained job's is meant whose vocabulary is padded for so many ranks;
  // outlives this.
  explicit LayoutMemory(const Network& network) : network_(network) {}

  // Weights, gradients, states and buffers of the fullest stage: the peak is no less.
  Result<Bytes> AtLeast(const TrainingJob& training);

  // The fullest stage, or the first that passes the limit. Of one that passes what is hopeless, the
  // peak may be less than it is, but passes that too.
  struct Fullest {
    Bytes peak = Bytes(0);
    std::int64_t stage = 0;
    Bytes streams = Bytes(0);  // what its streams hold at the peak of each
  };
  Result<Fullest> PeakOf(const TrainingJob& training, Bytes limit, Bytes hopeless);

  // What time is estimated from, of each kind of stage.
  const std::vector<StageWork>& WorkOf(const TrainingJob& training);

  // The stage of that number.
  const RankStage& StageOf(const Layout& layout, std::int64_t number);

  std::int64_t Plays() const { return plays_; }

 private:
  using Key = std::vector<std::int64_t>;

  // Of what is there before the step: all but the batch; what the optimizer's step adds.
  struct Standing {
    Bytes resident = Bytes(0);
    Bytes temporaries = Bytes(0);
  };
  // Of what is played: the largest sum, and the sum when the optimizer steps, without what that
  // adds.
  struct Played {
    Bytes peak = Bytes(0);
    Bytes step = Bytes(0);
    Bytes streams = Bytes(0);  // PeaksOfStreams
  };

  const Network& CutOf(const Layout& layout);
  // The first of each kind of stages that are alike; all, where every so many layers run again.
  const std::vector<std::int64_t>& KindsOf(const Layout& layout, std::int64_t every);
  Result<GatheredBlocks> GatheredBy(const TrainingJob& training, std::int64_t number);
  Result<Standing> StandingOf(const TrainingJob& training, std::int64_t number);
  Result<Bytes> ResidentOfStage(const TrainingJob& training, std::int64_t number);
  // Of what is played of a stage, the least that is known without playing it.
  Bytes KeptAtLeast(const TrainingJob& training, std::int64_t number);
  static Key KeptKey(const TrainingJob& training);
  Result<Played> PlayedOf(const TrainingJob& training, std::int64_t number);

  const Network& network_;
  std::int64_t plays_ = 0;
  std::map<Key, Network> cuts_ = {};
  std::map<Key, std::vector<std::int64_t>> kinds_ = {};
  std::map<Key, RankStage> stages_ = {};
  std::map<Key, GatheredBlocks> gathered_ = {};
  std::map<Key, Standing> standing_ = {};
  std::map<Key, Played> played_ = {};
  std::map<Key, std::vector<Bytes>> kept_ = {};  // by a layer of each block of the network
  std::map<Key, std::vector<StageWork>> work_ = {};
};

}  // namespace fourpiles
