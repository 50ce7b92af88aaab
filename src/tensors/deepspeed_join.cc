#include "tensors/deepspeed_join.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "base/ascii.h"
#include "tensors/flat_vector.h"

namespace fourpiles {
namespace {

constexpr std::string_view kMaster = "master";
// Of names, shapes and pieces. A piece of one element takes 200 bytes here and 4 in a file, once
// for the parameter and once for each of its few moments; hostile files have moments that share a
// vector.
constexpr std::size_t kMostBytes = std::size_t{2} << 30U;
constexpr std::size_t kAlwaysFineBytes = std::size_t{16} << 20U;
constexpr std::size_t kBytesOfAByte = 256;  // of the vectors of the parameters
constexpr std::size_t kMostKinds = 64;

// A flat vector by its name: "exp_avg" of group 0.
struct VectorName {
  std::string_view kind = {};  // empty: the tensor is no flat vector
  std::int64_t group = 0;
};

bool TakeNumber(std::string_view& text, std::int64_t& number) {
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc() || number < 0) {
    return false;
  }
  text.remove_prefix(static_cast<std::size_t>(read.ptr - text.data()));
  return true;
}

// The places that the versions of DeepSpeed have for them.
VectorName ParseVectorName(std::string_view name) {
  VectorName vector;
  if (!TakePrefix(name, "optimizer_state_dict.")) {
    return vector;
  }
  if (TakePrefix(name, "single_partition_of_fp32_groups.") ||
      TakePrefix(name, "fp32_flat_groups.")) {
    vector.kind = TakeNumber(name, vector.group) && name.empty() ? kMaster : "";
    return vector;
  }
  if (!TakePrefix(name, "base_optimizer_state.") && !TakePrefix(name, "optimizer_state_dict.")) {
    return vector;
  }
  TakePrefix(name, "state.");
  const bool is_moment = TakeNumber(name, vector.group) && TakePrefix(name, ".") && !name.empty() &&
                         name != "step" && name != kMaster &&
                         name.find('.') == std::string_view::npos;
  vector.kind = is_moment ? name : "";
  return vector;
}

std::int64_t RoundedUp(std::int64_t number, std::int64_t step) {
  return OrLargest(DivideRoundingUp(Checked(number), step) * step);
}

bool IsFlat(const FileTensor& tensor) {
  return tensor.shape.size() == 1 && !tensor.packed && !tensor.big_endian &&
         tensor.strides.empty() && tensor.type != nullptr && tensor.type->block_elements == 1 &&
         tensor.type->block_bits % 8 == 0;
}

std::int64_t ElementBytes(const FileTensor& tensor) {
  return tensor.type->block_bits / 8;
}

// A parameter of the type of a vector. In one piece it is a plain tensor.
FileTensor Whole(std::string name, const NamedShape& shape, const FileTensor& like,
                 std::vector<TensorPiece> pieces) {
  FileTensor tensor = {.name = std::move(name),
                       .dtype = like.dtype,
                       .type = like.type,
                       .shape = shape.shape,
                       .elements = shape.elements,
                       .bytes = shape.elements * ElementBytes(like),
                       .offset = pieces.empty() ? like.offset : pieces.front().offset,
                       .file = pieces.empty() ? like.file : pieces.front().file};
  if (pieces.size() > 1) {
    tensor.pieces = std::move(pieces);
  }
  return tensor;
}

// By the order of the files.
std::unordered_map<std::int32_t, std::size_t> RanksOf(const std::vector<std::int32_t>& files) {
  std::unordered_map<std::int32_t, std::size_t> rank_of;
  for (std::size_t rank = 0; rank < files.size(); ++rank) {
    rank_of.emplace(files[rank], rank);
  }
  return rank_of;
}

// What each rank has of one vector or parameter, as indices of the tensors.
using ByRank = std::map<std::size_t, std::int32_t>;

// By the name of the parameter.
std::map<std::string_view, ByRank> FragmentsOf(const std::vector<FileTensor>& tensors,
                                               const std::vector<std::int32_t>& files) {
  const auto rank_of = RanksOf(files);
  std::map<std::string_view, ByRank> fragments;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    std::string_view name = tensors[i].name;
    const auto rank = rank_of.find(tensors[i].file);
    if (rank != rank_of.end() && TakePrefix(name, "frozen_param_fragments.") &&
        IsFlat(tensors[i])) {
      fragments[name].emplace(rank->second, static_cast<std::int32_t>(i));
    }
  }
  return fragments;
}

