#include "tensors/inventory.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "base/huge_pages.h"
#include "tensors/name_pattern.h"
#include "tensors/surprises.h"

namespace fourpiles {
namespace {

std::string LabelOf(const StoredWeight& weight) {
  std::string label = weight.format + ", " + weight.scheme;
  if (weight.group_rows > 1) {
    label += fmt::format(", blocks of {} × {}", weight.group_rows, weight.group_size);
  } else if (weight.group_size > 0) {
    label += fmt::format(", groups of {}", weight.group_size);
  }
  return label;
}

std::string LabelOf(const FileTensor& tensor) {
  return tensor.type ? std::string(tensor.type->name) : "unknown: " + tensor.dtype;
}

// One row a plain tensor or packed weight. The parts of a packed weight are not rows.
void MakeRows(const Checkpoint& checkpoint, const StoredWeights& weights, Inventory& inventory) {
  Numbering labels;
  const auto label_of = [&](const auto& stored, bool packed) {
    const std::string label = LabelOf(stored);
    const std::size_t number = labels.NumberOf(label);
    if (number == inventory.formats.size()) {
      inventory.formats.push_back({.name = label, .packed = packed});
    }
    return static_cast<std::int32_t>(number);
  };
  const auto add_row = [&](const InventoryRow& row) {
    inventory.rows.push_back(row);
    return inventory.rows.size() - 1;
  };
  const FileTensor* last = nullptr;  // a plain tensor; the next one is mostly of the same type
  std::int32_t last_label = 0;
  std::vector<std::size_t> row_of(weights.weights.size(), SIZE_MAX);
  ReserveOnHugePages(inventory.rows, checkpoint.tensors.size());
  for (std::size_t i = 0; i < checkpoint.tensors.size(); ++i) {
    const FileTensor& tensor = checkpoint.tensors[i];
    const TensorMeaning& meaning = weights.tensors[i];
    std::size_t row = 0;
    if (meaning.weight < 0) {
      const bool is_alike = last != nullptr && last->type != nullptr && last->type == tensor.type;
      last_label = is_alike ? last_label : label_of(tensor, false);
      last = &tensor;
      row = add_row(
          {.name = tensor.name, .label = last_label, .shape = &tensor.shape, .file = tensor.file});
    } else {
      const auto number = static_cast<std::size_t>(meaning.weight);
      const StoredWeight& weight = weights.weights[number];
      if (row_of[number] == SIZE_MAX) {
        row_of[number] = add_row({.name = weight.name,
                                  .label = label_of(weight, true),
                                  .shape = &weight.shape,
                                  .weight = &weight,
                                  .file = tensor.file});
      }
      row = row_of[number];
    }
    inventory.rows[row].total.Add(
        {.tensors = 1, .parameters = meaning.parameters, .bytes = tensor.bytes});
  }
}

std::vector<bool> ChosenTensors(const Checkpoint& checkpoint, const StoredWeights& weights,
                                const std::vector<std::string>& filters) {
  std::vector<bool> chosen(checkpoint.tensors.size(), true);
  for (std::size_t i = 0; i < chosen.size() && !filters.empty(); ++i) {
    const std::int32_t weight = weights.tensors[i].weight;
    chosen[i] = MatchesAny(weight < 0 ? checkpoint.tensors[i].name
                                      : weights.weights[static_cast<std::size_t>(weight)].name,
                           filters);
  }
  return chosen;
}

// A tensor in several places counts once, for the file of its first piece; its elements and bytes
// for the files in which they lie.
void AddToFiles(const FileTensor& tensor, std::int64_t parameters, Inventory& inventory) {
  TensorTotal first = {.tensors = 1, .parameters = parameters, .bytes = tensor.bytes};
  for (const TensorPiece& piece : tensor.pieces) {
    const std::int64_t elements = parameters == 0 ? 0 : ElementsOf(piece.shape).value();
    inventory.files[static_cast<std::size_t>(piece.file)].total.Add(
        {.parameters = elements, .bytes = piece.bytes});
    first.parameters = 0;
    first.bytes = 0;
  }
  inventory.files[static_cast<std::size_t>(tensor.file)].total.Add(first);
}

void AddUp(const Checkpoint& checkpoint, const StoredWeights& weights, Inventory& inventory) {
  for (const CheckpointFile& file : checkpoint.files) {
    inventory.files.push_back({.name = file.name});
  }
  for (std::size_t i = 0; i < checkpoint.tensors.size(); ++i) {
    const FileTensor& tensor = checkpoint.tensors[i];
    if (inventory.chosen[i]) {
      AddToFiles(tensor, weights.tensors[i].parameters, inventory);
    }
  }
  for (const InventoryRow& row : inventory.rows) {
    FormatTotal& format = inventory.formats[static_cast<std::size_t>(row.label)];
    format.total.Add(row.total);
    if (row.weight != nullptr) {
      format.parts.Add({.codes = row.weight->code_bytes,
                        .scales = row.weight->scale_bytes,
                        .zero_points = row.weight->zero_point_bytes,
                        .other = row.weight->other_bytes});
    }
    inventory.total.Add(row.total);
  }
}

void AddUpStorages(const Checkpoint& checkpoint, Inventory& inventory) {
  std::vector<bool> is_counted(checkpoint.storages.size());
  Checked bytes = 0;
  for (std::size_t i = 0; i < checkpoint.tensors.size(); ++i) {
    const FileTensor& tensor = checkpoint.tensors[i];
    const auto storage = static_cast<std::size_t>(tensor.storage);
    if (!inventory.chosen[i]) {
      continue;
    }
    if (tensor.storage < 0 || storage >= is_counted.size()) {
      bytes = bytes + tensor.bytes;
    } else if (!is_counted[storage]) {
      is_counted[storage] = true;
      bytes = bytes + checkpoint.storages[storage].bytes;
      ++inventory.storages;
    }
  }
  inventory.unique_storage_bytes = OrLargest(bytes);
}

// Formats by their bytes; the rows' numbers follow.
void SortFormats(Inventory& inventory) {
  std::vector<std::int32_t> order(inventory.formats.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater<>(), [&](std::int32_t i) {
    const TensorTotal& total = inventory.formats[static_cast<std::size_t>(i)].total;
    return std::pair(total.bytes, total.tensors);
  });
  std::vector<FormatTotal> sorted;
  std::vector<std::int32_t> place(order.size());
  for (const std::int32_t i : order) {
    place[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(sorted.size());
    sorted.push_back(std::move(inventory.formats[static_cast<std::size_t>(i)]));
  }
  inventory.formats = std::move(sorted);
  for (InventoryRow& row : inventory.rows) {
    row.label = place[static_cast<std::size_t>(row.label)];
  }
}

void AddUpModules(Inventory& inventory) {
  NameGroups groups;
  for (const InventoryRow& row : inventory.rows) {
    const std::size_t group = groups.GroupOf(ModuleOf(row.name));
    if (group == inventory.modules.size()) {
      inventory.modules.emplace_back();
    }
    inventory.modules[group].total.Add(row.total);
  }
  for (std::size_t g = 0; g < inventory.modules.size(); ++g) {
    inventory.modules[g].name = groups.NameOf(g);
  }
}

void AddUpPiles(const Checkpoint& checkpoint, const StoredWeights& weights, Inventory& inventory) {
  const std::vector<PiledTensor> piles = TensorPilesOf(checkpoint.tensors);
  if (std::ranges::all_of(piles,
                          [](const PiledTensor& of) { return of.pile == TensorPile::kWeights; })) {
    return;
  }
  std::map<TensorPile, PileTotal> sums;
  for (std::size_t i = 0; i < piles.size(); ++i) {
    if (inventory.chosen[i]) {
      const FileTensor& tensor = checkpoint.tensors[i];
      PileTotal& sum = sums[piles[i].pile];
      sum.pile = piles[i].pile;
      sum.total.Add(
          {.tensors = 1, .parameters = weights.tensors[i].parameters, .bytes = tensor.bytes});
      std::int64_t& bytes = sum.formats[LabelOf(tensor)];
      bytes = OrLargest(Checked(bytes) + tensor.bytes);
    }
  }
  inventory.piles.reserve(sums.size());
  for (auto& [pile, sum] : sums) {
    inventory.piles.push_back(std::move(sum));
  }
}

// Label and shape, as bytes.
std::string KindOf(const InventoryRow& row) {
  std::string kind(reinterpret_cast<const char*>(&row.label), sizeof row.label);
  return kind.append(reinterpret_cast<const char*>(row.shape->data()),
                     row.shape->size() * sizeof(std::int64_t));
}

void MakeGroups(Inventory& inventory) {
  NameGroups groups;
  for (const InventoryRow& row : inventory.rows) {
    const std::size_t group = groups.GroupOf(row.name, KindOf(row));
    if (group == inventory.groups.size()) {
      inventory.groups.push_back({.label = row.label, .shape = row.shape});
    }
    ++inventory.groups[group].count;
    inventory.groups[group].total.Add(row.total);
  }
  for (std::size_t g = 0; g < inventory.groups.size(); ++g) {
    inventory.groups[g].name = groups.NameOf(g);
  }
}

template <class Lines>
void Sort(Lines& lines, InventoryOrder order) {
  const auto by = [&](auto amount) {
    std::ranges::sort(lines, [&](const auto& a, const auto& b) {
      return std::pair(-amount(a), std::string_view(a.name)) <
             std::pair(-amount(b), std::string_view(b.name));
    });
  };
  switch (order) {
    case InventoryOrder::kBytes:
      return by([](const auto& line) { return line.total.bytes; });
    case InventoryOrder::kParameters:
      return by([](const auto& line) { return line.total.parameters; });
    case InventoryOrder::kName:
      return by([](const auto&) { return 0; });
    case InventoryOrder::kFile:
      return;  // as they came
  }
}

}  // namespace

void TensorTotal::Add(const TensorTotal& other) {
  tensors += other.tensors;
  parameters = OrLargest(Checked(parameters) + other.parameters);
  bytes = OrLargest(Checked(bytes) + other.bytes);
}

void PackedBytes::Add(const PackedBytes& more) {
  codes = OrLargest(Checked(codes) + more.codes);
  scales = OrLargest(Checked(scales) + more.scales);
  zero_points = OrLargest(Checked(zero_points) + more.zero_points);
  other = OrLargest(Checked(other) + more.other);
}

std::int64_t WeightParameters(const Inventory& inventory) {
  if (inventory.piles.empty()) {
    return inventory.total.parameters;
  }
  const auto weights = std::ranges::find(inventory.piles, TensorPile::kWeights, &PileTotal::pile);
  return weights == inventory.piles.end() ? 0 : weights->total.parameters;
}

Inventory InventoryOf(const Checkpoint& checkpoint, const StoredWeights& weights,
                      const InventoryChoice& choice) {
  Inventory inventory;
  MakeRows(checkpoint, weights, inventory);
  std::erase_if(inventory.rows,
                [&](const InventoryRow& row) { return !MatchesAny(row.name, choice.filters); });
  inventory.chosen = ChosenTensors(checkpoint, weights, choice.filters);
  AddUp(checkpoint, weights, inventory);
  AddUpStorages(checkpoint, inventory);
  SortFormats(inventory);
  std::erase_if(inventory.formats, [](const FormatTotal& f) { return f.total.tensors == 0; });
  AddUpModules(inventory);
  AddUpPiles(checkpoint, weights, inventory);
  MakeGroups(inventory);
  if (choice.sort_rows) {
    Sort(inventory.rows, choice.order);
  }
  Sort(inventory.groups, choice.order);
  Sort(inventory.modules, InventoryOrder::kBytes);
  // Of the whole checkpoint, whatever part of it is shown.
  inventory.warnings = choice.filters.empty() ? Surprises(checkpoint, inventory)
                                              : InventoryOf(checkpoint, weights).warnings;
  if (!choice.filters.empty()) {
    return inventory;
  }
  inventory.warnings.insert(inventory.warnings.end(), weights.notes.begin(), weights.notes.end());
  return inventory;
}

}  // namespace fourpiles
