#include "tensors/difference.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tensors/name_pattern.h"

namespace fourpiles {
namespace {

std::vector<const InventoryRow*> ByName(const Inventory& inventory) {
  std::vector<const InventoryRow*> rows;
  rows.reserve(inventory.rows.size());
  for (const InventoryRow& row : inventory.rows) {
    rows.push_back(&row);
  }
  std::ranges::sort(rows, {}, &InventoryRow::name);
  return rows;
}

const std::string& FormatOf(const InventoryRow& row, const Inventory& inventory) {
  return inventory.formats[static_cast<std::size_t>(row.label)].name;
}

std::string KindOf(const InventoryRow& row, const Inventory& inventory) {
  return fmt::format("{} {}", FormatOf(row, inventory), fmt::join(*row.shape, " "));
}

// Groups of the rows that one side alone has.
class OnlyThere {
 public:
  explicit OnlyThere(const Inventory& inventory) : inventory_(inventory) {}

  void Add(const InventoryRow& row) {
    const std::size_t group = names_.GroupOf(row.name, KindOf(row, inventory_));
    if (group == groups_.size()) {
      groups_.push_back({.label = row.label, .shape = row.shape});
    }
    ++groups_[group].count;
    groups_[group].total.Add(row.total);
  }
  std::vector<InventoryGroup> Groups() && {
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      groups_[g].name = names_.NameOf(g);
    }
    return std::move(groups_);
  }

 private:
  const Inventory& inventory_;
  NameGroups names_;
  std::vector<InventoryGroup> groups_;
};

// Groups of the rows that both sides have, in another shape or format.
class ChangedThere {
 public:
  ChangedThere(const Inventory& first, const Inventory& second) : first_(first), second_(second) {}

  // False when both are alike.
  bool Add(const InventoryRow& left, const InventoryRow& right) {
    std::string kind = KindOf(left, first_);
    const std::string after = KindOf(right, second_);
    if (kind == after) {
      return false;
    }
    const std::size_t group = names_.GroupOf(left.name, kind.append(" → ").append(after));
    if (group == groups_.size()) {
      groups_.push_back({.format = {FormatOf(left, first_), FormatOf(right, second_)},
                         .shape = {*left.shape, *right.shape}});
    }
    ++groups_[group].count;
    groups_[group].total[0].Add(left.total);
    groups_[group].total[1].Add(right.total);
    return true;
  }
  std::vector<ChangedGroup> Groups() && {
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      groups_[g].name = names_.NameOf(g);
    }
    return std::move(groups_);
  }

 private:
  const Inventory& first_;
  const Inventory& second_;
  NameGroups names_;
  std::vector<ChangedGroup> groups_;
};

}  // namespace

CheckpointDifference DifferenceOf(const Inventory& first, const Inventory& second) {
  CheckpointDifference difference;
  OnlyThere only_first(first);
  OnlyThere only_second(second);
  ChangedThere changed(first, second);
  const std::vector<const InventoryRow*> a = ByName(first);
  const std::vector<const InventoryRow*> b = ByName(second);
  auto i = a.begin();
  auto j = b.begin();
  while (i != a.end() && j != b.end()) {
    if ((*i)->name < (*j)->name) {
      only_first.Add(**i++);
    } else if ((*j)->name < (*i)->name) {
      only_second.Add(**j++);
    } else {
      difference.alike += changed.Add(**i++, **j++) ? 0 : 1;
    }
  }
  std::for_each(i, a.end(), [&](const InventoryRow* row) { only_first.Add(*row); });
  std::for_each(j, b.end(), [&](const InventoryRow* row) { only_second.Add(*row); });
  difference.changed = std::move(changed).Groups();
  difference.only[0] = std::move(only_first).Groups();
  difference.only[1] = std::move(only_second).Groups();
  return difference;
}

}  // namespace fourpiles
