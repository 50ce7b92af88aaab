#include "model/compare_tensors.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "base/checked.h"
#include "base/terminal_text.h"
#include "model/tensor_groups.h"
#include "tensors/checkpoint.h"
#include "tensors/name_pattern.h"

namespace fourpiles {
namespace {

// A parameter of one layer, all experts of it.
struct Expected {
  const Block* block = nullptr;
  const Parameter* parameter = nullptr;
  std::int64_t layer = 0;
  bool whole = false;                    // found in tensors that hold all copies
  std::int64_t sources = 0;              // how many those are
  Checked elements = 0;                  // in them
  std::vector<std::int64_t> shape = {};  // of the last of them
  bool packed = false;
  std::set<std::int64_t> copies = {};  // found one by one
};

// Where a name of the file stands in the network.
struct Place {
  std::size_t expected = 0;
  std::int64_t copy = -1;  // of an expert; -1: all of them, or the only one
};

class Index {
 public:
  explicit Index(const Network& network) {
    for (const Block& block : network.blocks) {
      for (std::int64_t layer = 0; layer < block.repeat; ++layer) {
        const std::string name = WithNumber(block.name, block.first + layer);
        for (const Parameter& parameter : block.parameters) {
          places_.emplace(name.empty() ? parameter.name : name + "." + parameter.name,
                          expected_.size());
          expected_.push_back(
              {.block = &block, .parameter = &parameter, .layer = block.first + layer});
        }
      }
    }
  }

  std::vector<Expected>& All() { return expected_; }
  std::optional<Place> Find(const std::string& name) const {
    if (const auto place = places_.find(name); place != places_.end()) {
      return Place{.expected = place->second};
    }
    // The number of an expert, which stands behind that of the layer.
    std::size_t end = name.size();
    for (int tried = 0; tried < 2 && end != 0; ++tried) {
      const auto number = LastNumber(name, end);
      if (!number) {
        return std::nullopt;
      }
      std::string all = name;
      all.replace(number->first, number->second, "{}");
      if (const auto place = places_.find(all); place != places_.end()) {
        const std::int64_t copy = std::stoll(name.substr(number->first, number->second));
        const bool fits = copy < expected_[place->second].parameter->copies;
        return fits ? std::optional(Place{.expected = place->second, .copy = copy}) : std::nullopt;
      }
      end = number->first;
    }
    return std::nullopt;
  }

 private:
  // Begin and length of the last part before `end` that is a number of at most nine digits.
  static std::optional<std::pair<std::size_t, std::size_t>> LastNumber(std::string_view name,
                                                                       std::size_t end) {
    constexpr std::size_t kMostDigits = 9;
    while (end > 0) {
      const std::size_t dot = name.rfind('.', end - 1);
      const std::size_t begin = dot == std::string_view::npos ? 0 : dot + 1;
      const std::string_view part = name.substr(begin, end - begin);
      if (!part.empty() && part.size() <= kMostDigits &&
          part.find_first_not_of("0123456789") == std::string_view::npos) {
        return std::pair(begin, part.size());
      }
      end = dot == std::string_view::npos ? 0 : dot;
    }
    return std::nullopt;
  }

