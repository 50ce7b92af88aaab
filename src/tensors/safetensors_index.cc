#include "tensors/safetensors_index.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "base/json_scanner.h"
#include "tensors/finding_list.h"

namespace fourpiles {
namespace {

constexpr std::size_t kMostShards = 10'000;
constexpr std::int64_t kMostIndexBytes = 200'000'000;  // real ones reach 60 MB

Finding Found(FileVerdict verdict, std::string_view where, std::string found,
              std::string expected) {
  return {
      .verdict = verdict,
      .text = {
          .where = std::string(where), .found = std::move(found), .expected = std::move(expected)}};
}

// "total_size" and "total_parameters" of the metadata; what else stands there is skipped.
void ReadTotals(JsonScanner& json, SafetensorsIndex& index) {
  if (json.NextKind() != JsonKind::kObject) {
    json.SkipValue();
    return;
  }
  json.EnterObject();
  for (std::string key; json.NextKey(key);) {
    const bool is_total = key == "total_size" || key == "total_parameters";
    if (!is_total || json.NextKind() != JsonKind::kNumber) {
      json.SkipValue();
    } else if (const auto total = json.ReadNumber();
               total && !std::ranges::count(index.facts, key, &Json::Member::first)) {
      index.facts.emplace_back(key, *total);
    }
  }
}

using NamedShards = std::vector<std::pair<std::string, std::string>>;

void ReadWeightMap(JsonScanner& json, const ByteSource& source, NamedShards& named,
                   FindingList& findings) {
  constexpr std::int64_t kUsualEntry = 80;  // in bytes
  const std::string_view where = source.Name();
  const std::int64_t bytes = source.Size();
  if (json.NextKind() != JsonKind::kObject) {
    findings.Refuse({.where = fmt::format("{}: weight_map", where),
                     .found = json.SkipValue(),
                     .expected = "expected an object of tensors and their files"});
    return;
  }
  json.EnterObject();
  named.reserve(static_cast<std::size_t>(bytes / kUsualEntry));
  for (std::string tensor; json.NextKey(tensor);) {
    if (json.NextKind() == JsonKind::kString) {
      std::string& shard = named.emplace_back(tensor, std::string()).second;
      json.ReadString(shard);
    } else {
      findings.Refuse({.where = fmt::format("{}: weight_map.{}", where, tensor),
                       .found = json.SkipValue(),
                       .expected = "expected the name of a file"});
    }
  }
}

// Entries with the names of their shards become entries with the shards' numbers.
void NumberShards(NamedShards&& named, std::string_view where, SafetensorsIndex& index,
                  FindingList& findings) {
  if (!std::ranges::is_sorted(named)) {
    std::ranges::sort(named);
  }
  std::set<std::string_view> shards;
  std::string_view last;  // neighbours are mostly of the same shard
  for (const auto& [tensor, shard] : named) {
    if (shard != last || shards.empty()) {
      shards.insert(shard);
      last = shard;
    }
  }
  if (shards.size() > kMostShards) {
    findings.Refuse({.where = std::string(where),
                     .found = fmt::format("{} shards", shards.size()),
                     .expected = fmt::format("expected at most {}", kMostShards)});
    return;
  }
  index.shards.assign(shards.begin(), shards.end());
  index.entries.reserve(named.size());
  for (auto& [tensor, shard] : named) {
    if (!index.entries.empty() && index.entries.back().first == tensor) {
      findings.Refuse({.where = fmt::format("{}: weight_map.{}", where, tensor),
                       .found = "a second time",
                       .expected = "expected each tensor once"});
      continue;
    }
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

SafetensorsIndex ReadSafetensorsIndex(const ByteSource& source) {
  SafetensorsIndex index;
  FindingList findings;
  NamedShards named;
  const std::string_view where = source.Name();
  JsonScanner json(source, 0, source.Size());
  bool has_map = false;
  bool has_metadata = false;
  if (source.Size() > kMostIndexBytes) {
    findings.Refuse({std::string(where), fmt::format("an index of {} bytes", source.Size()),
                     fmt::format("expected at most {}", kMostIndexBytes)});
    index.findings = std::move(findings).Take(where);
    return index;
  }
  json.EnterObject();
  for (std::string key; json.NextKey(key);) {
    if (key == "metadata" && !std::exchange(has_metadata, true)) {
      ReadTotals(json, index);
    } else if (key == "weight_map" && !std::exchange(has_map, true)) {
      ReadWeightMap(json, source, named, findings);
    } else if (key == "metadata" || key == "weight_map") {
      findings.Refuse({.where = fmt::format("{}: {}", where, key),
                       .found = "a second time",
                       .expected = "expected each key once"});
      json.SkipValue();
    } else {
      json.SkipValue();
    }
  }
  if (!json.Finish()) {
    const JsonFault& fault = json.Fault();
    findings.Refuse({fmt::format("{}: byte {}", where, fault.byte), fault.found, fault.expected});
  }
  if (json.Finish() && !has_map) {
    findings.Refuse({.where = std::string(where),
                     .found = "no weight_map",
                     .expected = "expected an object of tensors and their files"});
  }
  NumberShards(std::move(named), where, index, findings);
  index.findings = std::move(findings).Take(where);
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
    findings.push_back(
        Found(FileVerdict::kRefuse, where,
              Several(absent.count, absent.first) + " missing from the shard that the index names",
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
