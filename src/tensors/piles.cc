#include "tensors/piles.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/ascii.h"
#include "base/keyed_hash.h"
#include "fourpiles/number_format.h"

namespace fourpiles {
namespace {

using Parts = std::vector<std::string_view>;

// What optimizers keep: torch.optim, bitsandbytes, Adafactor of transformers.
constexpr std::array kMoments = std::to_array<std::string_view>({
    "acc_delta",
    "absmax1",
    "absmax2",
    "ax",
    "eta",
    "exp_avg",
    "exp_avg_res_row",
    "exp_avg_sq",
    "exp_avg_sq_col",
    "exp_avg_sq_row",
    "exp_inf",
    "grad_avg",
    "master",
    "max_exp_avg_sq",
    "momentum_buffer",
    "mu",
    "mu_product",
    "prev",
    "qmap1",
    "qmap2",
    "square_avg",
    "state1",
    "state2",
    "step",
    "step_size",
    "sum",
});
constexpr std::array kContainers = std::to_array<std::string_view>(
    {"current_model_state", "ema", "ema_model", "generator", "model", "model_state_dict", "module",
     "net", "network", "state_dict", "weights"});
// Where moving averages of the weights lie: torchvision and latent diffusion ("model_ema"), timm
// ("state_dict_ema"), YOLO and DiT ("ema"), MMEngine and callbacks of Lightning
// ("ema_state_dict", "ema_weights").
constexpr std::array kAverages = std::to_array<std::string_view>(
    {"ema", "ema_model", "ema_model_state_dict", "ema_params", "ema_state_dict", "ema_weights",
     "model_ema", "module_ema", "state_dict_ema"});
// Lightning's WeightAveraging keeps the weights here, and their averages as "state_dict"
// (callbacks/weight_averaging.py, on_save_checkpoint()).
constexpr std::string_view kBesideAverages = "current_model_state.";
// What Lightning's checkpoints have beside weights and optimizers.
constexpr std::array kTrainer =
    std::to_array<std::string_view>({"averaging_state", "callbacks", "loops", "lr_schedulers"});
constexpr std::array kGradients =
    std::to_array<std::string_view>({"grad", "grads", "gradient", "gradients"});

template <class Words>
bool IsOneOf(std::string_view word, const Words& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

Parts PartsOf(std::string_view name) {
  Parts parts;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    parts.push_back(name.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

bool IsOptimizerWord(std::string_view part) {
  const std::string lower = LowerCase(part);
  return lower == "opt" || lower.find("optim") != std::string::npos;
}

// "state", a number or a name, a moment: "state.0.exp_avg".
bool EndsAsState(const Parts& parts) {
  if (parts.size() < 3 || !IsOneOf(parts.back(), kMoments)) {
    return false;
  }
  return std::find(parts.begin(), parts.end() - 2, "state") != parts.end() - 2;
}

bool IsOptimizer(const Parts& parts) {
  return EndsAsState(parts) ||
         (parts.size() > 1 && std::any_of(parts.begin(), parts.end() - 1, IsOptimizerWord));
}

bool IsGradient(const Parts& parts) {
  return parts.size() > 1 &&
         (IsOneOf(parts.front(), kGradients) || IsOneOf(parts.back(), kGradients));
}

// At the top or within a container, for a layer deeper down may have such a name too; of callbacks
// and optimizers anywhere.
bool IsAverage(const Parts& parts) {
  const auto is_average = [](std::string_view part) { return IsOneOf(part, kAverages); };
  if (parts.size() > 1 && (parts[0] == "callbacks" || parts[0] == "optimizer_states")) {
    return std::any_of(parts.begin() + 1, parts.end() - 1, is_average);
  }
  return (parts.size() > 1 && is_average(parts[0])) ||
         (parts.size() > 2 && IsOneOf(parts[0], kContainers) && is_average(parts[1]));
}

bool IsRandom(const Parts& parts) {
  return std::any_of(parts.begin(), parts.end(), [](std::string_view part) {
    const std::string lower = LowerCase(part);
    return lower == "rng" || lower.find("rng_state") != std::string::npos;
  });
}

// Of most names a quick look says that they are weights.
bool IsPlainly(std::string_view name) {
  constexpr std::array kWords =
      std::to_array<std::string_view>({"opt", "Opt", "OPT", "state.", "grad", "rng", "RNG", "Rng",
                                       "ema", "callbacks.", "loops.", "lr_schedulers."});
  return std::none_of(kWords.begin(), kWords.end(), [&](std::string_view word) {
    return name.find(word) != std::string_view::npos;
  });
}

TensorPile PileByName(const Parts& parts) {
  if (IsRandom(parts)) {
    return TensorPile::kOther;
  }
  if (IsAverage(parts)) {
    return TensorPile::kAverages;
  }
  if (parts.size() > 1 && IsOneOf(parts[0], kTrainer)) {
    return TensorPile::kOther;
  }
  if (IsOptimizer(parts)) {
    return TensorPile::kOptimizer;
  }
  return IsGradient(parts) ? TensorPile::kGradients : TensorPile::kWeights;
}

// A state of the optimizer by its number: "optimizer.state" and 3.
struct Numbered {
  std::string_view optimizer = {};
  std::int64_t number = -1;
};

Numbered NumberOf(std::string_view name, std::string_view moment) {
  name.remove_suffix(std::min(name.size(), moment.size() + 1));
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) {
    return {};
  }
  const std::string_view digits = name.substr(dot + 1);
  std::int64_t number = -1;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool is_number = read.ec == std::errc() && read.ptr == digits.data() + digits.size();
  return is_number && number >= 0 ? Numbered{name.substr(0, dot), number} : Numbered{};
}

// The name without what holds it: "model.0.weight" of the container "model" is "0.weight".
std::string_view WithoutContainer(std::string_view name) {
  const std::size_t dot = name.find('.');
  return dot != std::string_view::npos && IsOneOf(name.substr(0, dot), kContainers)
             ? name.substr(dot + 1)
             : name;
}

// Finds the weights that states and gradients are of.
class Weights {
 public:
  Weights(const std::vector<FileTensor>& tensors, std::vector<PiledTensor>& piles)
      : tensors_(tensors), piles_(piles) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (piles[i].pile == TensorPile::kWeights) {
        by_name_.try_emplace(WithoutContainer(tensors[i].name), static_cast<std::int32_t>(i));
        if (MayBeTrained(tensors[i])) {
          by_shape_[tensors[i].shape].push_back(static_cast<std::int32_t>(i));
          trained_.push_back(static_cast<std::int32_t>(i));
        }
      }
    }
  }

  void Match() {
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      if (piles_[i].pile == TensorPile::kGradients) {
        piles_[i].weight = WeightOfGradient(tensors_[i].name);
      } else if (piles_[i].pile == TensorPile::kAverages) {
        piles_[i].weight = WeightOfAverage(tensors_[i].name);
      } else if (piles_[i].pile == TensorPile::kOptimizer && !piles_[i].moment.empty()) {
        AddState(i);
      }
    }
    MatchNumbers();
  }