  std::vector<Expected> expected_;
  std::unordered_map<std::string, std::size_t> places_;  // by name, "{}" for the expert
};

// What a prefix becomes; the first that fits a name is used.
struct Prefix {
  std::string_view from;
  std::string_view to;
};
using Renaming = std::array<Prefix, 2>;

// Exports drop or add the name of the class around the layers, and multimodal checkpoints have put
// the language model in several places (transformers, _checkpoint_conversion_mapping).
constexpr Renaming kRenamings[] = {
    {},
    {{{"model.", ""}, {}}},
    {{{"", "model."}, {}}},
    {{{"language_model.", ""}, {}}},
    {{{"", "language_model."}, {}}},
    {{{"model.language_model.", "model."}, {}}},
    {{{"model.", "model.language_model."}, {}}},
    {{{"model.language_model.", "language_model.model."}, {"", "language_model."}}},
    {{{"language_model.model.", "model.language_model."}, {"language_model.", ""}}},
    {{{"", "transformer."}, {}}},
    {{{"transformer.", ""}, {}}},
    {{{"bert.", ""}, {}}},
    {{{"", "bert."}, {}}},
    {{{"vit.", ""}, {}}},
    {{{"", "vit."}, {}}},
    {{{"", "gpt_neox."}, {}}},
    {{{"model.", "backbone."}, {}}},
    {{{"", "backbone."}, {}}},
    {{{"base_model.model.", ""}, {}}},
};

std::string Renamed(const std::string& name, const Renaming& renaming) {
  for (const Prefix& prefix : renaming) {
    if ((!prefix.from.empty() || !prefix.to.empty()) && name.starts_with(prefix.from)) {
      return std::string(prefix.to) + name.substr(prefix.from.size());
    }
  }
  return name;
}

// One layer in place of several, or under another name.
struct Fused {
  std::string_view whole;
  std::vector<std::string_view> parts;
};

const std::vector<Fused>& FusedLayers() {
  static const std::vector<Fused> fused = {
      {".qkv_proj.", {".q_proj.", ".k_proj.", ".v_proj."}},
      {".gate_up_proj.", {".gate_proj.", ".up_proj."}},
      // transformers 5 keeps the experts of all models in one tensor.
      {".experts.gate_up_proj", {".experts.{}.gate_proj.weight", ".experts.{}.up_proj.weight"}},
      {".experts.down_proj", {".experts.{}.down_proj.weight"}},
      // GGUF has one name for the norm of Falcon-7B and the second one of Falcon-40B.
      {".input_layernorm.", {".ln_mlp."}},
      // And for attention's outputs, and Nemotron's linear layer in its place.
      {".self_attn.o_proj.", {".self_attn.linear_attn."}},
  };
  return fused;
}

bool SameNumber(const Checked& a, const Checked& b) {
  return a.ok() && b.ok() && a.value() == b.value();
}

class Comparison {
 public:
  Comparison(const Network& network, const std::vector<LogicalTensor>& tensors, ShapeRule rule)
      : network_(network), tensors_(tensors), rule_(rule), index_(network) {
    for (const Block& block : network.blocks) {
      const std::size_t place = block.name.find("{}");
      if (place != std::string::npos) {
        layers_.insert(block.name.substr(0, place));
      }
      has_head_ = has_head_ || IsHead(block.name + ".weight");
    }
  }

  std::vector<std::string> Differences() {
    const Renaming& renaming = BestRenaming();
    for (const LogicalTensor& tensor : tensors_) {
      const std::string name = Renamed(tensor.name, renaming);
      std::optional<Place> place = index_.Find(name);
      place = place ? place : index_.Find(tensor.name);
      if (place && TakeAt(*place, tensor)) {
        continue;
      }
      if (!place && (TakeFused(name, tensor) || IsTolerated(name))) {
        continue;
      }
      unexpected_.Add(tensor.name);
    }
    for (const Expected& expected : index_.All()) {
      Judge(expected);
    }
    return Lines();
  }

 private:
  // Tried on some of the tensors, from all over the file.
  const Renaming& BestRenaming() const {
    constexpr std::size_t kTried = 2000;
    const std::size_t step = tensors_.size() / kTried + 1;
    const Renaming* best = &kRenamings[0];
    std::size_t most = 0;
    for (const Renaming& renaming : kRenamings) {
      std::size_t found = 0;
      for (std::size_t i = 0; i < tensors_.size(); i += step) {
        found += index_.Find(Renamed(tensors_[i].name, renaming)) ? 1 : 0;
      }
      if (found > most) {
        most = found;
        best = &renaming;
      }
    }
    return *best;
  }

  // False where the place is taken already.
  bool TakeAt(const Place& place, const LogicalTensor& tensor) {
    Expected& expected = index_.All()[place.expected];
    const Parameter& parameter = *expected.parameter;
    if (place.copy < 0) {
      if (expected.sources > 0 && rule_ == ShapeRule::kExact) {
        return false;
      }
      expected.whole = true;
      ++expected.sources;
      expected.shape = tensor.shape;
      expected.packed = tensor.packed;
      expected.elements =
          expected.elements +
          (tensor.shape_known ? fourpiles::ElementsOf(tensor.shape) : CopiesOf(parameter));
      return true;
    }
    if (!expected.copies.insert(place.copy).second) {
      return false;
    }
    if (tensor.shape_known && !SameShape(tensor.shape, parameter.shape, tensor.packed)) {
      AddWrong(tensor.name, tensor.shape, parameter.shape);
    }
    return true;
  }

