#pragma once

// Reading the lists of cases under tests/data/cases, for the tests of this folder.

#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "base/json.h"
#include "tensors/checkpoint.h"

namespace fourpiles {

inline std::string CasePath(std::string_view name) {
  return std::string(FOURPILES_TEST_DATA "/cases/") + std::string(name);
}

// One object a line; fails the test when there is none.
inline std::vector<Json> ReadCases(std::string_view name) {
  std::ifstream file(CasePath(name));
  std::vector<Json> cases;
  for (std::string line; std::getline(file, line);) {
    cases.push_back(*ReadJson(line, name));
  }
  EXPECT_FALSE(cases.empty()) << name;
  return cases;
}

inline std::string TextOf(const Json& row, std::string_view key) {
  return *row.Find(key)->AsString();
}

// Checks the facts of a case that it has: numbers of tensors, bytes, elements, and how many
// tensors each dtype has.
inline void ExpectFacts(const Json& row, const std::vector<FileTensor>& tensors) {
  std::int64_t bytes = 0;
  std::int64_t elements = 0;
  std::map<std::string, std::int64_t> dtypes;
  for (const FileTensor& tensor : tensors) {
    bytes += tensor.bytes;
    elements += tensor.elements;
    ++dtypes[tensor.dtype];
  }
  for (const auto& [key, value] : {std::pair("tensors", static_cast<std::int64_t>(tensors.size())),
                                   {"bytes", bytes},
                                   {"params", elements}}) {
    if (const Json* expected = row.Find(key)) {
      EXPECT_EQ(value, *expected->AsInteger()) << key;
    }
  }
  if (const Json* expected = row.Find("dtypes")) {
    EXPECT_EQ(dtypes.size(), expected->AsObject()->size());
    for (const auto& [dtype, count] : *expected->AsObject()) {
      EXPECT_EQ(dtypes[dtype], *count.AsInteger()) << dtype;
    }
  }
}

// Checks name, dtype, shape, bytes and offset of every tensor against the case's "list".
inline void ExpectList(const Json& row, const std::vector<FileTensor>& tensors) {
  const Json* list = row.Find("list");
  if (list == nullptr) {
    return;
  }
  ASSERT_EQ(list->AsArray()->size(), tensors.size());
  for (const FileTensor& tensor : tensors) {
    const auto same_name = [&](const Json& each) { return TextOf(each, "name") == tensor.name; };
    const auto& expected =
        std::find_if(list->AsArray()->begin(), list->AsArray()->end(), same_name);
    ASSERT_NE(expected, list->AsArray()->end()) << tensor.name;
    EXPECT_EQ(tensor.dtype, TextOf(*expected, "dtype"));
    EXPECT_EQ(tensor.bytes, *expected->Find("bytes")->AsInteger());
    EXPECT_EQ(tensor.offset, *expected->Find("offset")->AsInteger());
    std::vector<std::int64_t> shape;
    for (const Json& dimension : *expected->Find("shape")->AsArray()) {
      shape.push_back(*dimension.AsInteger());
    }
    EXPECT_EQ(tensor.shape, shape);
  }
}

}  // namespace fourpiles
