#pragma once

// A checkpoint summed up: what a person reads instead of a hundred thousand names.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tensors/piles.h"
#include "tensors/quantised.h"

namespace fourpiles {

struct TensorTotal {
  std::int64_t tensors = 0;     // of the files
  std::int64_t parameters = 0;  // logical
  std::int64_t bytes = 0;

  void Add(const TensorTotal& other);
};

// What packed weights keep beside their codes.
struct PackedBytes {
  std::int64_t codes = 0;
  std::int64_t scales = 0;
  std::int64_t zero_points = 0;
  std::int64_t other = 0;

  void Add(const PackedBytes& more);
};

// A tensor as a layer sees it: a plain one, or a packed weight with all its parts.
struct InventoryRow {
  std::string_view name = {};  // of the checkpoint or its weights, which must outlive the row
  std::int32_t label = 0;      // which of Inventory::formats
  const std::vector<std::int64_t>* shape = nullptr;
  const StoredWeight* weight = nullptr;  // of a packed one
  TensorTotal total = {};
  std::int32_t file = 0;
};

// Rows that are alike but for the numbers in their names.
struct InventoryGroup {
  std::string name = {};  // "model.layers.{0..31}.mlp.down_proj.weight"
  std::int32_t label = 0;
  const std::vector<std::int64_t>* shape = nullptr;
  std::int64_t count = 0;
  TensorTotal total = {};
};

struct NamedTotal {
  std::string name = {};
  TensorTotal total = {};
};

// What a trainer's checkpoint has of a pile.
struct PileTotal {
  TensorPile pile = TensorPile::kWeights;
  TensorTotal total = {};
  std::map<std::string, std::int64_t> formats = {};  // the bytes of each
};

struct FormatTotal {
  std::string name = {};  // "bfloat16", "int4, gptq, groups of 128"
  bool packed = false;
  TensorTotal total = {};
  PackedBytes parts = {};  // where it is packed
};

enum class InventoryOrder { kBytes, kParameters, kName, kFile };

struct InventoryChoice {
  std::vector<std::string> filters = {};  // of names, of which one must match; empty: all
  InventoryOrder order = InventoryOrder::kBytes;
  bool sort_rows = false;  // else they stand as in the files
};

struct Inventory {
  TensorTotal total = {};
  // Bytes that several tensors look at count once: those of the storages that they look at, and of
  // tensors that look at none their own.
  std::int64_t unique_storage_bytes = 0;
  std::int64_t storages = 0;              // that they look at
  std::vector<FormatTotal> formats = {};  // by bytes, largest first; rows name them by index
  std::vector<NamedTotal> files = {};     // in the order of the checkpoint
  std::vector<NamedTotal> modules = {};   // by bytes
  // What a trainer's checkpoint holds of each pile, those that it has. Empty where all are weights.
  std::vector<PileTotal> piles = {};
  std::vector<InventoryRow> rows = {};
  std::vector<bool> chosen = {};  // of each tensor of the checkpoint: a part of one of the rows
  std::vector<InventoryGroup> groups = {};
  std::vector<std::string> warnings = {};  // what surprises in a good file
};

// The parameters of the weights alone, without what a trainer keeps beside them.
std::int64_t WeightParameters(const Inventory& inventory);

// `checkpoint` and `weights` must outlive the inventory.
Inventory InventoryOf(const Checkpoint& checkpoint, const StoredWeights& weights,
                      const InventoryChoice& choice = {});

}  // namespace fourpiles