  // The place of a whole tensor that nothing was found for yet.
  void AddFreePlace(const std::string& name, std::vector<std::size_t>& places) {
    const auto place = index_.Find(name);
    if (place && place->copy < 0 && index_.All()[place->expected].sources == 0) {
      places.push_back(place->expected);
    }
  }

  // A tensor that stands for several of the network, or for one under another name.
  bool TakeFused(const std::string& name, const LogicalTensor& tensor) {
    for (const auto& [whole, parts] : FusedLayers()) {
      const std::size_t at = name.find(whole);
      if (at == std::string::npos) {
        continue;
      }
      std::vector<std::size_t> places;
      for (const std::string_view part : parts) {
        std::string one = name;
        AddFreePlace(one.replace(at, whole.size(), part), places);
      }
      if (places.size() < parts.size()) {
        continue;
      }
      Checked elements = 0;
      for (const std::size_t place : places) {
        Expected& expected = index_.All()[place];
        elements = elements + CopiesOf(*expected.parameter);
        expected.whole = true;
        expected.sources = kSeveral;
        expected.elements = CopiesOf(*expected.parameter);
      }
      if (tensor.shape_known && !SameNumber(elements, fourpiles::ElementsOf(tensor.shape))) {
        wrong_lines_.push_back(fmt::format("{} has {} elements, expected {}", Shown(tensor.name),
                                           OrLargest(fourpiles::ElementsOf(tensor.shape)),
                                           OrLargest(elements)));
      }
      return true;
    }
    return false;
  }

  static Checked CopiesOf(const Parameter& parameter) {
    return fourpiles::ElementsOf(parameter.shape) * parameter.copies;
  }

  bool SameShape(std::vector<std::int64_t> a, std::vector<std::int64_t> b, bool packed) const {
    if (rule_ == ShapeRule::kExact && !packed) {
      return a == b;
    }
    if (!SameNumber(fourpiles::ElementsOf(a), fourpiles::ElementsOf(b))) {
      return false;
    }
    // A matrix may lie on its side, but keeps its two lengths.
    for (std::vector<std::int64_t>* shape : {&a, &b}) {
      std::erase(*shape, 1);
      std::sort(shape->begin(), shape->end());
    }
    return a.size() != 2 || b.size() != 2 || a == b;
  }

  void Judge(const Expected& expected) {
    const Parameter& parameter = *expected.parameter;
    const std::string block = WithNumber(expected.block->name, expected.layer);
    const std::string name = block.empty() ? parameter.name : block + "." + parameter.name;
    if (!expected.whole) {
      AddMissing(expected, name);
      return;
    }
    if (rule_ == ShapeRule::kExact && parameter.copies == 1) {
      if (expected.sources == 1 && !expected.shape.empty() &&
          !SameShape(expected.shape, parameter.shape, expected.packed)) {
        AddWrong(name, expected.shape, parameter.shape);
      }
      return;
    }
    if (!SameNumber(expected.elements, CopiesOf(parameter))) {
      wrong_[fmt::format("has {} elements, expected {}", OrLargest(expected.elements),
                         OrLargest(CopiesOf(parameter)))]
          .Add(name);
    } else if (expected.sources == 1 && parameter.copies == 1 &&
               !SameShape(expected.shape, parameter.shape, expected.packed)) {
      AddWrong(name, expected.shape, parameter.shape);
    }
  }

  void AddMissing(const Expected& expected, const std::string& name) {
    const Parameter& parameter = *expected.parameter;
    if (parameter.copies == 1 && expected.copies.empty()) {
      missing_.Add(name);
      return;
    }
    std::vector<NumberRun> runs;
    std::int64_t next = 0;
    for (const std::int64_t found : expected.copies) {
      if (found > next) {
        runs.emplace_back(next, found - 1);
      }
      next = found + 1;
    }
    if (next < parameter.copies) {
      runs.emplace_back(next, parameter.copies - 1);
    }
    const std::int64_t count = parameter.copies - std::ssize(expected.copies);
    if (count == 0) {
      return;
    }
    const NamePattern pattern = PatternOf(name);
    std::vector<std::vector<NumberRun>> numbers;
    for (const std::int64_t number : pattern.numbers) {
      numbers.push_back({{number, number}});
    }
    numbers.push_back(std::move(runs));
    missing_.Add(pattern.text, numbers, count);
  }

  void AddWrong(const std::string& name, const std::vector<std::int64_t>& shape,
                const std::vector<std::int64_t>& expected) {
    wrong_[fmt::format("has shape {}, expected {}", ShapeText(shape), ShapeText(expected))].Add(
        name);
  }

