#include "tensors/deepspeed_ranks.h"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

#include "base/ascii.h"
#include "base/checked.h"
#include "base/try.h"
#include "tensors/checkpoint.h"
#include "tensors/pickle_fields.h"
#include "tensors/torch.h"
#include "tensors/torch_tensors.h"

namespace fourpiles {
namespace {

constexpr std::size_t kMostKeys = 1'000'000;                      // of the state dict of a rank
constexpr std::size_t kMostShapeBytes = std::size_t{256} << 20U;  // of names and shapes
constexpr std::size_t kAlwaysFineBytes = std::size_t{16} << 20U;  // of them
constexpr std::size_t kBytesOfAValue = 200;  // of the pickle; each shape has five and more
constexpr std::string_view kStageEnum = "deepspeed.runtime.zero.config.ZeroStageEnum";
// The members of ZeroStageEnum from 0 on.
constexpr std::array kStages =
    std::to_array<std::string_view>({"disabled", "optimizer_states", "gradients", "weights"});

// Digits at the beginning of the text; -1: there are none, or too many.
std::int64_t TakeNumber(std::string_view& text) {
  std::int64_t number = -1;
  const bool has_digit = !text.empty() && '0' <= text.front() && text.front() <= '9';
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (!has_digit || read.ec != std::errc()) {
    return -1;
  }
  text.remove_prefix(static_cast<std::size_t>(read.ptr - text.data()));
  return number;
}

tl::unexpected<Error> Unusable(const ByteSource& source, std::string found, std::string expected) {
  return BadInput({std::string(source.Name()), std::move(found), std::move(expected), ""});
}

// An integer, or a member of ZeroStageEnum, which Python 3.11 pickles by its name and others by its
// number. -1: something else.
std::int64_t StageOf(const Pickle& pickle, PickleRef value) {
  if (pickle.Kind(value) == PickleKind::kInteger) {
    return pickle.Integer(value);
  }
  const auto arguments = pickle.Items(pickle.Arguments(value));
  if (pickle.CallableName(value) == kStageEnum && arguments.size() == 1 &&
      pickle.Kind(arguments[0]) == PickleKind::kInteger) {
    return pickle.Integer(arguments[0]);
  }
  if (pickle.CallableName(value) == "builtins.getattr" && arguments.size() == 2 &&
      pickle.Text(arguments[0]) == kStageEnum) {
    const auto* const found = std::ranges::find(kStages, pickle.Text(arguments[1]));
    return found == kStages.end() ? -1 : found - kStages.begin();
  }
  return -1;
}

// Groups may be cut among unlike numbers of ranks, as those of experts are: the largest is that of
// the data ranks (zero_to_fp32.py, parse_optim_states).
std::int64_t RanksOf(const Pickle& pickle, PickleRef value) {
  if (pickle.Kind(value) != PickleKind::kList) {
    return pickle.Kind(value) == PickleKind::kInteger ? pickle.Integer(value) : -1;
  }
  std::int64_t most = -1;
  for (const PickleRef item : pickle.Items(value)) {
    most = std::max(most, pickle.Integer(item));
  }
  return most;
}

class ShapeReader {
 public:
  ShapeReader(const ByteSource& source, const Pickle& pickle)
      : source_(source),
        pickle_(pickle),
        most_bytes_(
            std::min(kMostShapeBytes, kAlwaysFineBytes + kBytesOfAValue * pickle.ValueCount())) {}

