#include "audit/training_state.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/try.h"
#include "fourpiles/formats.h"
#include "tensors/piles.h"

namespace fourpiles {
namespace {

std::size_t Index(std::int32_t number) {
  return static_cast<std::size_t>(number);
}

std::string_view WordOf(StatePart part) {
  return part == StatePart::kFirst ? "first" : "second";
}

// A scalar that counts steps: "optimizer.step", "opt_state/0/count".
bool CountsSteps(const FileTensor& tensor) {
  const auto parts = NameParts(tensor.name);
  return tensor.elements == 1 && !parts.empty() &&
         (parts.back() == "step" || parts.back() == "count" || parts.back() == "iteration");
}

bool HoldsNumbers(const FileTensor& tensor) {
  return tensor.type != nullptr && tensor.type->block_elements == 1 &&
         tensor.type->name != "bool" && FindFormat(tensor.type->name).has_value();
}

// What a tensor of the state is, and of which weight; -1: of none.
struct Role {
  std::optional<StatePart> part = {};
  std::int32_t weight = -1;
};

class Finder {
 public:
  Finder(const Checkpoint& weights, const Checkpoint& state,
         const std::optional<MomentPatterns>& patterns)
      : weights_(weights), state_(state), patterns_(patterns) {}

  Result<TrainingState> Find() && {
    NameWeights();
    roles_.resize(state_.tensors.size());
    if (patterns_) {
      MatchPatterns();
    } else {
      MatchPiles();
      MatchWords();
    }
    TRY_VOID(Join());
    TRY_VOID(CheckFound());
    return std::move(result_);
  }

 private:
  bool IsOneFile() const { return &weights_ == &state_; }

  void NameWeights() {
    const std::vector<PiledTensor> piles = TensorPilesOf(weights_.tensors);
    for (std::size_t i = 0; i < piles.size(); ++i) {
      if (piles[i].pile == TensorPile::kWeights) {
        candidates_.push_back(static_cast<std::int32_t>(i));
        names_.Add(weights_.tensors[i].name, static_cast<std::int32_t>(i));
      }
    }
    NameMasters(piles);
  }

  // ZeRO 3 leaves no weights beside the optimizer's float32 copies of them
  // (tensors/deepspeed_join.h): "optimizer.state.NAME.master".
  void NameMasters(const std::vector<PiledTensor>& piles) {
    constexpr std::string_view kMaster = ".master";
    for (std::size_t i = 0; i < piles.size(); ++i) {
      const std::string_view name = weights_.tensors[i].name;
      if (piles[i].pile == TensorPile::kOptimizer && name.ends_with(kMaster)) {
        names_.Add(name.substr(0, name.size() - kMaster.size()), static_cast<std::int32_t>(i));
      }
    }
  }

  void MatchPatterns() {
    for (std::size_t i = 0; i < roles_.size(); ++i) {
      const std::string& name = state_.tensors[i].name;
      for (const auto& [part, pattern] : {std::pair(StatePart::kFirst, &patterns_->first),
                                          {StatePart::kSecond, &patterns_->second}}) {
        if (const auto within = NameWithin(*pattern, name)) {
          roles_[i] = {.part = part, .weight = names_.Find(*within)};
        }
      }
    }
  }

  // As PyTorch numbers or names them (tensors/piles.h), over the tensors of both files together.
  void MatchPiles() {
    std::vector<FileTensor> all;
    std::vector<std::int32_t> place;  // in the file that it is of
    for (const std::int32_t weight : candidates_) {
      all.push_back(weights_.tensors[Index(weight)]);
      place.push_back(weight);
    }
    const std::vector<PiledTensor> own = TensorPilesOf(state_.tensors);
    for (std::size_t i = 0; i < own.size(); ++i) {
      if (own[i].pile == TensorPile::kOptimizer) {
        optimizers_.insert(static_cast<std::int32_t>(i));
        all.push_back(state_.tensors[i]);
        place.push_back(static_cast<std::int32_t>(i));
      }
    }
    const std::vector<PiledTensor> piles = TensorPilesOf(all);
    for (std::size_t i = candidates_.size(); i < piles.size(); ++i) {
      const std::string_view moment = piles[i].moment;
      Role& role = roles_[Index(place[i])];
      role.weight = piles[i].weight < 0 ? -1 : place[Index(piles[i].weight)];
      role.part = moment == "step" ? StatePart::kStep : StatePartOf(moment, false);
    }
  }

  void MatchWords() {
    for (std::size_t i = 0; i < roles_.size(); ++i) {
      Role& role = roles_[i];
      const bool is_optimizers = optimizers_.contains(static_cast<std::int32_t>(i));
      if (role.weight >= 0 || (role.part && *role.part == StatePart::kStep)) {
        continue;
      }
      const auto moment = MomentNameOf(state_.tensors[i].name, is_optimizers);
      if (moment) {
        const std::int32_t weight = names_.Find(*moment);
        // A word alone is no proof: a layer may have that name.
        role = is_optimizers || weight >= 0 || role.part ? Role{moment->part, weight} : Role{};
      }
    }
  }