 private:
  // The states of one parameter: their indices, and the shape of its moments.
  struct Parameter {
    std::vector<std::size_t> states = {};
    const std::vector<std::int64_t>* shape = nullptr;
  };

  // "grads.0.weight" or "0.weight.grad"
  std::int32_t WeightOfGradient(std::string_view name) const {
    const std::size_t first = name.find('.');
    if (IsOneOf(name.substr(0, first), kGradients)) {
      return Find(name.substr(first + 1));
    }
    return Find(WithoutContainer(name.substr(0, name.rfind('.'))));
  }

  // "ema.0.weight", "model_ema.module.0.weight", "callbacks.EMA.ema_state_dict.0.weight"
  std::int32_t WeightOfAverage(std::string_view name) const {
    std::string_view rest = WithoutContainer(name);
    std::string_view after = name;
    for (std::size_t dot = 0; (dot = after.find('.')) != std::string_view::npos;) {
      const bool is_average = IsOneOf(after.substr(0, dot), kAverages);
      after.remove_prefix(dot + 1);
      if (is_average) {
        rest = after;
        break;
      }
    }
    const std::int32_t found = Find(rest);
    return found >= 0 ? found : Find(WithoutContainer(rest));
  }

  std::int32_t Find(std::string_view name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? -1 : found->second;
  }

