#include "tensors/safetensors_index.h"

#include <string>

#include <gtest/gtest.h>

namespace fourpiles {
namespace {

SafetensorsIndex Read(std::string_view text) {
  return ReadSafetensorsIndex(MemorySource("x", std::as_bytes(std::span(text))));
}

std::string FirstFound(const std::vector<Finding>& findings) {
  return findings.empty()
             ? "nothing"
             : std::string(Name(findings.front().verdict)) + ": " + findings.front().text.found;
}

FileTensor TensorOf(const char* name, std::int32_t file, std::int64_t bytes = 4) {
  return {.name = name, .bytes = bytes, .file = file};
}

TEST(SafetensorsIndex, SortsEntriesAndShards) {
  const SafetensorsIndex index =
      Read(R"({"metadata":{"total_size":8,"other":[1]},"weight_map":{"b":"2","a":"1","c":"2"}})");
  EXPECT_EQ(index.shards, (std::vector<std::string>{"1", "2"}));
  EXPECT_EQ(index.entries,
            (std::vector<std::pair<std::string, std::int32_t>>{{"a", 0}, {"b", 1}, {"c", 1}}));
  EXPECT_EQ(FirstFound(index.findings), "nothing");
}

TEST(SafetensorsIndex, RefusesWhatIsNoIndex) {
  EXPECT_EQ(FirstFound(Read("{}").findings), "refuse: no weight_map");
  EXPECT_EQ(FirstFound(Read("[]").findings), "refuse: unexpected '['");
  EXPECT_EQ(FirstFound(Read(R"({"weight_map":3})").findings), "refuse: 3");
  EXPECT_EQ(FirstFound(Read(R"({"weight_map":{"a":3}})").findings), "refuse: 3");
  EXPECT_EQ(FirstFound(Read(R"({"weight_map":{"a":"1","a":"2"}})").findings),
            "refuse: a second time");
  EXPECT_EQ(FirstFound(Read(R"({"weight_map":{},"weight_map":{}})").findings),
            "refuse: a second time");
}

TEST(SafetensorsIndex, IsHeldAgainstItsShards) {
  const SafetensorsIndex index =
      Read(R"({"metadata":{"total_size":8},"weight_map":{"a":"1","b":"2"}})");
  const auto found = [&](const std::vector<FileTensor>& tensors) {
    return FirstFound(CheckAgainstIndex(index, tensors, "x"));
  };
  EXPECT_EQ(found({TensorOf("a", 0), TensorOf("b", 1)}), "nothing");
  EXPECT_EQ(found({TensorOf("a", 0), TensorOf("b", 0)}),
            "refuse: the tensor \"b\" missing from the shard that the index names");
  EXPECT_EQ(found({TensorOf("a", 0), TensorOf("b", 1), TensorOf("c", 1)}),
            "accept-with-warning: the tensor \"c\" in a shard alone");
  EXPECT_EQ(found({TensorOf("a", 0), TensorOf("b", 1), TensorOf("b", 0)}),
            "accept-with-warning: the tensor \"b\" in two shards");
  EXPECT_EQ(found({TensorOf("a", 0), TensorOf("b", 1, 5)}), "accept-with-warning: total_size 8");
}

}  // namespace
}  // namespace fourpiles
