#pragma once

// What the tests of PyTorch's checkpoints hold a reading against: rows of
// tests/data/cases/torch.jsonl and of lists of the same form.

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/json.h"
#include "tensors/checkpoint.h"
#include "tensors/test_cases.h"

namespace fourpiles {

inline std::vector<std::int64_t> NumbersOf(const Json& array) {
  std::vector<std::int64_t> numbers;
  for (const Json& number : *array.AsArray()) {
    numbers.push_back(*number.AsInteger());
  }
  return numbers;
}

// The strides of a tensor, those of row-major ones too.
inline std::vector<std::int64_t> StridesOf(const FileTensor& tensor) {
  if (!tensor.strides.empty()) {
    return tensor.strides;
  }
  std::vector<std::int64_t> strides(tensor.shape.size(), 1);
  for (std::size_t i = strides.size(); i-- > 1;) {
    strides[i - 1] = strides[i] * std::max<std::int64_t>(tensor.shape[i], 1);
  }
  return strides;
}

// Name, dtype, shape, strides, bytes, place in the storage, and which tensors share one. `key` is
// the field that names the storage.
inline void ExpectTorchList(const Json& list, const FileReading& reading, std::string_view key) {
  ASSERT_EQ(list.AsArray()->size(), reading.tensors.size());
  std::map<std::string, std::set<std::int32_t>> storages;
  for (std::size_t i = 0; i < reading.tensors.size(); ++i) {
    const Json& expected = (*list.AsArray())[i];
    const FileTensor& tensor = reading.tensors[i];
    EXPECT_EQ(tensor.name, TextOf(expected, "name"));
    EXPECT_EQ(tensor.dtype, TextOf(expected, "dtype")) << tensor.name;
    EXPECT_EQ(tensor.bytes, *expected.Find("bytes")->AsInteger()) << tensor.name;
    EXPECT_EQ(tensor.shape, NumbersOf(*expected.Find("shape"))) << tensor.name;
    if (tensor.elements > 1) {  // of fewer, strides say nothing
      EXPECT_EQ(StridesOf(tensor), NumbersOf(*expected.Find("stride"))) << tensor.name;
    }
    ASSERT_GE(tensor.storage, 0);
    const TensorStorage& storage = reading.storages[static_cast<std::size_t>(tensor.storage)];
    const std::int64_t element_bytes = tensor.elements > 0 ? tensor.bytes / tensor.elements : 0;
    EXPECT_EQ(tensor.offset - (storage.packed ? 0 : storage.offset),
              *expected.Find("storage_offset")->AsInteger() * element_bytes)
        << tensor.name;
    const Json& group = *expected.Find(key);
    storages[group.AsString() ? *group.AsString() : std::to_string(*group.AsInteger())].insert(
        tensor.storage);
  }
  std::set<std::int32_t> all;
  for (const auto& [name, numbers] : storages) {
    EXPECT_EQ(numbers.size(), 1U) << "storage " << name;
    all.insert(numbers.begin(), numbers.end());
  }
  EXPECT_EQ(all.size(), storages.size());
}

inline const Json* FactOf(const FileReading& reading, std::string_view key) {
  const auto found = std::find_if(reading.facts.begin(), reading.facts.end(),
                                  [&](const Json::Member& fact) { return fact.first == key; });
  return found == reading.facts.end() ? nullptr : &found->second;
}

// Outcome, sums, what would be imported, and the list where the row has one.
inline void ExpectTorchRow(const Json& row, const FileReading& reading) {
  std::string findings;
  for (const Finding& finding : reading.findings) {
    findings += finding.text.where + ": " + finding.text.found + "\n";
  }
  EXPECT_EQ(Name(WorstOf(reading.findings)), TextOf(row, "outcome")) << findings;
  if (row.Find("tensors") == nullptr) {
    return;
  }
  ExpectFacts(row, reading.tensors);
  for (const char* key : {"storages", "storage_bytes"}) {
    if (const Json* expected = row.Find(key)) {
      ASSERT_NE(FactOf(reading, key), nullptr);
      EXPECT_EQ(*FactOf(reading, key)->AsInteger(), *expected->AsInteger()) << key;
    }
  }
  if (const Json* expected = row.Find("unsafe_globals")) {
    std::set<std::string> names;
    for (const Json& name : *expected->AsArray()) {
      // Those of TorchScript are looked up in the archive.
      if (!name.AsString()->starts_with("__torch__.")) {
        names.insert(*name.AsString());
      }
    }
    std::set<std::string> found;
    if (const Json* fact = FactOf(reading, "unsafe_globals")) {
      for (const Json& name : *fact->AsArray()) {
        found.insert(*name.AsString());
      }
    }
    EXPECT_EQ(found, names);
  }
  if (const Json* list = row.Find("list")) {
    ExpectTorchList(*list, reading, "storage");
  }
}

}  // namespace fourpiles
