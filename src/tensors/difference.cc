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

}  // namespace

CheckpointDifference DifferenceOf(const Inventory& first, const Inventory& second) {
  CheckpointDifference difference;
  OnlyThere only_first(first);
  OnlyThere only_second(second);
  NameGroups changed;
  const std::vector<const InventoryRow*> a = ByName(first);
  const std::vector<const InventoryRow*> b = ByName(second);
  for (auto i = a.begin(), j = b.begin(); i != a.end() || j != b.end();) {
    if (j == b.end() || (i != a.end() && (*i)->name < (*j)->name)) {
      only_first.Add(**i++);
    } else if (i == a.end() || (*j)->name < (*i)->name) {
      only_second.Add(**j++);
    } else {
      const InventoryRow& left = **i++;
      const InventoryRow& right = **j++;
      const std::string before = KindOf(left, first);
      const std::string after = KindOf(right, second);
      if (before == after) {
        ++difference.alike;
        continue;
      }
      const std::size_t group = changed.GroupOf(left.name, before + " → " + after);
      if (group == difference.changed.size()) {
        difference.changed.push_back({.format = {FormatOf(left, first), FormatOf(right, second)},
                                      .shape = {*left.shape, *right.shape}});
      }
      ++difference.changed[group].count;
      difference.changed[group].total[0].Add(left.total);
      difference.changed[group].total[1].Add(right.total);
    }
  }
  for (std::size_t g = 0; g < difference.changed.size(); ++g) {
    difference.changed[g].name = changed.NameOf(g);
  }
  difference.only[0] = std::move(only_first).Groups();
  difference.only[1] = std::move(only_second).Groups();
  return difference;
}

}  // namespace fourpiles