  // {name: torch.Size}
  Result<std::vector<NamedShape>> Read(PickleRef group) {
    const auto items = pickle_.Items(group);
    if (pickle_.Kind(group) != PickleKind::kDict && pickle_.Kind(group) != PickleKind::kReduced) {
      return Unusable(source_, fmt::format("{} in param_shapes", Name(pickle_.Kind(group))),
                      "expected a dict of shapes");
    }
    std::vector<NamedShape> shapes;
    for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
      NamedShape shape;
      const std::string_view name = pickle_.Text(items[i]);
      bytes_ += name.size() + sizeof shape + 8 * kMostDimensions;
      if (bytes_ > most_bytes_) {
        return Unusable(source_, fmt::format("param_shapes of more than {} bytes", most_bytes_),
                        "expected fewer");
      }
      const bool is_good = items[i] != kNoValue && !name.empty() &&
                           ReadCounts(pickle_, items[i + 1], shape.shape) &&
                           std::ranges::all_of(shape.shape, [](std::int64_t d) { return d >= 0; });
      const Checked elements = ElementsOf(shape.shape);
      if (!is_good || !(elements * 64).ok()) {
        return Unusable(source_, fmt::format("the shape of \"{}\"", name.substr(0, 200)),
                        "expected numbers from 0 on, and at most 2^53 bits");
      }
      shape.name = name;
      shape.elements = elements.value();
      shapes.push_back(std::move(shape));
    }
    return shapes;
  }

 private:
  const ByteSource& source_;
  const Pickle& pickle_;
  std::size_t most_bytes_;
  std::size_t bytes_ = 0;
};

}  // namespace

std::optional<RankName> ParseRankName(std::string_view file) {
  RankName name;
  TakePrefix(file, "bf16_");
  TakePrefix(file, "fp16_");
  if (TakePrefix(file, "zero_pp_rank_")) {
    name.data_rank = TakeNumber(file);
    if (name.data_rank < 0 || !TakePrefix(file, "_")) {
      return std::nullopt;
    }
  }
  if (!TakePrefix(file, "mp_rank_")) {
    return std::nullopt;
  }
  name.model_rank = TakeNumber(file);
  name.has_optimizer = file == "_optim_states.pt";
  const bool is_known = (name.has_optimizer && name.data_rank >= 0) || file == "_model_states.pt";
  return name.model_rank >= 0 && is_known ? std::optional(name) : std::nullopt;
}

Result<ZeroFacts> ReadZeroFacts(const ByteSource& source) {
  TRY(const Pickle pickle, ReadTorchPickle(source));
  const PickleRef optimizer = FieldOf(pickle, pickle.Root(), "optimizer_state_dict", kMostKeys);
  const PickleRef stage = FieldOf(pickle, optimizer, "zero_stage", kMostKeys);
  const ZeroFacts facts = {
      .stage = stage == kNoValue ? 1 : StageOf(pickle, stage),
      .ranks = RanksOf(pickle, FieldOf(pickle, optimizer, "partition_count", kMostKeys))};
  if (facts.stage < 1 || facts.stage > 3 || facts.ranks < 1) {
    return Unusable(source, "no zero_stage of 1, 2 or 3, or no partition_count",
                    "expected both in optimizer_state_dict");
  }
  return facts;
}

Result<std::vector<std::vector<NamedShape>>> ReadParameterShapes(const ByteSource& source) {
  TRY(const Pickle pickle, ReadTorchPickle(source));
  const PickleRef shapes = FieldOf(pickle, pickle.Root(), "param_shapes", kMostKeys);
  ShapeReader reader(source, pickle);
  std::vector<std::vector<NamedShape>> groups;
  if (pickle.Kind(shapes) != PickleKind::kList) {
    TRY(std::vector<NamedShape> group, reader.Read(shapes));  // DeepSpeed before 0.5
    groups.push_back(std::move(group));
    return groups;
  }
  groups.reserve(pickle.Items(shapes).size());
  for (const PickleRef each : pickle.Items(shapes)) {
    TRY(std::vector<NamedShape> group, reader.Read(each));
    groups.push_back(std::move(group));
  }
  return groups;
}

Result<std::vector<NamedShape>> ReadFrozenShapes(const ByteSource& source) {
  TRY(const Pickle pickle, ReadTorchPickle(source));
  const PickleRef shapes = FieldOf(pickle, pickle.Root(), "frozen_param_shapes", kMostKeys);
  if (pickle.Kind(shapes) == PickleKind::kNone) {
    return std::vector<NamedShape>();
  }
  return ShapeReader(source, pickle).Read(shapes);
}

}  // namespace fourpiles