  // No buffer of a norm, no mask or counter, and no second name of a weight that is tied.
  bool MayBeTrained(const FileTensor& tensor) {
    const std::string_view name = tensor.name;
    const bool is_buffer = name.ends_with("running_mean") || name.ends_with("running_var") ||
                           name.ends_with("num_batches_tracked");
    const bool is_tied =
        tensor.storage >= 0 && !places_.emplace(tensor.storage, tensor.offset).second;
    const bool is_real = tensor.type == nullptr || FindFormat(tensor.type->name).has_value();
    return is_real && !is_buffer && !is_tied;
  }

  // By its number, or by the name of the weight between "state." and the moment.
  void AddState(std::size_t index) {
    const std::string_view name = tensors_[index].name;
    const Numbered numbered = NumberOf(name, piles_[index].moment);
    if (numbered.number < 0) {
      const std::size_t state = name.find("state.");
      const std::size_t end = name.size() - piles_[index].moment.size() - 1;
      if (state != std::string_view::npos && state + 6 < end) {
        piles_[index].weight = Find(WithoutContainer(name.substr(state + 6, end - state - 6)));
      }
      return;
    }
    Parameter& parameter = parameters_[numbered.optimizer][numbered.number];
    parameter.states.push_back(index);
    if (piles_[index].moment != "step") {
      parameter.shape = &tensors_[index].shape;
    }
  }

  using Parameters = std::map<std::int64_t, Parameter>;

  // Where number n has the shape of trained weight n: of one group, whatever has no state.
  bool MatchPlaces(const Parameters& parameters) {
    std::vector<std::int32_t> found;
    found.reserve(parameters.size());
    for (const auto& [number, parameter] : parameters) {
      const auto place = static_cast<std::size_t>(number);
      const bool fits =
          parameter.shape != nullptr && place < trained_.size() &&
          tensors_[static_cast<std::size_t>(trained_[place])].shape == *parameter.shape;
      if (!fits) {
        return false;
      }
      found.push_back(trained_[place]);
    }
    Take(parameters, found);
    return true;
  }

  // Each number takes the next weight of its shape; all or none of an optimizer, and none where a
  // number is missing, whose weight could be any.
  void MatchShapes(const Parameters& parameters) {
    if (parameters.rbegin()->first + 1 != static_cast<std::int64_t>(parameters.size())) {
      return;
    }
    std::map<std::vector<std::int64_t>, std::size_t> next;
    std::vector<std::int32_t> found;
    found.reserve(parameters.size());
    for (const auto& [number, parameter] : parameters) {
      const auto weights =
          parameter.shape == nullptr ? by_shape_.end() : by_shape_.find(*parameter.shape);
      if (weights == by_shape_.end()) {
        return;
      }
      const std::size_t place = next[*parameter.shape]++;
      if (place >= weights->second.size()) {
        return;
      }
      found.push_back(weights->second[place]);
    }
    Take(parameters, found);
  }

  void MatchNumbers() {
    for (const auto& [optimizer, parameters] : parameters_) {
      if (!MatchPlaces(parameters)) {
        MatchShapes(parameters);
      }
    }
  }

  void Take(const Parameters& parameters, const std::vector<std::int32_t>& weights) {
    auto weight = weights.begin();
    for (const auto& [number, parameter] : parameters) {
      for (const std::size_t state : parameter.states) {
        piles_[state].weight = *weight;
      }
      ++weight;
    }
  }

