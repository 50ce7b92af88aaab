#include "audit/gguf_pairs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "audit/storage_cache.h"
#include "audit/tensor_values.h"
#include "base/try.h"
#include "model/gguf_config.h"
#include "model/gguf_names.h"

namespace fourpiles {
namespace {

// More elements are not read to see what a converter did: of a head, or of a norm.
constexpr std::int64_t kMostLookedAt = std::int64_t{1} << 24;

const MetadataEntry* KeyOf(const Checkpoint& gguf, std::string_view key) {
  return FindEntry(gguf.files.front().metadata, key);
}

std::string ArchitectureOf(const Checkpoint& gguf) {
  const MetadataEntry* const entry = KeyOf(gguf, "general.architecture");
  const auto* const name = entry == nullptr ? nullptr : entry->value.AsString();
  return name == nullptr ? "" : std::string(*name);
}

// The model_type of the checkpoint, as the GGUF tells it; of a file that is no whole model its
// architecture.
std::string ModelTypeOf(const Checkpoint& gguf) {
  const Result<Json> config = ConfigFromGguf(gguf.files.front().metadata, gguf.tensors, gguf.path);
  const Json* const type = config ? config->Find("model_type") : nullptr;
  return type == nullptr || type->AsString() == nullptr ? ArchitectureOf(gguf)
                                                        : std::string(*type->AsString());
}

std::vector<std::int64_t> WithoutOnes(std::vector<std::int64_t> shape) {
  std::erase(shape, 1);
  return shape;
}

// A tensor of a stacked one: the first dimension counts them.
FileTensor PartOf(const FileTensor& stacked, std::int64_t index, std::string name) {
  FileTensor part = stacked;
  const std::int64_t parts = stacked.shape.front();
  part.name = std::move(name);
  part.shape.erase(part.shape.begin());
  part.elements /= parts;
  part.bytes /= parts;
  part.offset += index * part.bytes;
  return part;
}

bool LiesPlainly(const FileTensor& tensor) {
  return tensor.strides.empty() && tensor.pieces.empty() && !tensor.packed;
}

// Of experts: no model has more.
bool IsStack(const FileTensor& tensor) {
  constexpr std::int64_t kMostExperts = 4096;
  return tensor.shape.size() > 1 && tensor.shape.front() <= kMostExperts && LiesPlainly(tensor);
}

// [heads · head, …] as [heads, half a head, 2, …]. Of the checkpoint the pairs of a row are half a
// head apart: conversion/llama.py, LlamaModel.permute.
void Turn(std::int64_t heads, FileTensor& of_checkpoint, FileTensor& of_gguf) {
  const std::int64_t rows = of_checkpoint.shape.front();
  const std::int64_t columns = of_checkpoint.elements / rows;
  const std::int64_t half = rows / heads / 2;
  of_checkpoint.shape = {heads, half, 2, columns};
  of_checkpoint.strides = {2 * half * columns, columns, half * columns, 1};
  of_gguf.shape = of_checkpoint.shape;
}

class Pairer {
 public:
  Pairer(Checkpoint gguf, Checkpoint checkpoint)
      : gguf_(std::move(gguf)),
        checkpoint_(std::move(checkpoint)),
        architecture_(ArchitectureOf(gguf_)),
        model_type_(ModelTypeOf(gguf_)),
        gguf_cache_(gguf_),
        checkpoint_cache_(checkpoint_) {}

  Result<GgufPairs> Pair() {
    for (std::size_t i = 0; i < checkpoint_.tensors.size(); ++i) {
      places_.try_emplace(checkpoint_.tensors[i].name, i);
    }
    for (const FileTensor& tensor : gguf_.tensors) {
      Name(tensor);
    }
    LeaveOutFused();
    for (FileTensor& tensor : named_) {
      TRY_VOID(Fit(tensor));
    }
    LeaveOutDropped();
    return Finish();
  }

 private:
  FileTensor* InCheckpoint(const std::string& name) {
    const auto place = places_.find(name);
    return place == places_.end() ? nullptr : &checkpoint_.tensors[place->second];
  }

  // The name as the checkpoint has it: models with a vision part, or without a head, have other
  // prefixes.
  std::string KnownName(const std::string& name) {
    constexpr std::string_view kModel = "model.";
    const std::string rest = name.starts_with(kModel) ? name.substr(kModel.size()) : name;
    for (std::string& other : std::array<std::string, 4>{name, "language_model." + name,
                                                         "model.language_model." + rest, rest}) {
      if (InCheckpoint(other) != nullptr) {
        return std::move(other);
      }
    }
    return name;
  }