  // Differences that are none.
  bool IsTolerated(std::string_view name) const {
    // Tables that older versions of transformers wrote out.
    static constexpr std::string_view kBuffers[] = {".inv_freq",
                                                    ".attn.bias",
                                                    ".attn.masked_bias",
                                                    ".attention.bias",
                                                    ".attention.masked_bias",
                                                    ".position_ids",
                                                    ".cos_cached",
                                                    ".sin_cached",
                                                    ".rope.freqs"};
    const auto is_end = [name](std::string_view end) { return name.ends_with(end); };
    if (std::ranges::any_of(kBuffers, is_end)) {
      return true;
    }
    if (!has_head_ && IsHead(name)) {
      return true;
    }
    return (LeavesOut("multi-token-prediction") && IsOfPrediction(name)) ||
           (LeavesOut("all but the language model") && IsOutside(name)) ||
           (LeavesOut("the head of ") && !IsInLayer(name).has_value());
  }

  bool LeavesOut(std::string_view what) const {
    return std::ranges::any_of(network_.left_out, [what](const std::string& part) {
      return part.find(what) != std::string::npos;
    });
  }

  // The number of the layer that a tensor belongs to.
  std::optional<std::int64_t> IsInLayer(std::string_view name) const {
    for (const std::string& prefix : layers_) {
      if (name.starts_with(prefix)) {
        const std::size_t place = prefix.size();
        const NamePattern part = PatternOf(name.substr(place, name.find('.', place) - place));
        return part.numbers.empty() ? std::nullopt : std::optional(part.numbers.front());
      }
    }
    return std::nullopt;
  }

  bool IsOfPrediction(std::string_view name) const {
    return name.starts_with("mtp.") || name.find(".mtp.") != std::string_view::npos ||
           name.find("mtp_") != std::string_view::npos ||
           name.find(".nextn.") != std::string_view::npos ||
           IsInLayer(name).value_or(-1) >= network_.num_hidden_layers.value_or(0);
  }

  static bool IsHead(std::string_view name) {
    return name.ends_with("lm_head.weight") || name.ends_with("embed_out.weight");
  }

  bool IsOutside(std::string_view name) const {
    return !IsInLayer(name) && name.find("language_model.") == std::string_view::npos;
  }

  static std::string Shown(std::string_view name) {
    constexpr std::size_t kMostLength = 120;
    return EscapeForTerminal(name.substr(0, kMostLength));
  }

  static std::string Tensors(std::int64_t count) {
    return fmt::format("{} tensor{}", count, count == 1 ? " is" : "s are");
  }

  std::vector<std::string> Lines() const {
    constexpr std::size_t kMostWrong = 3;
    std::vector<std::string> lines;
    if (missing_.Count() > 0) {
      lines.push_back(fmt::format("{} missing: {}", Tensors(missing_.Count()), missing_.Listed()));
    }
    if (unexpected_.Count() > 0) {
      lines.push_back(fmt::format("{} not part of the network: {}", Tensors(unexpected_.Count()),
                                  unexpected_.Listed()));
    }
    std::vector<std::string> wrong = wrong_lines_;
    for (const auto& [what, groups] : wrong_) {
      wrong.push_back(fmt::format("{} {}", groups.Listed(), what));
    }
    const std::size_t told = std::min(wrong.size(), kMostWrong);
    lines.insert(lines.end(), wrong.begin(), wrong.begin() + static_cast<std::ptrdiff_t>(told));
    if (told < wrong.size()) {
      lines.push_back(fmt::format("{} more differences of shape", wrong.size() - told));
    }
    return lines;
  }

  static constexpr std::int64_t kSeveral = 2;

  const Network& network_;
  const std::vector<LogicalTensor>& tensors_;
  ShapeRule rule_;
  Index index_;
  std::set<std::string> layers_;  // names of blocks, up to the number of the layer
  bool has_head_ = false;
  TensorGroups missing_;
  TensorGroups unexpected_;
  std::map<std::string, TensorGroups> wrong_;  // by what is wrong
  std::vector<std::string> wrong_lines_;
};

}  // namespace

std::vector<std::string> DifferencesFrom(const Network& network,
                                         const std::vector<LogicalTensor>& tensors,
                                         ShapeRule rule) {
  return Comparison(network, tensors, rule).Differences();
}

}  // namespace fourpiles