  const std::vector<FileTensor>& tensors_;
  std::vector<PiledTensor>& piles_;
  std::unordered_map<std::string_view, std::int32_t, KeyedHash> by_name_ = {};
  std::set<std::pair<std::int32_t, std::int64_t>> places_ = {};  // storage and offset
  std::map<std::vector<std::int64_t>, std::vector<std::int32_t>> by_shape_ = {};
  std::vector<std::int32_t> trained_ = {};
  std::map<std::string_view, Parameters> parameters_ = {};
};

// The name of the weight whose only copy this is: DeepSpeed's ZeRO 3 leaves trained weights to the
// optimizer, as "optimizer.state.NAME.master" in float32. Empty: there is another copy, or none.
std::string_view NameOfMaster(std::string_view name, const PiledTensor& pile) {
  constexpr std::string_view kBegin = "optimizer.state.";
  const bool is_master = pile.moment == "master" && pile.weight < 0 && name.starts_with(kBegin) &&
                         NumberOf(name, pile.moment).number < 0;
  const std::size_t around = kBegin.size() + pile.moment.size() + 1;
  return is_master && name.size() > around ? name.substr(kBegin.size(), name.size() - around)
                                           : std::string_view();
}

// Averages without the weights that they are of: all else together is smaller than one of them.
bool AreAlone(const std::vector<FileTensor>& tensors, const std::vector<PiledTensor>& piles) {
  Checked weights = 0;
  std::int64_t largest = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (piles[i].pile == TensorPile::kWeights) {
      weights = weights + tensors[i].elements;
    } else if (piles[i].pile == TensorPile::kAverages) {
      largest = std::max(largest, tensors[i].elements);
    }
  }
  return OrLargest(weights) < largest;
}

void TakeForWeights(TensorPile pile, std::vector<PiledTensor>& piles) {
  for (PiledTensor& piled : piles) {
    piled.pile = piled.pile == pile ? TensorPile::kWeights : piled.pile;
  }
}

bool IsOfPyTorch(std::string_view format) {
  return format.starts_with("torch") || format == "distcp";
}

}  // namespace

std::string_view Name(TensorPile pile) {
  switch (pile) {
    case TensorPile::kWeights:
      return "weights";
    case TensorPile::kAverages:
      return "ema";
    case TensorPile::kGradients:
      return "gradients";
    case TensorPile::kOptimizer:
      return "optimizer";
    case TensorPile::kOther:
      break;
  }
  return "other";
}

std::vector<PiledTensor> TensorPilesOf(const std::vector<FileTensor>& tensors) {
  std::vector<PiledTensor> piles(tensors.size());
  const bool has_averages = std::ranges::any_of(
      tensors, [](const FileTensor& tensor) { return tensor.name.starts_with(kBesideAverages); });
  bool any = false;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::string_view name = tensors[i].name;
    if (has_averages && name.starts_with("state_dict.")) {
      piles[i].pile = TensorPile::kAverages;
      any = true;
    }
    if (piles[i].pile == TensorPile::kAverages || IsPlainly(name)) {
      continue;
    }
    const Parts parts = PartsOf(name);
    piles[i].pile = PileByName(parts);
    if (piles[i].pile == TensorPile::kOptimizer && IsOneOf(parts.back(), kMoments)) {
      piles[i].moment = parts.back();
    }
    any = any || piles[i].pile != TensorPile::kWeights;
  }
  if (any && AreAlone(tensors, piles)) {
    TakeForWeights(TensorPile::kAverages, piles);
  }
  if (any) {
    Weights(tensors, piles).Match();
  }
  return piles;
}

void KeepWeightsAlone(Checkpoint& checkpoint) {
  std::vector<FileTensor>& tensors = checkpoint.tensors;
  const std::vector<PiledTensor> piles = TensorPilesOf(tensors);
  std::set<std::tuple<std::int32_t, std::int64_t, std::vector<std::int64_t>>> seen;
  std::vector<FileTensor> weights;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const FileTensor& tensor = tensors[i];
    const CheckpointFile& file = checkpoint.files[static_cast<std::size_t>(tensor.file)];
    const bool is_weight =
        piles[i].pile == TensorPile::kWeights &&
        (tensor.storage < 0 || seen.emplace(tensor.storage, tensor.offset, tensor.shape).second);
    const std::string master(NameOfMaster(tensor.name, piles[i]));
    if (is_weight || !IsOfPyTorch(file.format)) {
      weights.push_back(std::move(tensors[i]));
    } else if (!master.empty()) {
      weights.push_back(std::move(tensors[i]));
      weights.back().name = master;
    }
  }
  tensors = std::move(weights);
}

}  // namespace fourpiles