  void LeaveOut(const FileTensor& tensor, std::string why) {
    pairs_.left_out.push_back({.name = tensor.name, .why = std::move(why)});
    gone_.insert(tensor.name);
  }

  // Adds it to the named ones, expert by expert.
  void Name(const FileTensor& tensor) {
    if (IsMadeByConversion(tensor.name)) {
      return LeaveOut(tensor, "llama.cpp's converter makes it");
    }
    const std::optional<std::string> name = InCheckpoint(tensor.name) != nullptr
                                                ? tensor.name
                                                : CheckpointName(tensor.name, model_type_);
    const std::size_t place = name ? name->find("{}") : std::string::npos;
    if (place == std::string::npos || !IsStack(tensor)) {
      named_.push_back(tensor);
      named_.back().name = name ? KnownName(*name) : tensor.name;
      return;
    }
    for (std::int64_t i = 0; i < tensor.shape.front(); ++i) {
      named_.push_back(
          PartOf(tensor, i, KnownName(std::string(*name).replace(place, 2, fmt::format("{}", i)))));
    }
  }

  // Several tensors of the GGUF that the checkpoint has in one.
  void LeaveOutFused() {
    std::map<std::string, int> times;
    for (const FileTensor& tensor : named_) {
      ++times[tensor.name];
    }
    for (const auto& [name, count] : times) {
      if (const FileTensor* const fused = InCheckpoint(name); count > 1 && fused != nullptr) {
        LeaveOut(*fused, fmt::format("the GGUF has it in {} tensors", count));
      }
    }
  }

  // Gives both one shape and one order of rows, or leaves both out.
  Result<void> Fit(FileTensor& tensor) {
    FileTensor* const partner = gone_.contains(tensor.name) ? nullptr : InCheckpoint(tensor.name);
    if (partner == nullptr || !HoldsRealNumbers(tensor) || !HoldsRealNumbers(*partner)) {
      return {};
    }
    if (WithoutOnes(tensor.shape) == WithoutOnes(partner->shape)) {
      tensor.shape = partner->shape;
    }
    if (tensor.shape != partner->shape || tensor.shape.empty() || tensor.elements == 0) {
      return {};
    }
    if (tensor.name.ends_with("A_log")) {
      LeaveOut(tensor, "llama.cpp's converter stores −exp of it");
    } else if (tensor.name.ends_with("norm.weight") && tensor.elements <= kMostLookedAt) {
      TRY(const bool added, HasOneAdded(tensor, *partner));
      if (added) {
        LeaveOut(tensor, "llama.cpp's converter adds 1 to it");
      }
    } else if (const std::int64_t heads = HeadsOf(tensor); heads > 0 && LiesPlainly(*partner)) {
      TRY(const bool turned, IsTurned(tensor, *partner, heads));
      if (turned) {
        Turn(heads, *partner, tensor);
      }
    }
    return {};
  }

  // Of queries or keys, whose rows are so many times two halves; 0 of others.
  std::int64_t HeadsOf(const FileTensor& tensor) const {
    const std::string_view name = tensor.name;
    const std::string_view stem = name.substr(0, name.rfind('.'));
    const bool queries = stem.ends_with("q_proj");
    if (!queries && !stem.ends_with("k_proj")) {
      return 0;
    }
    const auto count = [&](std::string_view key) -> std::int64_t {
      const MetadataEntry* const entry = KeyOf(gguf_, architecture_ + std::string(key));
      const auto* const number = entry == nullptr ? nullptr : entry->value.AsInteger();
      return number == nullptr ? 0 : std::max<std::int64_t>(*number, 0);
    };
    const std::int64_t of_keys = queries ? 0 : count(".attention.head_count_kv");
    const std::int64_t heads = of_keys > 0 ? of_keys : count(".attention.head_count");
    const std::int64_t rows = tensor.shape.front();
    const bool fits = heads > 0 && heads <= rows / 2 && rows % (2 * heads) == 0 &&
                      tensor.elements / heads <= kMostLookedAt;
    return fits ? heads : 0;
  }

  // The first so many values of both.
  struct Sides {
    std::vector<float> gguf;
    std::vector<float> checkpoint;
  };
  Result<Sides> FirstOf(const FileTensor& tensor, const FileTensor& partner, std::int64_t count) {
    const auto size = static_cast<std::size_t>(count);
    Sides sides = {std::vector<float>(size), std::vector<float>(size)};
    TRY(const TensorValues ours, TensorValues::Of(gguf_, tensor, gguf_cache_));
    TRY(const TensorValues theirs, TensorValues::Of(checkpoint_, partner, checkpoint_cache_));
    TRY_VOID(ours.Read(0, sides.gguf));
    TRY_VOID(theirs.Read(0, sides.checkpoint));
    return sides;
  }