class Joiner {
 public:
  Joiner(const std::vector<FileTensor>& tensors, const std::vector<std::int32_t>& files,
         const ZeroLayout& layout)
      : tensors_(tensors), layout_(layout), ranks_(files.size()) {
    const auto rank_of = RanksOf(files);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const auto rank = rank_of.find(tensors[i].file);
      const VectorName name = ParseVectorName(tensors[i].name);
      if (rank != rank_of.end() && !name.kind.empty() && IsFlat(tensors[i])) {
        kinds_[name.kind][name.group].emplace(rank->second, static_cast<std::int32_t>(i));
      }
    }
  }

  JoinedVectors Join() {
    if (!kinds_.contains(kMaster)) {
      joined_.faults.push_back({true, "no float32 vectors of the parameters",
                                "expected single_partition_of_fp32_groups or fp32_flat_groups"});
      return std::move(joined_);
    }
    if (kinds_.size() > kMostKinds) {
      joined_.faults.push_back({true, fmt::format("{} kinds of flat vectors", kinds_.size()),
                                fmt::format("expected at most {}", kMostKinds)});
      return std::move(joined_);
    }
    most_bytes_ = MostBytes();
    if (!JoinKind(kMaster)) {
      return std::move(joined_);
    }
    for (const auto& [kind, groups] : kinds_) {
      if (kind != kMaster) {
        JoinKind(kind);
      }
    }
    return std::move(joined_);
  }

 private:
  using Group = ByRank;

  bool Fail(std::string_view kind, std::string found, std::string expected) {
    joined_.faults.push_back({kind == kMaster, fmt::format("flat vectors \"{}\": {}", kind, found),
                              std::move(expected)});
    return false;
  }

  std::size_t MostBytes() {
    Checked vectors = 0;
    for (const auto& [number, group] : kinds_[kMaster]) {
      for (const auto& [rank, index] : group) {
        vectors = vectors + At(index).bytes;
      }
    }
    const auto bytes = static_cast<std::size_t>(OrLargest(vectors));
    return std::min(kMostBytes, kAlwaysFineBytes + kBytesOfAByte * bytes);
  }

  bool JoinKind(std::string_view kind) {
    const std::map<std::int64_t, Group>& groups = kinds_[kind];
    const FileTensor& first = At(groups.begin()->second.begin()->second);
    for (const auto& [number, group] : groups) {
      if (group.size() != ranks_) {
        return Fail(kind, fmt::format("group {} of {} ranks", number, group.size()),
                    fmt::format("expected it of all {}", ranks_));
      }
      for (const auto& [rank, index] : group) {
        if (At(index).type != first.type) {
          return Fail(kind, fmt::format("{} and {}", first.dtype, At(index).dtype),
                      "expected one type");
        }
      }
    }
    std::vector<FileTensor> made;
    const bool is_good = layout_.facts.stage == 3 ? JoinByParameter(kind, groups, made)
                                                  : JoinByGroup(kind, groups, made);
    if (is_good) {
      std::ranges::move(made, std::back_inserter(joined_.tensors));
      for (const auto& [number, group] : groups) {
        for (const auto& [rank, index] : group) {
          joined_.used.push_back(index);
        }
      }
    }
    return is_good;
  }

  // ZeRO 1 and 2: the ranks' vectors of a group, one behind the other, are its parameters, one
  // behind the other. The last ones are padded so that the whole is a multiple of twice the number
  // of ranks, or are not (stage_1_and_2.py, nccl_start_alignment_factor; zero_to_fp32.py,
  // zero2_align). Two ranks with 11 elements have 6 each.
  bool JoinByGroup(std::string_view kind, const std::map<std::int64_t, Group>& groups,
                   std::vector<FileTensor>& made) {
    const auto count = static_cast<std::int64_t>(layout_.groups.size());
    if (static_cast<std::int64_t>(groups.size()) != count || groups.rbegin()->first != count - 1) {
      return Fail(kind, fmt::format("{} groups", groups.size()),
                  fmt::format("param_shapes has {}", count));
    }
    for (const auto& [number, group] : groups) {
      FlatVector vector;
      for (const auto& [rank, index] : group) {
        vector.Add(At(index));
      }
      const auto& shapes = layout_.groups[static_cast<std::size_t>(number)];
      Checked needed = 0;
      for (const NamedShape& shape : shapes) {
        needed = needed + shape.elements;
      }
      const auto step = static_cast<std::int64_t>(2 * ranks_);
      if (!needed.ok() || vector.Elements() < needed.value() ||
          RoundedUp(vector.Elements(), step) != RoundedUp(needed.value(), step)) {
        return Fail(kind, fmt::format("group {} of {} elements", number, vector.Elements()),
                    fmt::format("its parameters have {}", OrLargest(needed)));
      }
      const FileTensor& first = At(group.begin()->second);
      std::int64_t begin = 0;
      for (const NamedShape& shape : shapes) {
        std::vector<TensorPiece> pieces;
        vector.Cut({.begin = begin, .count = shape.elements}, ElementBytes(first), pieces);
        begin += shape.elements;
        if (!Make(kind, shape, first, std::move(pieces), made)) {
          return false;
        }
      }
    }
    return true;
  }

  // ZeRO 3: of every parameter each rank has as many elements, of which the last are padding; a
  // rank's vectors, one behind the other, are its parts of all parameters (zero_to_fp32.py,
  // zero3_partitioned_param_info). Of 5 elements two ranks have 3 each.
  bool JoinByParameter(std::string_view kind, const std::map<std::int64_t, Group>& groups,
                       std::vector<FileTensor>& made) {
    std::vector<FlatVector> vectors(ranks_);
    for (const auto& [number, group] : groups) {
      for (const auto& [rank, index] : group) {
        vectors[rank].Add(At(index));
      }
    }
    const Checked needed = PartsOfAll();
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      if (!needed.ok() || vectors[rank].Elements() != needed.value()) {
        return Fail(kind, fmt::format("{} elements of rank {}", vectors[rank].Elements(), rank),
                    fmt::format("its parts of the parameters have {}", OrLargest(needed)));
      }
    }
    const FileTensor& first = At(groups.begin()->second.begin()->second);
    std::int64_t begin = 0;
    for (const auto& shapes : layout_.groups) {
      for (const NamedShape& shape : shapes) {
        if (!Make(kind, shape, first, PartsOf(shape, vectors, {begin, ElementBytes(first)}),
                  made)) {
          return false;
        }
        begin += PartOf(shape);
      }
    }
    return true;
  }

  // The elements of a parameter that each rank has.
  std::int64_t PartOf(const NamedShape& shape) const {
    return DivideRoundingUp(Checked(shape.elements), static_cast<std::int64_t>(ranks_)).value();
  }
  Checked PartsOfAll() const {
    Checked parts = 0;
    for (const auto& shapes : layout_.groups) {
      for (const NamedShape& shape : shapes) {
        parts = parts + PartOf(shape);
      }
    }
    return parts;
  }
  // Each begins at the same place of its rank's vector.
  struct PartPlace {
    std::int64_t begin = 0;
    std::int64_t element_bytes = 0;
  };
  std::vector<TensorPiece> PartsOf(const NamedShape& shape, const std::vector<FlatVector>& vectors,
                                   const PartPlace& place) const {
    const std::int64_t part = PartOf(shape);
    std::vector<TensorPiece> pieces;
    for (std::int64_t start = 0; start < shape.elements; start += part) {
      vectors[static_cast<std::size_t>(start / part)].Cut(
          {.begin = place.begin, .count = std::min(part, shape.elements - start), .start = start},
          place.element_bytes, pieces);
    }
    return pieces;
  }

  // False: there are too many.
  bool Make(std::string_view kind, const NamedShape& shape, const FileTensor& like,
            std::vector<TensorPiece> pieces, std::vector<FileTensor>& made) {
    constexpr std::size_t kPiece = sizeof(TensorPiece) + 64;  // with its two numbers
    bytes_ +=
        sizeof(FileTensor) + shape.name.size() + 8 * shape.shape.size() + kPiece * pieces.size();
    if (bytes_ > most_bytes_) {
      return Fail(kind, fmt::format("names and pieces of more than {} bytes", most_bytes_),
                  "expected fewer");
    }
    made.push_back(Whole(fmt::format("optimizer.state.{}.{}", shape.name, kind), shape, like,
                         std::move(pieces)));
    return true;
  }

  const FileTensor& At(std::int32_t index) const {
    return tensors_[static_cast<std::size_t>(index)];
  }

  const std::vector<FileTensor>& tensors_;
  const ZeroLayout& layout_;
  std::size_t ranks_;
  std::map<std::string_view, std::map<std::int64_t, Group>> kinds_ = {};
  std::size_t bytes_ = 0;       // of what is made
  std::size_t most_bytes_ = 0;  // of it
  JoinedVectors joined_ = {};
};

}  // namespace

