#include "step/allocator_run.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <unordered_map>
#include <utility>

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

class Run {
 public:
  explicit Run(const Tape& tape) : tape_(tape), sizes_(TensorSizesOf(*tape.network)) {
    const auto moments = std::ssize(tape.moments);
    born_.resize(Index(moments));
    dies_.resize(Index(moments) + 1);
    for (std::size_t i = 0; i < tape.storages.size(); ++i) {
      const Storage& storage = tape.storages[i];
      if (storage.place == Place::kDevice && storage.text < 0 && storage.born < moments) {
        born_[Index(storage.born)].push_back(i);
        dies_[Index(std::min(storage.dies, moments))].push_back(i);
      }
    }
  }

  void Ask(Bytes bytes, Stream stream = Stream::kCompute) {
    events_.push_back(
        {.tensor = next_++, .bytes = bytes, .stream = static_cast<std::int32_t>(stream)});
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

  void Step(bool is_first) {
    bool needs_states = is_first;
    for (std::size_t moment = 0; moment < born_.size(); ++moment) {
      Release(dies_[moment]);
      const Action& action = tape_.actions[Index(tape_.moments[moment].action)];
      if (needs_states && action.kind == ActionKind::kStep) {
        AskForResident(true);
        needs_states = false;
      }
      for (const std::size_t storage : born_[moment]) {
        const std::int32_t first = next_;
        AskFor(tape_.storages[storage], action.kind == ActionKind::kStep);
        tensors_[storage] = {first, next_};
      }
    }
    Release(dies_.back());
  }

  std::vector<AllocatorEvent> TakeEvents() { return std::move(events_); }

 private:
  // So many tensors, which together are the storage.
  void AskForParts(const Storage& storage, const std::vector<std::int64_t>& sizes) {
    const double bytes_per_element = static_cast<double>(storage.bytes.expected.value()) /
                                     static_cast<double>(std::max<std::int64_t>(1, Sum(sizes)));
    for (const std::int64_t elements : sizes) {
      Ask(Bytes(std::llround(static_cast<double>(elements) * bytes_per_element)));
    }
  }

  void AskForTensors(const Storage& storage) {
    const auto found = sizes_.of_storage.find(storage.elements.value());
    if (found == sizes_.of_storage.end() || found->second.empty()) {
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

  void Release(const std::vector<std::size_t>& storages) {
    for (const std::size_t storage : storages) {
      for (auto [tensor, end] = tensors_.at(storage); tensor < end; ++tensor) {
        events_.push_back({.tensor = tensor});
      }
    }
  }

  const Tape& tape_;
  TensorSizes sizes_;
  std::vector<std::vector<std::size_t>> born_ = {};  // storages, by moment
  std::vector<std::vector<std::size_t>> dies_ = {};
  // Of a living storage: its tensors, from the first until before the second.
  std::unordered_map<std::size_t, std::pair<std::int32_t, std::int32_t>> tensors_ = {};
  std::vector<AllocatorEvent> events_ = {};
  std::int32_t next_ = 0;
};

}  // namespace

std::vector<AllocatorEvent> AllocatorEventsOf(const Tape& tape, std::span<const Bytes> libraries,
                                              int steps) {
  Run run(tape);
  for (const Bytes library : libraries) {
    run.Ask(library);
  }
  run.AskForResident(false);
  for (int step = 0; step < steps; ++step) {
    run.Step(step == 0);
  }
  return run.TakeEvents();
}

}  // namespace fourpiles
