#include "step/allocator_run.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

namespace fourpiles {
namespace {

std::size_t Index(std::int64_t number) {
  return static_cast<std::size_t>(number);
}

// By the elements of the tensors of a network's parameters: those of each resident storage of
// weights, which are all layers' tensors of one kind, and those of a state of all parameters.
struct TensorSizes {
  std::map<std::int64_t, std::vector<std::int64_t>> of_storage = {};  // by their sum
  std::vector<std::int64_t> trainable = {};
  std::int64_t all_trainable = 0;  // their sum
};

std::int64_t Sum(const std::vector<std::int64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
}

TensorSizes TensorSizesOf(const Network& network) {
  TensorSizes sizes;
  std::vector<std::int64_t> by_recipe;
  std::vector<std::int64_t> float32;
  for (const Block& block : network.blocks) {
    for (const Parameter& parameter : block.parameters) {
      const std::vector<std::int64_t> alike(Index(block.repeat * parameter.copies),
                                            ElementsOf(parameter) / parameter.copies);
      sizes.of_storage.try_emplace(Sum(alike), alike);
      if (parameter.trainable) {
        std::vector<std::int64_t>& trainable = parameter.float32 ? float32 : by_recipe;
        trainable.insert(trainable.end(), alike.begin(), alike.end());
      }
    }
  }
  sizes.trainable = by_recipe;
  sizes.trainable.insert(sizes.trainable.end(), float32.begin(), float32.end());
  sizes.all_trainable = Sum(sizes.trainable);
  sizes.of_storage.try_emplace(Sum(by_recipe), by_recipe);
  sizes.of_storage.try_emplace(Sum(float32), float32);
  return sizes;
}

// The numbers 0, 1, … of storages, by a moment of each.
class ByMoment {
 public:
  explicit ByMoment(std::size_t moments) : ends_(moments + 1) {}

  // First all are counted, then all are put, in the same order.
  void Count(Moment moment) { ++ends_[Index(moment) + 1]; }
  void Counted() {
    std::partial_sum(ends_.begin(), ends_.end(), ends_.begin());
    storages_.resize(ends_.back());
  }
  void Put(Moment moment, std::size_t storage) { storages_[ends_[Index(moment)]++] = storage; }

  // Of all that were put.
  std::span<const std::size_t> At(std::size_t moment) const {
    const std::size_t begin = moment == 0 ? 0 : ends_[moment - 1];
    return std::span(storages_).subspan(begin, ends_[moment] - begin);
  }

 private:
  std::vector<std::size_t> ends_ = {};
  std::vector<std::size_t> storages_ = {};
};

class Runner {
 public:
  explicit Runner(const Tape& tape)
      : tape_(tape),
        sizes_(TensorSizesOf(*tape.network)),
        born_(tape.moments.size()),
        dies_(tape.moments.size() + 1),
        tensors_(tape.storages.size()) {
    const auto moments = std::ssize(tape.moments);
    const auto for_each_of_step = [&](auto use) {
      for (std::size_t i = 0; i < tape.storages.size(); ++i) {
        const Storage& storage = tape.storages[i];
        if (storage.place == Place::kDevice && storage.text < 0 && storage.born < moments) {
          use(i, storage.born, std::min(storage.dies, moments));
        }
      }
    };
    for_each_of_step([&](std::size_t /*storage*/, Moment born, Moment dies) {
      born_.Count(born);
      dies_.Count(dies);
    });
    born_.Counted();
    dies_.Counted();
    for_each_of_step([&](std::size_t storage, Moment born, Moment dies) {
      born_.Put(born, storage);
      dies_.Put(dies, storage);
    });
  }

  AllocatorRun Run(std::span<const Bytes> libraries, int steps) {
    for (const Bytes library : libraries) {
      Ask(library);
    }
    AskForResident(false);
    run_.before = std::exchange(events_, {});
    AskForResident(true);
    run_.born = std::exchange(events_, {});
    Step();
    run_.step = std::move(events_);
    run_.steps = steps;
    return std::move(run_);
  }