JoinedVectors JoinFlatVectors(const std::vector<FileTensor>& tensors,
                              const std::vector<std::int32_t>& files, const ZeroLayout& layout) {
  return Joiner(tensors, files, layout).Join();
}

JoinedVectors JoinFragments(const std::vector<FileTensor>& tensors,
                            const std::vector<std::int32_t>& files,
                            const std::vector<NamedShape>& shapes) {
  constexpr std::size_t kMostFaults = 20;
  auto fragments = FragmentsOf(tensors, files);
  JoinedVectors joined;
  for (const NamedShape& shape : shapes) {
    if (joined.faults.size() == kMostFaults) {
      break;
    }
    FlatVector vector;
    const auto ranks = std::exchange(fragments[shape.name], {});  // each is of one parameter
    bool is_alike = ranks.size() == files.size();
    for (const auto& [rank, index] : ranks) {
      const FileTensor& fragment = tensors[static_cast<std::size_t>(index)];
      is_alike = is_alike &&
                 fragment.type == tensors[static_cast<std::size_t>(ranks.begin()->second)].type;
      vector.Add(fragment);
    }
    if (!is_alike || vector.Elements() < shape.elements) {
      joined.faults.push_back(
          {.found = fmt::format("fragments of \"{}\": {} elements in {} files", shape.name,
                                vector.Elements(), ranks.size()),
           .expected = fmt::format("expected {} in {}", shape.elements, files.size())});
      continue;
    }
    const FileTensor& first = tensors[static_cast<std::size_t>(ranks.begin()->second)];
    std::vector<TensorPiece> pieces;
    vector.Cut({.count = shape.elements}, ElementBytes(first), pieces);
    joined.tensors.push_back(Whole("module." + shape.name, shape, first, std::move(pieces)));
    for (const auto& [rank, index] : ranks) {
      joined.used.push_back(index);
    }
  }
  return joined;
}

}  // namespace fourpiles
