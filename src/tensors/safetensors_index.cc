#include "tensors/safetensors_index.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "base/json_view.h"
#include "tensors/finding_list.h"

namespace fourpiles {
namespace {

// Real ones reach 60 MB and 497,000 entries.
constexpr JsonLimits kLimits = {.bytes = 200'000'000};

Finding Found(FileVerdict verdict, std::string_view where, std::string found, std::string expected) {
  return {
      .verdict = verdict,
      .text = {
          .where = std::string(where), .found = std::move(found), .expected = std::move(expected)}};
}

void ReadTotals(JsonView metadata, SafetensorsIndex& index) {
  metadata.ForEachMember([&](std::string_view key, JsonView value) {
    const auto total = value.WholeNumber();
    if (total && (key == "total_size" || key == "total_parameters")) {
      index.facts.emplace_back(std::string(key), *total);
    }
  });
}

// Entries with the names of their shards become entries with the shards' numbers.
void NumberShards(std::vector<std::pair<std::string, std::string>>&& named,
                  SafetensorsIndex& index) {
  std::ranges::sort(named);
  for (const auto& [tensor, shard] : named) {
    index.shards.push_back(shard);
  }
  std::ranges::sort(index.shards);
  index.shards.erase(std::unique(index.shards.begin(), index.shards.end()), index.shards.end());
  index.entries.reserve(named.size());
  for (auto& [tensor, shard] : named) {
    const auto place = std::ranges::lower_bound(index.shards, shard);
    index.entries.emplace_back(std::move(tensor),
                               static_cast<std::int32_t>(place - index.shards.begin()));
  }
}

// "3 tensors, the first \"model.norm.weight\""
std::string Several(std::size_t count, std::string_view first) {
  return count == 1 ? fmt::format("the tensor \"{}\"", first)
                    : fmt::format("{} tensors, the first \"{}\"", count, first);
}

// Tensors by name; of the same name in the order of the files.
std::vector<std::uint32_t> ByName(const std::vector<FileTensor>& tensors) {
  std::vector<std::uint32_t> order(tensors.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, {},
                           [&](std::uint32_t i) -> const std::string& { return tensors[i].name; });
  return order;
}

struct Difference {
  std::size_t count = 0;
  std::string_view first = {};

  void Add(std::string_view name) { first = count++ == 0 ? name : first; }
};

void CheckTotalSize(const SafetensorsIndex& index, const std::vector<FileTensor>& tensors,
                    std::string_view where, std::vector<Finding>& findings) {
  const auto total = std::ranges::find(index.facts, "total_size", &Json::Member::first);
  Checked bytes = 0;
  for (const FileTensor& tensor : tensors) {
    bytes = bytes + tensor.bytes;
  }
  if (total != index.facts.end() && *total->second.AsInteger() != OrLargest(bytes)) {
    findings.push_back(Found(FileVerdict::kAcceptWithWarning, where,
                             fmt::format("total_size {}", *total->second.AsInteger()),
                             fmt::format("the tensors have {} bytes", OrLargest(bytes))));
  }
}

}  // namespace

bool IsSafetensorsIndex(const Json& document) {
  return document.Find("weight_map") != nullptr;
}

SafetensorsIndex ReadSafetensorsIndex(std::string_view text, std::string_view where) {
  SafetensorsIndex index;
  const auto document = JsonDocument::Read(text, where, kLimits);
  if (!document) {
    index.findings.push_back({.verdict = FileVerdict::kRefuse, .text = document.error().text});
    return index;
  }
  std::vector<std::pair<std::string, std::string>> named;
  FindingList findings;
  document->Root().ForEachMember([&](std::string_view key, JsonView value) {
    if (key == "metadata") {
      ReadTotals(value, index);
    } else if (key == "weight_map") {
      value.ForEachMember([&](std::string_view tensor, JsonView shard) {
        if (const auto name = shard.Text()) {
          named.emplace_back(tensor, *name);
        } else {
          findings.Refuse({.where = fmt::format("{}: weight_map.{}", where, tensor),
                           .found = shard.Description(),
                           .expected = "expected the name of a file"});
        }
      });
    }
  });
  index.findings = std::move(findings).Take(where);
  NumberShards(std::move(named), index);
  index.facts.emplace_back("entries", static_cast<std::int64_t>(index.entries.size()));
  index.facts.emplace_back("shards", static_cast<std::int64_t>(index.shards.size()));
  return index;
}

std::vector<Finding> CheckAgainstIndex(const SafetensorsIndex& index,
                                       const std::vector<FileTensor>& tensors,
                                       std::string_view where) {
  Difference absent;
  Difference unlisted;
  Difference twice;
  const std::vector<std::uint32_t> order = ByName(tensors);
  auto tensor = order.begin();
  for (const auto& [name, shard] : index.entries) {
    for (; tensor != order.end() && tensors[*tensor].name < name; ++tensor) {
      unlisted.Add(tensors[*tensor].name);
    }
    bool found = false;
    std::size_t copies = 0;
    for (; tensor != order.end() && tensors[*tensor].name == name; ++tensor) {
      found |= tensors[*tensor].file == shard;
      ++copies;
    }
    if (!found) {
      absent.Add(name);
    }
    if (copies > 1) {
      twice.Add(name);
    }
  }
  for (; tensor != order.end(); ++tensor) {
    unlisted.Add(tensors[*tensor].name);
  }
  std::vector<Finding> findings;
  if (absent.count > 0) {
    findings.push_back(Found(FileVerdict::kRefuse, where,
                             Several(absent.count, absent.first) + " not in the shard it names",
                             "expected every tensor of the index in its shard"));
  }
  if (unlisted.count > 0) {
    findings.push_back(Found(FileVerdict::kAcceptWithWarning, where,
                             Several(unlisted.count, unlisted.first) + " in a shard alone",
                             "expected every tensor of the shards in the index"));
  }
  if (twice.count > 0) {
    findings.push_back(Found(FileVerdict::kAcceptWithWarning, where,
                             Several(twice.count, twice.first) + " in two shards",
                             "expected each tensor once"));
  }
  CheckTotalSize(index, tensors, where, findings);
  return findings;
}

}  // namespace fourpiles
