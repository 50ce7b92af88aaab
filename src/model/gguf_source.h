#pragma once

// The keys and tensors of a GGUF file, read as a Record reads a config.json: by whole keys, with
// one question at the end. Keys share endings ("attention.head_count" and
// "attention.head_count_kv", and a "clip.vision." before either), so none is ever looked for by a
// part of it.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "model/decoder.h"
#include "model/record.h"
#include "tensors/checkpoint.h"

namespace fourpiles {

class GgufSource {
 public:
  // Keeps the tensors; `fields` are the keys of the file, "llama.block_count".
  GgufSource(Fields fields, std::string architecture, std::span<const FileTensor> tensors);

  const std::string& Architecture() const { return architecture_; }

  // Each takes the key without the architecture: "block_count". A misfit is remembered.
  bool Has(std::string_view key) const { return record_.Has(Key(key)); }
  std::int64_t Count(std::string_view key, Range range = kCounts);
  std::int64_t CountOr(std::string_view key, std::int64_t otherwise, Range range = kCounts);
  // Nothing where it is absent or 0, which llama.cpp takes for the same.
  std::optional<std::int64_t> OptionalCount(std::string_view key);
  std::optional<bool> OptionalFlag(std::string_view key);
  // One for each of the layers, from an array of numbers or booleans, or of one number for all;
  // none where the key is absent.
  std::vector<std::int64_t> PerLayer(std::string_view key);
  // The same where the layers that have any must agree; nothing where none has.
  std::optional<std::int64_t> OfAllLayers(std::string_view key);
  void Refuse(std::string_view key, ErrorText text) { record_.Refuse(Key(key), std::move(text)); }

  bool HasTensor(std::string_view name) const { return Tensor(name) != nullptr; }
  const FileTensor* Tensor(std::string_view name) const;
  // "blk.LAYER.REST".
  bool LayerHas(std::int64_t layer, std::string_view rest) const;
  // The last dimension of the first tensor that some layer has under that name.
  std::optional<std::int64_t> WidthOf(std::string_view rest) const;

  // Layers of the language model; those that predict further tokens are not among them.
  std::int64_t Layers() const { return layers_; }
  std::int64_t PredictionLayers() const { return prediction_layers_; }

  // The member of the config.json; a later one replaces an earlier one.
  void Put(std::string_view key, Json value);
  void PutIfKnown(std::string_view key, std::optional<std::int64_t> value);
  // The config.json, or the first misfit.
  Result<Json> Finish() &&;

 private:
  std::string Key(std::string_view key) const { return architecture_ + "." + std::string(key); }

  Fields fields_;
  Record record_;
  std::string architecture_;
  std::span<const FileTensor> tensors_;
  std::vector<const FileTensor*> by_name_;  // sorted
  std::int64_t prediction_layers_ = 0;
  std::int64_t layers_ = 1;
  Json::Object config_;
};

}  // namespace fourpiles