  Result<void> Join() {
    std::map<std::int32_t, WeightState> joined;
    for (std::size_t i = 0; i < roles_.size(); ++i) {
      const auto& [part, weight] = roles_[i];
      const auto index = static_cast<std::int32_t>(i);
      if (!part || *part == StatePart::kStep || weight < 0) {
        TakeStep(index);
        if (part && *part != StatePart::kStep) {
          orphans_.push_back(index);
        }
        continue;
      }
      TRY_VOID(CheckShape(index, weight, *part));
      WeightState& entry =
          joined.try_emplace(weight, WeightState{weight, -1, -1, -1}).first->second;
      (*part == StatePart::kFirst ? entry.first : entry.second) = index;
    }
    for (const auto& [weight, entry] : joined) {
      TRY_VOID(CheckPair(entry));
      result_.weights.push_back(entry);
      const auto step = steps_.find(weight);
      result_.weights.back().step = step == steps_.end() ? -1 : step->second;
    }
    ListWithoutState(joined);
    return {};
  }

  void TakeStep(std::int32_t index) {
    const Role& role = roles_[Index(index)];
    if (role.part && *role.part == StatePart::kStep && role.weight >= 0) {
      steps_.emplace(role.weight, index);
    } else if (result_.step < 0 && CountsSteps(state_.tensors[Index(index)])) {
      result_.step = index;
    }
  }

  Result<void> CheckShape(std::int32_t index, std::int32_t weight, StatePart part) const {
    const FileTensor& moment = state_.tensors[Index(index)];
    const FileTensor& of = weights_.tensors[Index(weight)];
    if (moment.shape == of.shape) {
      return {};
    }
    return BadInput(
        {.where = fmt::format("{}: tensor \"{}\"", state_.path, moment.name),
         .found = fmt::format("a {} moment of shape {}", WordOf(part), ShapeText(moment.shape)),
         .expected = fmt::format("the weight \"{}\" has {}", of.name, ShapeText(of.shape)),
         .hint = "the state may be of another model"});
  }

  Result<void> CheckPair(const WeightState& entry) const {
    if (entry.first >= 0 && entry.second >= 0) {
      return {};
    }
    const bool has_first = entry.first >= 0;
    const FileTensor& there = state_.tensors[Index(has_first ? entry.first : entry.second)];
    return BadInput(
        {.where = fmt::format("{}: tensor \"{}\"", state_.path, there.name),
         .found = fmt::format("the {} moment of \"{}\" alone", has_first ? "first" : "second",
                              weights_.tensors[Index(entry.weight)].name),
         .expected = fmt::format("expected the {} one too", has_first ? "second" : "first"),
         .hint = "only optimizers of the Adam family are audited"});
  }

  Result<void> CheckFound() const {
    if (!orphans_.empty()) {
      const FileTensor& first = state_.tensors[Index(orphans_.front())];
      return BadInput({.where = state_.path,
                       .found = fmt::format("{} moments that belong to no weight, the first \"{}\" "
                                            "of shape {}",
                                            orphans_.size(), first.name, ShapeText(first.shape)),
                       .expected = fmt::format("expected one of {} weights of {}",
                                               candidates_.size(), weights_.path),
                       .hint = "the state may be of another model"});
    }
    if (result_.weights.empty()) {
      return NothingFound();
    }
    return {};
  }

  Result<void> NothingFound() const {
    const std::string looked_for =
        patterns_ ? fmt::format("looked for \"{}\" and \"{}\" with the names of weights",
                                patterns_->first, patterns_->second)
                  : "looked for exp_avg and exp_avg_sq, adam_m and adam_v, mu and nu, Adam and "
                    "Adam_1 before or behind the names of weights, or by PyTorch's numbers";
    return BadInput({.where = state_.path,
                     .found = "no optimizer state of the Adam family",
                     .expected = looked_for,
                     .hint = "--moments \"opt.m.{name},opt.v.{name}\" names other ones"});
  }

  // Weights of real numbers that no state is of; a second name of one that has some is none.
  void ListWithoutState(const std::map<std::int32_t, WeightState>& joined) {
    const auto place_of = [&](std::int32_t weight) {
      const FileTensor& tensor = weights_.tensors[Index(weight)];
      return std::tuple(tensor.storage, tensor.offset);
    };
    std::set<std::tuple<std::int32_t, std::int64_t>> places;
    for (const auto& [weight, entry] : joined) {
      places.insert(place_of(weight));
    }
    for (const std::int32_t weight : candidates_) {
      const FileTensor& tensor = weights_.tensors[Index(weight)];
      const bool is_tied = tensor.storage >= 0 && places.contains(place_of(weight));
      const bool is_state =
          IsOneFile() && (roles_[Index(weight)].part.has_value() || weight == result_.step);
      if (!joined.contains(weight) && HoldsNumbers(tensor) && !is_tied && !is_state) {
        result_.without_state.push_back(weight);
      }
    }
  }

  const Checkpoint& weights_;
  const Checkpoint& state_;
  const std::optional<MomentPatterns>& patterns_;
  std::vector<std::int32_t> candidates_ = {};  // weights, and what may be one
  WeightNames names_ = {};
  std::set<std::int32_t> optimizers_ = {};  // tensors of the state that piles.h takes for such
  std::vector<Role> roles_ = {};            // as the tensors of the state
  std::map<std::int32_t, std::int32_t> steps_ = {};  // of weights
  std::vector<std::int32_t> orphans_ = {};
  TrainingState result_ = {};
};

}  // namespace

Result<TrainingState> FindTrainingState(const Checkpoint& weights, const Checkpoint& state,
                                        const std::optional<MomentPatterns>& patterns) {
  return Finder(weights, state, patterns).Find();
}

}  // namespace fourpiles