  // Whether the rows of the first head fit in the converter's order better than as they are.
  Result<bool> IsTurned(const FileTensor& tensor, const FileTensor& partner, std::int64_t heads) {
    TRY(const Sides sides, FirstOf(tensor, partner, tensor.elements / heads));
    const std::size_t columns = static_cast<std::size_t>(tensor.elements / tensor.shape.front());
    const std::size_t half = sides.gguf.size() / columns / 2;
    double as_it_is = 0;
    double turned = 0;
    const auto square = [](float a, float b) {
      const double difference = static_cast<double>(a) - static_cast<double>(b);
      return std::isfinite(difference) ? difference * difference : 0;
    };
    for (std::size_t i = 0; i < sides.gguf.size(); ++i) {
      const std::size_t row = i / columns;
      const std::size_t from = (row % 2 * half + row / 2) * columns + i % columns;
      as_it_is += square(sides.gguf[i], sides.checkpoint[i]);
      turned += square(sides.gguf[i], sides.checkpoint[from]);
    }
    return turned < as_it_is;
  }

  // What modules of Gemma and others add when they run (conversion/gemma.py).
  Result<bool> HasOneAdded(const FileTensor& tensor, const FileTensor& partner) {
    TRY(const Sides sides, FirstOf(tensor, partner, tensor.elements));
    bool added = !sides.gguf.empty();
    for (std::size_t i = 0; i < sides.gguf.size(); ++i) {
      constexpr float kNear = 0x1p-7F;  // bfloat16 of a number about 1
      const float more = sides.checkpoint[i] + 1;
      added = added && std::abs(sides.gguf[i] - more) <= kNear * std::abs(more);
    }
    return added;
  }

  bool IsTied(const FileTensor& head) const {
    const Json* const tied = checkpoint_.configs.config.Find("tie_word_embeddings");
    const bool says_so = tied != nullptr && tied->AsBool() && *tied->AsBool();
    return says_so || model_type_.starts_with("gemma") ||
           std::ranges::any_of(checkpoint_.tensors, [&](const FileTensor& other) {
             return other.name != head.name && ViewOf(other) == ViewOf(head);
           });
  }

  // Buffers that the converter drops (conversion/base.py), and an output layer that is tied.
  void LeaveOutDropped() {
    std::set<std::string_view> names;
    for (const FileTensor& tensor : named_) {
      names.insert(tensor.name);
    }
    for (const FileTensor& tensor : checkpoint_.tensors) {
      const std::string_view name = tensor.name;
      if (names.contains(name) || gone_.contains(tensor.name)) {
        continue;
      }
      if (name.ends_with(".attention.masked_bias") || name.ends_with(".attention.bias") ||
          name.ends_with(".rotary_emb.inv_freq")) {
        LeaveOut(tensor, "llama.cpp's converter drops it");
      } else if (name.ends_with("lm_head.weight") && IsTied(tensor)) {
        LeaveOut(tensor, "is tied to the embeddings");
      }
    }
  }

  GgufPairs Finish() {
    const auto is_gone = [&](const FileTensor& tensor) { return gone_.contains(tensor.name); };
    std::erase_if(named_, is_gone);
    std::erase_if(checkpoint_.tensors, is_gone);
    gguf_.tensors = std::move(named_);
    pairs_.gguf = std::move(gguf_);
    pairs_.checkpoint = std::move(checkpoint_);
    return std::move(pairs_);
  }

  Checkpoint gguf_;
  Checkpoint checkpoint_;
  std::string architecture_;
  std::string model_type_;
  StorageCache gguf_cache_;
  StorageCache checkpoint_cache_;
  std::map<std::string, std::size_t> places_;  // of the checkpoint's tensors
  std::vector<FileTensor> named_;              // the GGUF's
  std::set<std::string> gone_;                 // left out
  GgufPairs pairs_;
};

}  // namespace

bool IsGguf(const Checkpoint& checkpoint) {
  return !checkpoint.files.empty() && checkpoint.files.front().format == "gguf";
}

Result<GgufPairs> PairGguf(Checkpoint gguf, Checkpoint checkpoint) {
  return Pairer(std::move(gguf), std::move(checkpoint)).Pair();
}

}  // namespace fourpiles