 private:
  void Ask(Bytes bytes, Stream stream = Stream::kCompute) {
    events_.push_back(
        {.tensor = next_++, .stream = static_cast<std::int32_t>(stream), .bytes = bytes});
  }

  // What is resident: the optimizer's states, or all else.
  void AskForResident(bool states) {
    for (const Storage& storage : tape_.storages) {
      const bool counts = storage.place == Place::kDevice && storage.pile != Pile::kOverhead;
      if (counts && storage.text >= 0 && states == (storage.pile == Pile::kOptimizerState)) {
        AskForTensors(storage);
      }
    }
  }

  // The optimizer's states are born as it steps first.
  void Step() {
    bool has_states = false;
    for (std::size_t moment = 0; moment < tape_.moments.size(); ++moment) {
      Release(dies_.At(moment));
      const Action& action = tape_.actions[Index(tape_.moments[moment].action)];
      const bool steps = action.kind == ActionKind::kStep;
      if (steps && !std::exchange(has_states, true)) {
        run_.born_at = events_.size();
      }
      for (const std::size_t storage : born_.At(moment)) {
        const std::int32_t first = next_;
        AskFor(tape_.storages[storage], steps);
        tensors_[storage] = {first, next_};
      }
    }
    Release(dies_.At(tape_.moments.size()));
    if (!has_states) {
      run_.born.clear();
    }
  }

  // So many tensors, which together are the storage.
  void AskForParts(const Storage& storage, const std::vector<std::int64_t>& sizes) {
    const double bytes_per_element = static_cast<double>(storage.bytes.expected.value()) /
                                     static_cast<double>(std::max<std::int64_t>(1, Sum(sizes)));
    for (const std::int64_t elements : sizes) {
      Ask(Bytes(std::llround(static_cast<double>(elements) * bytes_per_element)));
    }
  }

  void AskForTensors(const Storage& storage) {
    const bool is_of_parameters = storage.pile == Pile::kWeights ||
                                  storage.pile == Pile::kGradients ||
                                  storage.pile == Pile::kOptimizerState;
    const auto found = sizes_.of_storage.find(storage.elements.value());
    if (!is_of_parameters || found == sizes_.of_storage.end() || found->second.empty()) {
      Ask(ExpectedBytes(storage));
    } else {
      AskForParts(storage, found->second);
    }
  }

  // What an optimizer needs over all parameters kernel by kernel is a tensor for each of them.
  void AskFor(const Storage& storage, bool is_of_step) {
    const std::int64_t parameters = sizes_.all_trainable;
    const std::int64_t bytes = storage.bytes.expected.value();
    if (is_of_step && parameters > 0 && bytes > 0 && bytes % parameters == 0) {
      AskForParts(storage, sizes_.trainable);
      return;
    }
    for (std::int64_t copy = 0; copy < storage.copies; ++copy) {
      Ask(storage.bytes.expected, storage.stream);
    }
  }

  void Release(std::span<const std::size_t> storages) {
    for (const std::size_t storage : storages) {
      for (auto [tensor, end] = tensors_[storage]; tensor < end; ++tensor) {
        events_.push_back({.tensor = tensor});
      }
    }
  }

  const Tape& tape_;
  TensorSizes sizes_;
  ByMoment born_;
  ByMoment dies_;
  // By storage: its tensors, from the first until before the second.
  std::vector<std::pair<std::int32_t, std::int32_t>> tensors_ = {};
  std::vector<AllocatorEvent> events_ = {};
  AllocatorRun run_ = {};
  std::int32_t next_ = 0;
};

}  // namespace

AllocatorRun AllocatorRunOf(const Tape& tape, std::span<const Bytes> libraries, int steps) {
  return Runner(tape).Run(libraries, steps);
}

}  // namespace fourpiles
